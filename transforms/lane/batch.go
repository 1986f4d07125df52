package lane

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// Of says in which of n lanes a host lies. Every mention of a host falls into
// the same lane, so that one worker alone visits it.
func Of(host string, n int) int {
	if n <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // a hash.Hash never fails
	return int(h.Sum32() % uint32(n))
}

// Mention is one naming of a host by an input file.
type Mention struct {
	Host  string // registrable domain
	Label string // what stands before the host in its id, "gov:sg"
	Index int    // position of the record in its file, from 0
}

// Batch holds mentions of one file that fall into one lane. One that was decoded
// is kept whole in memory by any string of its Mentions: clone what stays. Batches, not single
// mentions, cross the shuffle: the runners' cost is by element (design.md, The idea).
type Batch struct {
	File     string // key of the raw file
	Broken   bool   // the file broke off: all its mentions, in this batch and others, are void
	Mentions []Mention
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Batch](), encodeBatch, decodeBatch)
}

var errBatch = errors.New("decoding a batch of mentions: the bytes are cut short")

func encodeBatch(b Batch) []byte {
	size := len(b.File) + 16
	for _, m := range b.Mentions {
		size += len(m.Host) + len(m.Label) + 12
	}
	out := make([]byte, 0, size)
	out = appendString(out, b.File)
	var broken uint64
	if b.Broken {
		broken = 1
	}
	out = binary.AppendUvarint(out, broken)
	out = binary.AppendUvarint(out, uint64(len(b.Mentions)))
	for _, m := range b.Mentions {
		out = appendString(out, m.Host)
		out = appendString(out, m.Label)
		out = binary.AppendUvarint(out, uint64(m.Index))
	}
	return out
}

// decodeBatch makes one string of a whole batch, of which the mentions' are
// parts: an allocation for each would cost more than all the rest.
func decodeBatch(in []byte) (Batch, error) {
	r := reader{rest: string(in)}
	b := Batch{File: r.string(), Broken: r.uint() == 1}
	n := r.uint()
	if n > uint64(len(r.rest)) {
		return Batch{}, errBatch
	}
	b.Mentions = make([]Mention, n)
	for i := range b.Mentions {
		b.Mentions[i] = Mention{Host: r.string(), Label: r.string(), Index: int(r.uint())}
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
