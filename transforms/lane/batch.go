package lane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/klauspost/compress/zstd"
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
	Host   string // registrable domain
	Label  string // the part before the host in the domain id, such as "gov:sg"
	Index  int    // position of the record in its file, from 0
	Source string // what else the record says, empty for nothing
}

// Batch has URL records of one file that belong to one lane. Records cross the
// shuffle in batches because a runner's cost is per element, and compressed because
// runners in one process keep all of them, prism several times.
type Batch struct {
	File    string // key of the raw file
	Broken  bool   // the file ends in the middle: all its records, in this batch and others, are void
	records []byte // compressed, empty for none
}

// NewBatch returns a batch, which keeps nothing of records.
func NewBatch(file string, records []URLRecord) Batch {
	b := Batch{File: file}
	if len(records) > 0 {
		// EncodeAll's slice has the capacity of what it was given.
		b.records = bytes.Clone(compressor().EncodeAll(encodeRecords(records), nil))
	}
	return b
}

// maxDecompressed limits what a batch takes. A record has at most some hundred bytes.
const maxDecompressed = 16 << 20

var (
	compressor = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false)) // these options are valid
		return e
	})
	decompressor = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxDecompressed)) // these options are valid
		return d
	})
)

// Records returns the records of the batch. All their strings share one memory: clone
// those that are kept.
func (b Batch) Records() ([]URLRecord, error) {
	if len(b.records) == 0 {
		return nil, nil
	}
	text, err := decompressor().DecodeAll(b.records, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing a batch of URL records: %w", err)
	}
	return readRecords(string(text))
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Batch](), encodeBatch, decodeBatch)
}

var errBatch = errors.New("decoding a batch of URL records: the bytes are cut short")

func encodeBatch(b Batch) []byte {
	out := make([]byte, 0, len(b.File)+len(b.records)+binary.MaxVarintLen64+1)
	out = appendString(out, b.File)
	var broken byte
	if b.Broken {
		broken = 1
	}
	return append(append(out, broken), b.records...)
}

func decodeBatch(in []byte) (Batch, error) {
	r := reader{rest: string(in)}
	b := Batch{File: r.string(), Broken: r.uint() == 1, records: []byte(r.rest)}
	if r.short {
		return Batch{}, errBatch
	}
	return b, nil
}

// encodeRecords writes the records field by field, since what is alike compresses well: labels, the label of each, its distance in the
// file from the one before, the lengths of hosts, hosts, and sources.
func encodeRecords(records []URLRecord) (out []byte) {
	var labels []string
	number := map[string]uint64{}
	for _, m := range records {
		if _, ok := number[m.Label]; !ok {
			number[m.Label] = uint64(len(labels))
			labels = append(labels, m.Label)
		}
	}
	out = binary.AppendUvarint(out, uint64(len(records)))
	out = binary.AppendUvarint(out, uint64(len(labels)))
	for _, label := range labels {
		out = appendString(out, label)
	}
	for _, m := range records {
		out = binary.AppendUvarint(out, number[m.Label])
	}
	before := 0
	for _, m := range records {
		out = binary.AppendUvarint(out, uint64(m.Index-before))
		before = m.Index
	}
	for _, m := range records {
		out = binary.AppendUvarint(out, uint64(len(m.Host)))
	}
	for _, m := range records {
		out = append(out, m.Host...)
	}
	for _, m := range records {
		out = appendString(out, m.Source)
	}
	return out
}

func readRecords(text string) ([]URLRecord, error) {
	r := reader{rest: text}
	n, of := r.uint(), r.uint()
	if n > uint64(len(r.rest))/4 || of > uint64(len(r.rest)) {
		return nil, errBatch
	}
	labels := make([]string, of)
	for i := range labels {
		labels[i] = r.string()
	}
	records := make([]URLRecord, n)
	for i := range records {
		label := r.uint()
		if label >= of {
			return nil, errBatch
		}
		records[i].Label = labels[label]
	}
	before := 0
	for i := range records {
		before += int(r.uint())
		records[i].Index = before
	}
	lengths := r
	for range records {
		r.uint()
	}
	for i := range records {
		records[i].Host = r.take(lengths.uint())
	}
	for i := range records {
		records[i].Source = r.string()
	}
	if r.short {
		return nil, errBatch
	}
	return records, nil
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

func (r *reader) string() string { return r.take(r.uint()) }

func (r *reader) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.short, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
