package lane

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// arrived is what a batch of records is on the other side of the shuffle.
func arrived(t *testing.T, b Batch) (Batch, []URLRecord) {
	t.Helper()
	got, err := decodeBatch(encodeBatch(b))
	require.NoError(t, err)
	records, err := got.Records()
	require.NoError(t, err)
	return got, records
}

func TestBatchRoundTrip(t *testing.T) {
	var many []URLRecord
	for n := range 2000 {
		many = append(many, URLRecord{Host: strings.Repeat("h", n%70) + ".com", Label: []string{"gov:sg", "com:sg"}[n%2], Index: n * n})
	}
	for _, tt := range []struct {
		file    string
		records []URLRecord
	}{
		{},
		{"only a file", nil},
		{"f", []URLRecord{{}}},
		{"f", []URLRecord{{Host: "xn--9n2bp8q.com", Label: "other:kr", Index: math.MaxInt}}},
		{"f\x00\xff", []URLRecord{{Host: "a", Label: ""}, {Host: "", Label: "b", Index: 1}}},
		{"source", []URLRecord{{Host: "a.com", Source: "="}, {Host: "b.com"}}},
		{"backwards", []URLRecord{{Host: "b.com", Index: math.MaxInt}, {Host: "a.com"}, {Host: "c.com", Index: 5}}},
		{"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", many},
	} {
		got, records := arrived(t, NewBatch(tt.file, tt.records))
		assert.True(t, got.File == tt.file && !got.Broken && slices.Equal(records, tt.records),
			"%s, %+v came back as %+v, %+v", tt.file, tt.records, got, records)
	}
}

// Every field of a Batch crosses the shuffle.
func TestBatchFieldsSurvive(t *testing.T) {
	b := NewBatch("f", []URLRecord{{"h", "l", 7, "s"}})
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
		}
	}
	got, _ := arrived(t, b)
	assert.Equal(t, b, got)
}

// A million records wait in memory until their lane begins, in prism several times.
func TestBatchIsSmall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var records []URLRecord
	for n := range 1024 {
		name := make([]byte, 6+random.IntN(12))
		for i := range name {
			name[i] = "eeeeeetttttaaaaooooiiiinnnnsssshhhrrrddllcumwfgypbvk-"[random.IntN(53)]
		}
		records = append(records, URLRecord{Host: string(name) + []string{".com", ".com.sg", ".org"}[random.IntN(3)], Label: "com:sg", Index: 16*n + random.IntN(16)})
	}
	b := NewBatch("f", records)
	for what, bytes := range map[string]int{"in memory": cap(b.records), "on the wire": len(encodeBatch(b))} {
		assert.LessOrEqual(t, bytes, 11*len(records),
			"%s a batch takes %.1f bytes a record, want at most 11", what, float64(bytes)/float64(len(records)))
	}
}

func TestDecodeBatchCutShort(t *testing.T) {
	b := NewBatch("file", []URLRecord{{"a.com", "com:sg", 3, "="}, {"b.com", "com:sg", 300, "found"}})
	whole, head := encodeBatch(b), encodeBatch(Batch{File: "file"})
	for n := range whole {
		got, err := decodeBatch(whole[:n])
		if n == len(head) {
			continue // a batch without records
		}
		if err == nil {
			_, err = got.Records()
		}
		assert.Error(t, err, "%d of %d bytes decode as %+v", n, len(whole), got)
	}
	text := encodeRecords([]URLRecord{{"a.com", "com:sg", 3, "="}, {"b.com", "com:sg", 300, "found"}})
	for n := range text {
		got, err := readRecords(string(text[:n]))
		assert.Error(t, err, "%d of %d bytes decode as %+v", n, len(text), got)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add(encodeBatch(NewBatch("file", []URLRecord{{"a.com", "com:sg", 3, "="}, {"b.com", "gov:sg", 300, ""}})))
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := decodeBatch(in)
		if err != nil {
			return
		}
		again, err := decodeBatch(encodeBatch(b))
		assert.True(t, err == nil && reflect.DeepEqual(again, b), "%+v came back as %+v, %v", b, again, err)
		_, _ = b.Records() // a text that is no batch is an error, not a panic
	})
}

func FuzzReadRecords(f *testing.F) {
	f.Add("")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Add(string(encodeRecords([]URLRecord{{"a.com", "com:sg", 3, "="}, {"b.com", "gov:sg", 300, ""}})))
	f.Fuzz(func(t *testing.T, in string) {
		records, err := readRecords(in)
		if err != nil {
			return
		}
		again, err := readRecords(string(encodeRecords(records)))
		assert.True(t, err == nil && slices.Equal(again, records), "%+v came back as %+v, %v", records, again, err)
	})
}

// The lane of a host never changes: two workers of one run must agree, even if one
// has another version of the program.
func TestOfIsStable(t *testing.T) {
	for host, want := range map[string][3]int{
		"moe.gov.sg":      {0, 0, 62},
		"example.com":     {0, 0, 38},
		"xn--9n2bp8q.com": {0, 0, 62},
		// FNV-1a, 32 bits, as published: 811c9dc5, e40c292c, bf9cf968.
		"":       {0, 1, 0x05},
		"a":      {0, 0, 0x2c},
		"foobar": {0, 0, 0x28},
	} {
		assert.Equal(t, want, [3]int{Of(host, 1), Of(host, 2), Of(host, 64)}, "Of(%q, 1|2|64)", host)
	}
	assert.True(t, Of("a", 0) == 0 && Of("a", -3) == 0, "fewer than one lane is one lane")
	var filled [16]int
	for n := range 16_000 {
		filled[Of("host"+strings.Repeat("x", n%9)+string(rune('a'+n%26))+strings.Repeat("y", n/26%97)+".com", 16)]++
	}
	for lane, n := range filled {
		assert.GreaterOrEqual(t, n, 500, "lane %d of 16 gets", lane)
	}
}
