package rawfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readAll(r io.Reader) (records []Record, meta Meta, err error) {
	meta, err = Read(r, func(r Record) error {
		records = append(records, r)
		return nil
	})
	return records, meta, err
}

// docs/raw-files.md shows a file that is read without a complaint.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/raw-files.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "```json\n")
	text, _, closed := strings.Cut(text, "```")
	records, meta, err := readAll(strings.NewReader(text))
	require.True(t, found && closed && err == nil && meta.RecordCount == meta.Records && meta.Records == 2, "%+v, %v", meta, err)
	for _, r := range records {
		assert.True(t, r.Err == nil && len(r.Problems) <= 0, "%+v", r)
	}
}

func TestRead(t *testing.T) {
	one := []Record{{RawURL: "https://a.sg/"}}
	for _, c := range []struct {
		name, text string
		records    []Record
		meta       Meta
	}{
		{"two records", `{"meta":{"dataset_id":"sg-news-2026-01-28-0001","country":"SG","category":"news","record_count":2},
			"records":[{"raw_url":"https://www.mom.gov.sg/newsroom","normalized_domain":"mom.gov.sg","domain_id":"gov:sg:mom.gov.sg","source_type":"gov",
			"discovery_method":"google_search","confidence":0.95,"content_hints":["news","policy"],"liveness_status":"alive"},
			{"raw_url":"https://www.moh.gov.sg/news","normalized_domain":"moh.gov.sg","domain_id":"gov:sg:moh.gov.sg"}]}`,
			[]Record{{RawURL: "https://www.mom.gov.sg/newsroom", NormalizedDomain: "mom.gov.sg", DomainID: "gov:sg:mom.gov.sg",
				Says: `"discovery_method":"google_search","confidence":0.95,"content_hints":["news","policy"],"liveness_status":"alive"`},
				{Index: 1, RawURL: "https://www.moh.gov.sg/news", NormalizedDomain: "moh.gov.sg", DomainID: "gov:sg:moh.gov.sg"}},
			Meta{Country: "SG", Category: "news", DatasetID: "sg-news-2026-01-28-0001", RecordCount: 2, HasCount: true, Records: 2}},
		{"meta after records", `{"records":[{"raw_url":"https://a.sg/"}],"meta":{"country":"KR","record_count":7}}`, one,
			Meta{Country: "KR", RecordCount: 7, HasCount: true, Records: 1}},
		{"no meta, unknown fields", `{"x":[{"records":[1]}],"records":[{"y":{"raw_url":"no"},"raw_url":"https://a.sg/"}],"z":null}`, one, Meta{Records: 1}},
		{"brackets and quotes inside an unknown field", `{"records":[{"y":{"a":"}\\\"]}","b":[["]\\\\"],{}],"raw_url":"no"} , "raw_url" : "https://a.sg/" , "z":[]}]}`, one, Meta{Records: 1}},
		{"escapes and letters far into a string", `{"records":[{"domain_id":"0123456789é","raw_url":"https://a.sg/\u0022\\","normalized_domain":"01234567\t"}]}`,
			[]Record{{RawURL: `https://a.sg/"\`, NormalizedDomain: "01234567\t", DomainID: "0123456789é"}}, Meta{Records: 1}},
		{"byte order mark", "\ufeff" + `{"records":[{"raw_url":"https://a.sg/"}]}` + " \n", one, Meta{Records: 1}},
		{"no records in the array", `{"records":[]}`, nil, Meta{}},
		{"odd meta", `{"meta":{"country":5,"category":null,"record_count":1.5},"records":[]}`, nil, Meta{}},
		{"meta is no object", `{"meta":"x","records":[]}`, nil, Meta{}},
		{"last key wins", `{"meta":{"country":"SG","category":"a"},"meta":{"country":"KR","country":"US"},
			"records":[{"raw_url":"https://b.sg/","raw_url":"https://a.sg/","confidence":7,"confidence":0.7}]}`, []Record{{RawURL: "https://a.sg/", Says: `"confidence":0.7`}}, Meta{Country: "US", Records: 1}},
		{"escapes", `{"rec\u006frds":[{"raw\u005furl":"https:\/\/a.sg\/"}]}`, one, Meta{Records: 1}},
		{"invalid UTF-8", "{\"records\":[{\"raw_url\":\"https://a.sg/\xff\",\"\xfe\":1}]}", []Record{{RawURL: "https://a.sg/\ufffd"}}, Meta{Records: 1}},
		{"null before the array", `{"records":null,"records":[{"raw_url":"https://a.sg/"}]}`, one, Meta{Records: 1}},
		{"reading continues after bad records", `{"records":[1,"https://a.sg",null,[{"raw_url":"x"}],{},{"raw_url":""},{"raw_url":3},{"raw_url":null},{"raw_url":"https://a.sg/"}]}`,
			[]Record{{Err: errNotObject}, {Index: 1, Err: errNotObject}, {Index: 2, Err: errNotObject}, {Index: 3, Err: errNotObject}, {Index: 4, Err: errNoURL},
				{Index: 5, Err: errNoURL}, {Index: 6, Err: errNoURL}, {Index: 7, Err: errNoURL}, {Index: 8, RawURL: "https://a.sg/"}}, Meta{Records: 9}},
		{"all optional fields wrong", `{"records":[{"raw_url":"https://a.sg/","liveness_status":"zombie","content_hints":["a",1],"confidence":1.01,
			"discovery_method":7,"source_type":"mil","domain_id":{},"normalized_domain":[]}]}`,
			[]Record{{RawURL: "https://a.sg/", Problems: []string{"normalized_domain", "domain_id", "source_type", "discovery_method", "confidence", "content_hints", "liveness_status"}}},
			Meta{Records: 1}},
		{"null is absent", `{"records":[{"raw_url":"https://a.sg/","liveness_status":null,"content_hints":null,"confidence":null,"source_type":null,"domain_id":null}]}`,
			one, Meta{Records: 1}},
		{"number out of range", `{"records":[{"raw_url":"https://a.sg/","confidence":1e999}]}`,
			[]Record{{RawURL: "https://a.sg/", Problems: []string{"confidence"}}}, Meta{Records: 1}},
	} {
		for reader, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text)), "EOF with data": iotest.DataErrReader(strings.NewReader(c.text))} {
			records, meta, err := readAll(r)
			assert.True(t, err == nil && reflect.DeepEqual(records, c.records) && meta == c.meta,
				"%s, %s:\n got %+v %+v %v\nwant %+v %+v", c.name, reader, records, meta, err, c.records, c.meta)
		}
	}
}

func TestReadBrokenFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       error
		offset     int64
		records    int
	}{
		{"empty", "", ErrTruncated, 0, 0},
		{"only a byte order mark", "\ufeff", ErrTruncated, 3, 0},
		{"only space", " \n", ErrTruncated, -1, 0},
		{"cut in a record", `{"records":[{"raw_url":"https://a.sg/"},{"raw_url":"ht`, ErrTruncated, -1, 1},
		{"cut in a number", `{"records":[{"raw_url":"https://a.sg/"},12`, ErrTruncated, 42, 1},
		{"a record of the greatest depth, and one beyond", `{"records":[` + nested(9998) + `,` + nested(9999) + `]}`, ErrBadJSON, -1, 1},
		{"cut after records", `{"records":[{"raw_url":"https://a.sg/"}]`, ErrTruncated, 40, 1},
		{"cut in meta", `{"records":[{"raw_url":"https://a.sg/"}],"meta":{"country":"S`, ErrTruncated, -1, 1},
		{"not JSON", `<html>`, ErrBadJSON, 0, 0},
		{"broken record", `{"records":[{"raw_url":"https://a.sg/"},{"raw_url" "x"}]}`, ErrBadJSON, 51, 1},
		{"trailing garbage", `{"records":[{"raw_url":"https://a.sg/"}]}x`, ErrBadJSON, 41, 1},
		{"a second object", `{"records":[{"raw_url":"https://a.sg/"}]}{}`, ErrBadJSON, -1, 1},
		{"two arrays", `{"records":[{"raw_url":"https://a.sg/"}],"records":[]}`, ErrBadJSON, -1, 1},
		{"trailing comma", `{"records":[{"raw_url":"https://a.sg/"},]}`, ErrBadJSON, -1, 1},
		{"zero bytes", "\x00\x00\x00\x00", ErrBadJSON, 0, 0},
		{"UTF-16", "\xff\xfe{\x00}\x00", ErrBadJSON, 0, 0},
		{"records is null", `{"records": null}`, ErrNoRecords, 17, 0},
		{"records is an object", `{"records": {"0":{"raw_url":"https://a.sg/"}}}`, ErrNoRecords, -1, 0},
		{"no records", `{"meta":{"country":"SG"}}`, ErrNoRecords, -1, 0},
		{"an array at the top", `[{"raw_url":"https://a.sg/"}]`, ErrNoRecords, -1, 0},
		{"a string at the top", `"records"`, ErrNoRecords, -1, 0},
	} {
		records, _, err := readAll(strings.NewReader(c.text))
		var broken *Error
		if !errors.As(err, &broken) || !errors.Is(err, c.kind) || len(records) != c.records {
			t.Errorf("%s: %d records, %v, want %d and %v", c.name, len(records), err, c.records, c.kind)
			continue
		}
		assert.True(t, c.offset < 0 || broken.Offset == c.offset, "%s: %v, want byte %d", c.name, err, c.offset)
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// The text of an error says what to do, because people read it in a dead letter.
func TestBrokenFilesInWords(t *testing.T) {
	for text, want := range map[string]string{
		"\xff\xfe{\x00}\x00":                       "the file is not valid JSON (byte 0): it is UTF-16: save it as UTF-8",
		"\x00{\x00}":                               "the file is not valid JSON (byte 0): it is UTF-16: save it as UTF-8",
		"\x1f\x8b\x08":                             "the file is not valid JSON (byte 0): it is compressed by gzip: unpack it",
		"PK\x03\x04":                               "the file is not valid JSON (byte 0): it is a ZIP archive: unpack it",
		"<html>":                                   "the file is not valid JSON (byte 0): invalid character '<' at start of value",
		`{"records":[{"raw_u`:                      `the file is empty or ends in the middle (byte 19): unexpected EOF within "/records/0"`,
		"\ufeff{\"records\":[x]}":                  "the file is not valid JSON (byte 15): invalid character 'x' at start of value within \"/records/0\"",
		`{"records":[{"a" 1}]}`:                    `the file is not valid JSON (byte 17): invalid character '1' after object name (expecting ':') within "/records/0/a"`,
		`{"records":[{},1,{"a":[0,x]}]}`:           `the file is not valid JSON (byte 25): invalid character 'x' at start of value within "/records/2/a/1"`,
		`{"records":[{},1 {}]}`:                    `the file is not valid JSON (byte 17): invalid character '{' after array element (expecting ',' or ']') within "/records"`,
		`{"records":[{}e5]}`:                       `the file is not valid JSON (byte 14): invalid character 'e' after array element (expecting ',' or ']') within "/records"`,
		`{"records":[{}],"meta":{"records":[01]}}`: `the file is not valid JSON (byte 36): invalid character '1' after array element (expecting ',' or ']') within "/meta/records"`,
	} {
		_, _, err := readAll(strings.NewReader(text))
		assert.True(t, err != nil && err.Error() == want, "%q: %v, want %s", text, err, want)
	}
}

func TestReaderAndVisitErrorsAreTheirOwn(t *testing.T) {
	text := `{"records":[{"raw_url":"https://a.sg/"},{"raw_url":"https://b.sg/"}],"meta":{}}`
	for _, cause := range []error{io.ErrUnexpectedEOF, io.ErrClosedPipe} { // a body cut short is the store's failure
		for cut := range len(text) {
			_, _, err := readAll(io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(cause)))
			broken := (*Error)(nil)
			assert.True(t, errors.Is(err, cause) && !errors.As(err, &broken), "cut at %d by %v: got %v", cut, cause, err)
		}
	}
	stop := errors.New("enough")
	n := 0
	meta, err := Read(strings.NewReader(text), func(Record) error { n++; return stop })
	assert.True(t, errors.Is(err, stop) && n == 1 && meta.Records == 1, "visit's error: %v after %d records, meta %+v", err, n, meta)
}

// Every cut of a good file is a truncated file, never anything else.
func TestEveryCutIsTruncated(t *testing.T) {
	text := "\ufeff" + `{"meta":{"record_count":1},"records":[{"raw_url":"é\u00e9","confidence":0.5,"content_hints":["a"]}]}`
	for cut := range len(text) {
		_, _, err := readAll(strings.NewReader(text[:cut]))
		assert.True(t, errors.Is(err, ErrTruncated) || (cut != 0 && cut <= 2), "cut at %d (%q): %v", cut, text[max(0, cut-5):cut], err)
	}
}

func generate(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"meta":{"dataset_id":"sg-news-2026-01-28-0001","country":"SG","category":"news"},"records":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"raw_url":"https://www.site%d.gov.sg/newsroom/press-releases","normalized_domain":"site%[1]d.gov.sg","domain_id":"gov:sg:site%[1]d.gov.sg",`+
			`"source_type":"gov","discovery_method":"google_search","confidence":0.95,"content_hints":["news","policy"],"liveness_status":"alive"}`, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// Memory must not grow with the file: a record is visited before the reader
// has gone far past it, which a reader of whole files could not do.
func TestConstantMemory(t *testing.T) {
	text := generate(8 << 20)
	in := bytes.NewReader(text)
	visited := 0
	_, err := Read(in, func(r Record) error {
		at := bytes.Index(text[visited:], []byte(r.RawURL))
		if at < 0 {
			return fmt.Errorf("record %d: %s is not further on in the file", r.Index, r.RawURL)
		}
		visited += at
		if ahead := len(text) - in.Len() - visited; ahead > 256<<10 {
			return fmt.Errorf("record %d: %d bytes were read past it", r.Index, ahead)
		}
		return nil
	})
	assert.True(t, err == nil && visited >= 7<<20, "visited up to byte %d: %v", visited, err)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"meta":{"country":"SG","record_count":1},"records":[{"raw_url":"https://a.sg/","confidence":0.5,"content_hints":["x"]}]}`))
	f.Add([]byte("\ufeff{\"records\":[1,{\"raw_url\":\"\xff\"}]} "))
	f.Add([]byte(`{"records":null}`))
	f.Add([]byte(`{"records":[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, meta, err := readAll(bytes.NewReader(text))
		require.Equal(t, meta.Records, int64(len(records)), "%d records visited", len(records))
		again, metaAgain, errAgain := readAll(iotest.OneByteReader(bytes.NewReader(text)))
		require.True(t, reflect.DeepEqual(records, again) && meta == metaAgain && (err == nil) == (errAgain == nil),
			"byte by byte: %v %v, whole: %v %v", again, errAgain, records, err)
		if broken := (*Error)(nil); err != nil && (!errors.As(err, &broken) || broken.Offset < 0 || broken.Offset > int64(len(text))) {
			t.Fatalf("%v is no *Error with an offset in the file", err)
		}
		// The standard library agrees on what a record's URL is, where it reads the file at all.
		var std struct {
			Records []json.RawMessage `json:"records"`
		}
		if err != nil || json.Unmarshal(text, &std) != nil || len(std.Records) != len(records) {
			return
		}
		for i, raw := range std.Records {
			var fields map[string]any
			if json.Unmarshal(raw, &fields) != nil || fields == nil {
				require.Error(t, records[i].Err, "record %d %s: no error", i, raw)
			} else if url, _ := fields["raw_url"].(string); url != records[i].RawURL {
				t.Fatalf("record %d: %q, want %q", i, records[i].RawURL, url)
			}
		}
		require.True(t, slices.IsSortedFunc(records, func(a, b Record) int { return a.Index - b.Index }), "records out of order")
	})
}

// The scanner accepts what the decoder accepts, also byte by byte, and ends where it ends.
func FuzzScanner(f *testing.F) {
	for _, value := range []string{`{"a":[1,-0.5e+7,{}],"b\u00e9":null}`, `["\ud800\"",true,false]`, `"12345678\n"`, "\"\x00", "\"\xff\"", `[1,]`, `{"a"}`, `01`, `-`, `1.`, `1e`, `tru`, `"\x"`} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = append(text, ' ') // the end of a number
		c := scanner{s: text}
		_, ok := c.value(-2) // nothing is around it
		d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		value, err := d.ReadValue()
		require.True(t, ok == (err == nil) && (!ok || c.at == int(d.InputOffset())),
			"the scanner: %v up to %d; the decoder: %q, %v", ok, c.at, value, err)
		for cut := 0; ok && cut < min(c.at, 300); cut++ {
			c := scanner{s: text[:cut]}
			_, whole := c.value(0)
			require.True(t, !whole && c.cut, "%q is cut: %v, %v", text[:cut], whole, c.cut)
		}
	})
}
