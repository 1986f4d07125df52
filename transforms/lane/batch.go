package lane

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// Of returns the lane, of n, to which a host belongs. Every record of a host is in
// the same lane, so that only one worker visits the host.
func Of(host string, n int) int {
	if n <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // a hash.Hash never fails
	return int(h.Sum32() % uint32(n))
}

// URLRecord is a record of a raw file: the host that it names, and where the record is.
type URLRecord struct {
	Host  string // registrable domain
	Label string // the part before the host in the domain id, such as "gov:sg"
	Index int    // position of the record in its file, from 0
}

// Batch has URL records of one file that belong to one lane. Records cross the
// shuffle in batches because a runner's cost is per element. All strings of a
// decoded batch share its memory: clone those that are kept.
type Batch struct {
	File    string // key of the raw file
	Broken  bool   // the file ends in the middle: all its records, in this batch and others, are void
	Records []URLRecord
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Batch](), encodeBatch, decodeBatch)
}

var errBatch = errors.New("decoding a batch of URL records: the bytes are cut short")

func encodeBatch(b Batch) []byte {
	size := len(b.File) + 16
	for _, m := range b.Records {
		size += len(m.Host) + len(m.Label) + 12
	}
	out := make([]byte, 0, size)
	out = appendString(out, b.File)
	var broken uint64
	if b.Broken {
		broken = 1
	}
	out = binary.AppendUvarint(out, broken)
	out = binary.AppendUvarint(out, uint64(len(b.Records)))
	for _, m := range b.Records {
		out = appendString(out, m.Host)
		out = appendString(out, m.Label)
		out = binary.AppendUvarint(out, uint64(m.Index))
	}
	return out
}

// decodeBatch makes one string of the whole batch; the strings of the records are
// parts of it. One allocation for each string would take more time than all the
// rest.
func decodeBatch(in []byte) (Batch, error) {
	r := reader{rest: string(in)}
	b := Batch{File: r.string(), Broken: r.uint() == 1}
	n := r.uint()
	if n > uint64(len(r.rest)) {
		return Batch{}, errBatch
	}
	b.Records = make([]URLRecord, n)
	for i := range b.Records {
		b.Records[i] = URLRecord{Host: r.string(), Label: r.string(), Index: int(r.uint())}
	}
	if r.short {
		return Batch{}, errBatch
	}
	return b, nil
}

func appendString(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

type reader struct {
	rest  string
	short bool
}

// uint is binary.Uvarint for a string.
func (r *reader) uint() uint64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		c := r.rest[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break // more than 64 bits
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.short, r.rest = true, ""
	return 0
}

func (r *reader) string() string {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.short, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
