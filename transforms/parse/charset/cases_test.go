package charset_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// Floors: they may only rise.
const (
	minRows       = 50 // rows of charset/cases.jsonl that concern names and decoding: all
	minKoreanRows = 16 // rows of korean/charset_cases.jsonl: all, the doubtful ones too
)

// whatwg respells the names that the rows take from Python.
func whatwg(name string) string {
	name = strings.ToLower(name)
	switch name {
	case "utf8":
		return "utf-8"
	case "cp1251", "cp1252":
		return "windows-" + name[2:]
	case "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be":
		return name[:6] + name[7:]
	}
	return name
}

func TestCases(t *testing.T) {
	right := 0
	for _, r := range cases.Rows[struct {
		ID, Kind, Encoding, Header, Label, Text string
		Body                                    []byte `json:"body_b64"`
	}](t, "charset/cases.jsonl") {
		var got string
		switch r.Kind {
		case "bom":
			got, _ = charset.BOM(r.Body)
		case "content-type-header":
			got = charset.FromContentType(r.Header)
		case "declared-in-body":
			got = charset.Declared(r.Body)
		case "label":
			got = charset.Label(r.Label)
		case "decode":
			var text string
			var err error
			text, got, err = charset.Decode(r.Body, strings.TrimPrefix(r.Header, "Content-Type: "))
			if err != nil || text != r.Text {
				t.Errorf("%s: text %q (%v), want %q", r.ID, text, err, r.Text)
				continue
			}
		default:
			continue // base elements are transforms/parse/feed's, compression io/web's; nobody here follows meta refresh
		}
		if want := whatwg(r.Encoding); got != want {
			t.Errorf("%s: encoding %q, want %q (%q %q)", r.ID, got, want, r.Header, r.Body)
			continue
		}
		right++
	}
	assert.True(t, right >= minRows, "%d rows are right, floor %d", right, minRows)
}

var tags = regexp.MustCompile(`<[^>]*>`)

func TestKoreanCases(t *testing.T) {
	right := 0
	for _, r := range cases.Rows[struct {
		ID, File, Encoding, Title string
		ContentType               string   `json:"http_content_type"`
		Contains                  []string `json:"text_contains"`
	}](t, "korean/charset_cases.jsonl") {
		text, name, err := charset.Decode(cases.File(t, "korean/"+r.File), r.ContentType)
		words := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(text, ""))), "")
		ok := err == nil && name == r.Encoding
		for _, part := range append(r.Contains, r.Title) { // the pages break lines inside both
			ok = ok && strings.Contains(words, strings.Join(strings.Fields(part), ""))
		}
		if !ok {
			t.Errorf("%s: encoding %s (%v), want %s with title %q and %q", r.ID, name, err, r.Encoding, r.Title, r.Contains)
			continue
		}
		right++
	}
	assert.True(t, right >= minKoreanRows, "%d Korean rows are right, floor %d", right, minKoreanRows)
}
