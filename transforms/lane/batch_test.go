package lane

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestBatchRoundTrip(t *testing.T) {
	many := Batch{File: "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"}
	for n := range 2000 {
		many.Records = append(many.Records, URLRecord{Host: strings.Repeat("h", n%70) + ".com", Label: []string{"gov:sg", "com:sg"}[n%2], Index: n * n})
	}
	for _, b := range []Batch{
		{},
		{File: "only a file"},
		{File: "f", Records: []URLRecord{{}}},
		{File: "f", Records: []URLRecord{{Host: "xn--9n2bp8q.com", Label: "other:kr", Index: math.MaxInt}}},
		{File: "f\x00\xff", Records: []URLRecord{{Host: "a", Label: ""}, {Host: "", Label: "b", Index: 1}}},
		many,
	} {
		got, err := decodeBatch(encodeBatch(b))
		if err != nil {
			t.Fatal(err)
		}
		if got.File != b.File || !slices.Equal(got.Records, b.Records) {
			t.Errorf("%+v came back as %+v", b, got)
		}
	}
}

// Every field of a Batch crosses the shuffle.
func TestBatchFieldsSurvive(t *testing.T) {
	b := Batch{File: "f", Records: []URLRecord{{"h", "l", 7}}}
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
		}
	}
	got, err := decodeBatch(encodeBatch(b))
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("%+v came back as %+v, %v", b, got, err)
	}
}

func TestDecodeBatchCutShort(t *testing.T) {
	whole := encodeBatch(Batch{File: "file", Records: []URLRecord{{"a.com", "com:sg", 3}, {"b.com", "com:sg", 300}}})
	for n := range whole {
		if b, err := decodeBatch(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes decode as %+v", n, len(whole), b)
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add(encodeBatch(Batch{File: "file", Records: []URLRecord{{"a.com", "com:sg", 3}, {"b.com", "gov:sg", 300}}}))
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := decodeBatch(in)
		if err != nil {
			return
		}
		again, err := decodeBatch(encodeBatch(b))
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Errorf("%+v came back as %+v, %v", b, again, err)
		}
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
		if got := [3]int{Of(host, 1), Of(host, 2), Of(host, 64)}; got != want {
			t.Errorf("Of(%q, 1|2|64) = %v, want %v", host, got, want)
		}
	}
	if Of("a", 0) != 0 || Of("a", -3) != 0 {
		t.Error("fewer than one lane is one lane")
	}
	var filled [16]int
	for n := range 16_000 {
		filled[Of("host"+strings.Repeat("x", n%9)+string(rune('a'+n%26))+strings.Repeat("y", n/26%97)+".com", 16)]++
	}
	for lane, n := range filled {
		if n < 500 {
			t.Errorf("lane %d of 16 gets %d of 16000 hosts", lane, n)
		}
	}
}
