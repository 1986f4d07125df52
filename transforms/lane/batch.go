package lane

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// Of says in which of n lanes a host lies. Every record of a host falls into
// the same lane, so that one worker alone visits it.
func Of(host string, n int) int {
	if n <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // a hash.Hash never fails
	return int(h.Sum32() % uint32(n))
}

// URLRecord is a line of a raw file: the host that it names, and how.
type URLRecord struct {
	Host  string // registrable domain
	Label string // what stands before the host in its id, "gov:sg"
	Index int    // position of the record in its file, from 0
}

// Batch holds URL records of one file that fall into one lane. One that was decoded
// stays whole in memory as long as any string of its Records does: clone what is
// kept. Batches cross the shuffle, for what a runner costs is by the element.
type Batch struct {
	File    string // key of the raw file
	Broken  bool   // the file broke off: all its records, in this batch and others, are void
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

// decodeBatch makes one string of a whole batch, of which the records' are
// parts: an allocation for each would cost more than all the rest.
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

// uint is binary.Uvarint of a string.
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
