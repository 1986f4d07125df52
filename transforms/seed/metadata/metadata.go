// Package metadata is the format of domain_metadata.json. Validate checks what
// Marshal writes against domain_metadata.schema.json, which other programs can use
// too. The required fields never change; new ones are optional.
package metadata

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Domain is what was collected about one registrable domain for one partition.
// Times are RFC 3339 in UTC, see Timestamp; lengths are in bytes as stored.
type Domain struct {
	DomainID          string    `json:"domain_id"`
	RegistrableDomain string    `json:"registrable_domain"`
	Country           string    `json:"country"` // the partition's, upper case
	Category          string    `json:"category"`
	CollectedAt       string    `json:"collected_at"`
	Robots            Robots    `json:"robots"`
	Sitemap           Sitemap   `json:"sitemap"`
	Source            *Source   `json:"source,omitempty"`
	Feeds             []Feed    `json:"feeds,omitempty"`
	Homepage          *Homepage `json:"homepage,omitempty"`
}

// Robots is the response to /robots.txt. StatusCode 0 means that there was none.
type Robots struct {
	StatusCode    int      `json:"status_code"`
	ContentLength int64    `json:"content_length"`
	Exists        bool     `json:"exists"`               // 2xx with a body
	FetchedAt     string   `json:"fetched_at,omitempty"` // only with a body
	SitemapURLs   []string `json:"sitemap_urls,omitempty"`
	Error         string   `json:"error,omitempty"` // of a closed set, see CrawlDelay
	Truncated     bool     `json:"truncated,omitempty"`
	FinalURL      string   `json:"final_url,omitempty"`
	CrawlDelay    *float64 `json:"crawl_delay,omitempty"` // seconds
	ResponseMS    *int64   `json:"response_ms,omitempty"`
}

// Sitemap is the first sitemap that was received, or the first candidate with status 404,
// or with 0 if there was no response at all.
type Sitemap struct {
	StatusCode    int    `json:"status_code"`
	ContentLength int64  `json:"content_length"`
	Exists        bool   `json:"exists"`
	FetchedAt     string `json:"fetched_at,omitempty"`
	URLCount      *int64 `json:"url_count,omitempty"` // absent when not parseable
	URL           string `json:"url"`
	Error         string `json:"error,omitempty"`
	Kind          string `json:"kind,omitempty"` // urlset, index, rss, atom or text
	Truncated     bool   `json:"truncated,omitempty"`
	ChildCount    *int64 `json:"child_count,omitempty"`     // children of an index that were read
	TotalURLCount *int64 `json:"total_url_count,omitempty"` // over those children
	ResponseMS    *int64 `json:"response_ms,omitempty"`
}

// Source is the record from which this partition has the domain.
type Source struct {
	RawFilePath string `json:"raw_file_path"`
	RecordIndex *int   `json:"record_index,omitempty"` // from 0
}

// Feed is one RSS or Atom feed of the domain.
type Feed struct {
	URL           string `json:"url"`
	StatusCode    int    `json:"status_code"`
	ContentLength int64  `json:"content_length"`
	Exists        bool   `json:"exists"`
	FetchedAt     string `json:"fetched_at,omitempty"`
	Kind          string `json:"kind,omitempty"` // rss or atom
	ItemCount     *int64 `json:"item_count,omitempty"`
	Error         string `json:"error,omitempty"`
	Truncated     bool   `json:"truncated,omitempty"`
	ResponseMS    *int64 `json:"response_ms,omitempty"`
}

// Homepage is the response to a request for the domain's root page.
type Homepage struct {
	URL           string `json:"url"`
	StatusCode    int    `json:"status_code"`
	ContentLength int64  `json:"content_length"`
	Exists        bool   `json:"exists"`
	FetchedAt     string `json:"fetched_at,omitempty"`
	Error         string `json:"error,omitempty"`
	Truncated     bool   `json:"truncated,omitempty"`
	FinalURL      string `json:"final_url,omitempty"`
	ResponseMS    *int64 `json:"response_ms,omitempty"`
}

const timestamp = "2006-01-02T15:04:05.000Z"

// Timestamp writes a time as JavaScript's toISOString does: UTC, milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format(timestamp) }

// Marshal writes d as JSON.stringify(d, null, 2) would: indented by two
// spaces, no line end after it, no HTML escapes.
func Marshal(d Domain) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("writing the metadata of %s: %w", d.DomainID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

//go:embed domain_metadata.schema.json
var schemaText []byte

// Schema returns the JSON Schema (2020-12) of domain_metadata.json.
func Schema() []byte { return bytes.Clone(schemaText) }

var compiled = sync.OnceValue(func() *jsonschema.Schema {
	const name = "domain_metadata.schema.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		panic("metadata: the embedded schema is not JSON: " + err.Error())
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // date-time and uri are checked, not only noted
	if err := c.AddResource(name, doc); err != nil {
		panic("metadata: adding the embedded schema: " + err.Error())
	}
	return c.MustCompile(name)
})

// Error has the fields that break the schema. A retry would fail in the same way.
type Error struct {
	Fields []Field
	Err    error // the validator's own error
}

// Field is one broken place.
type Field struct {
	Path   string // a JSON Pointer: /robots/status_code
	Reason string
}

func (e *Error) Error() string {
	words := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		words[i] = f.Path + ": " + f.Reason
	}
	return "metadata breaks its schema: " + strings.Join(words, "; ")
}

// Unwrap returns the validator's own error.
func (e *Error) Unwrap() error { return e.Err }

// Validate checks the JSON form of d against Schema. It returns an
// *Error with the fields that break it.
func Validate(d Domain) error {
	if usual(d) {
		return nil
	}
	return validateBySchema(d)
}

// validateBySchema validates with the schema itself.
func validateBySchema(d Domain) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("writing the metadata of %s: %w", d.DomainID, err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("reading back the metadata of %s: %w", d.DomainID, err)
	}
	err = compiled().Validate(value)
	if err == nil {
		return nil
	}
	broken := &Error{Err: err}
	if v, ok := err.(*jsonschema.ValidationError); ok { //nolint:errorlint // the validator returns it bare
		broken.collect(v.BasicOutput())
	}
	return broken
}

func (e *Error) collect(unit *jsonschema.OutputUnit) {
	for i := range unit.Errors {
		e.collect(&unit.Errors[i])
	}
	if len(unit.Errors) == 0 && unit.Error != nil {
		e.Fields = append(e.Fields, Field{Path: unit.InstanceLocation, Reason: unit.Error.String()})
	}
}
