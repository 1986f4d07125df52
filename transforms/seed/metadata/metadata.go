// Package metadata is the format of domain_metadata.json. Validate checks what
// Marshal writes against domain_metadata.schema.json, which other programs can use
// too. The required fields never change; new ones are optional. No promise: see docs/library.md.
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

	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// Domain is what was collected about one registrable domain for one partition. The
// comments of its fields are a page in docs/reference.
type Domain struct {
	// authority:country:registrable domain. The authority is gov, edu, org, com or other.
	DomainID string `json:"domain_id"`
	// The part of the host name that somebody registered.
	RegistrableDomain string `json:"registrable_domain"`
	// Of the partition, two upper-case letters.
	Country string `json:"country"`
	// Of the partition.
	Category string `json:"category"`
	// When the domain was visited.
	CollectedAt string `json:"collected_at"`
	// demo: all of it is invented, by the simulated web of --web=demo.
	Web string `json:"web,omitempty"`
	// The host that answered: the domain itself, or another one where the domain's https did not answer. Absent: none did.
	HostUsed string    `json:"host_used,omitempty"`
	Site     *Site     `json:"site,omitempty"`
	Robots   Robots    `json:"robots"`
	Sitemap  Sitemap   `json:"sitemap"`
	Source   *Source   `json:"source,omitempty"`
	Feeds    []Feed    `json:"feeds,omitempty"`
	Homepage *Homepage `json:"homepage,omitempty"`
	// What the site says about the use of its pages, as read from what the visit fetched anyway.
	Rights *rights.Rights `json:"rights,omitempty"`
}

// Site says that a wall or nothing answers in place of what an earlier visit got, for less than four weeks.
type Site struct {
	// blocked: it refuses; down: it does not answer or is in maintenance; closed: it is parked, or its name is gone.
	State string `json:"state"`
	// When a visit first found that. Later than collected_at: the row is of an earlier visit, and stays until the site answers again.
	Since string `json:"since"`
	// What an earlier visit got and this one did not: robots, sitemap.
	Lost []string `json:"lost"`
	// What happened.
	Cause string `json:"cause"`
}

// Robots is the answer to /robots.txt.
type Robots struct {
	// HTTP status of the answer; 0: there was none.
	StatusCode int `json:"status_code"`
	// Bytes of the body as stored.
	ContentLength int64 `json:"content_length"`
	// The site has a robots.txt: a status of 2xx with a body.
	Exists bool `json:"exists"`
	// When it was fetched; only with a body.
	FetchedAt string `json:"fetched_at,omitempty"`
	// The sitemaps that it names.
	SitemapURLs []string `json:"sitemap_urls,omitempty"`
	// Why there is no answer, or no status: one of the words below.
	Error string `json:"error,omitempty"`
	// The same in the words of the network, such as an expired certificate's date.
	ErrorText string `json:"error_text,omitempty"`
	// The file is longer than what is stored.
	Truncated bool `json:"truncated,omitempty"`
	// The URL after redirects, when it is another one.
	FinalURL string `json:"final_url,omitempty"`
	// What the answer is: robots, or what came in its place, such as page, challenge or error_page.
	Kind string `json:"kind,omitempty"`
	// Media type that the answer states.
	ContentType string `json:"content_type,omitempty"`
	// HTTP status of the last answer, also one that status_code cannot have.
	LastStatus int `json:"last_status,omitempty"`
	// The Crawl-delay of the group for this crawler, in seconds.
	CrawlDelay *float64 `json:"crawl_delay,omitempty"`
	// Milliseconds from the request to the whole answer.
	ResponseMS *int64 `json:"response_ms,omitempty"`
}

// Sitemap is the first sitemap that was received, or the first candidate.
type Sitemap struct {
	// HTTP status of the sitemap that is described; 404: no candidate answered 2xx, and last_status and error say why.
	StatusCode int `json:"status_code"`
	// Bytes of the body as stored.
	ContentLength int64 `json:"content_length"`
	// A candidate answered 2xx with a body, which may be a web page.
	Exists bool `json:"exists"`
	// The answer is a sitemap: the site has one.
	Parsed bool `json:"parsed,omitempty"`
	// When it was fetched; only with a body.
	FetchedAt string `json:"fetched_at,omitempty"`
	// Entries of the sitemap; absent when they cannot be counted.
	URLCount *int64 `json:"url_count,omitempty"`
	// Its address, or that of the first candidate.
	URL string `json:"url"`
	// Why there is no answer, or no status: one of the words below.
	Error string `json:"error,omitempty"`
	// What the answer is: urlset, index, rss, atom or text, or what came in place of a sitemap, such as page, soft_404 or challenge.
	Kind string `json:"kind,omitempty"`
	// Media type that the answer states.
	ContentType string `json:"content_type,omitempty"`
	// HTTP status of the answer; where no candidate answered 2xx, of the first that is neither 404 nor 410, else of the last.
	LastStatus int `json:"last_status,omitempty"`
	// The URL after redirects, when it is another one.
	FinalURL string `json:"final_url,omitempty"`
	// The file is longer than what is stored.
	Truncated bool `json:"truncated,omitempty"`
	// Of an index: sitemaps that were read.
	ChildCount *int64 `json:"child_count,omitempty"`
	// Entries of all sitemaps that were read, without indexes: those that robots.txt names, and with --follow-index those of an index.
	TotalURLCount *int64 `json:"total_url_count,omitempty"`
	// total_url_count is less than what there is: a sitemap was not read to its end, or not at all.
	Partial bool `json:"partial,omitempty"`
	// The sitemaps that robots.txt names, in its order, up to --max-child-sitemaps.
	Sitemaps []Counted `json:"sitemaps,omitempty"`
	// Milliseconds from the request to the whole answer.
	ResponseMS *int64 `json:"response_ms,omitempty"`
}

// Counted is a sitemap that robots.txt names.
type Counted struct {
	// Its address.
	URL string `json:"url" parquet:"url"`
	// What the answer is, as in kind of sitemap; absent: there was none.
	Kind string `json:"kind,omitempty" parquet:"kind,dict"`
	// Its entries; absent when they cannot be counted.
	Count *int64 `json:"count,omitempty" parquet:"count,optional"`
}

// Source is the record from which this partition has the domain.
type Source struct {
	// Key of the raw file.
	RawFilePath string `json:"raw_file_path"`
	// Number of the record in that file, from 0.
	RecordIndex *int `json:"record_index,omitempty"`
	// The record's domain_id as it is given, also an invalid one.
	DomainID string `json:"domain_id,omitempty"`
	// The record's confidence, from 0 to 1.
	Confidence *float64 `json:"confidence,omitempty"`
	// The record's liveness_status: alive, unstable, blocked or dead.
	LivenessStatus string `json:"liveness_status,omitempty"`
	// The record's content_hints.
	ContentHints []string `json:"content_hints,omitempty"`
	// The record's discovery_method: manual, google_search or crtsh.
	DiscoveryMethod string `json:"discovery_method,omitempty"`
}

// Feed is one RSS or Atom feed of the domain; only with --feeds.
type Feed struct {
	// Its address.
	URL string `json:"url"`
	// HTTP status of the answer; 0: there was none.
	StatusCode int `json:"status_code"`
	// Bytes of the body as stored.
	ContentLength int64 `json:"content_length"`
	// There is a feed at this address.
	Exists bool `json:"exists"`
	// When it was fetched.
	FetchedAt string `json:"fetched_at,omitempty"`
	// rss or atom.
	Kind string `json:"kind,omitempty"`
	// Its entries.
	ItemCount *int64 `json:"item_count,omitempty"`
	// Why there is no answer, or no status: one of the words below.
	Error string `json:"error,omitempty"`
	// The file is longer than what is stored.
	Truncated bool `json:"truncated,omitempty"`
	// Milliseconds from the request to the whole answer.
	ResponseMS *int64 `json:"response_ms,omitempty"`
}

// Homepage is the answer to a request for the domain's root page; only with --homepage.
type Homepage struct {
	// The root page's address.
	URL string `json:"url"`
	// HTTP status of the answer; 0: there was none.
	StatusCode int `json:"status_code"`
	// Bytes of the body as stored.
	ContentLength int64 `json:"content_length"`
	// There is a page: a status of 2xx with a body.
	Exists bool `json:"exists"`
	// When it was fetched; only with a body.
	FetchedAt string `json:"fetched_at,omitempty"`
	// Why there is no answer, or no status: one of the words below.
	Error string `json:"error,omitempty"`
	// The page is longer than what is stored.
	Truncated bool `json:"truncated,omitempty"`
	// The URL after redirects, when it is another one.
	FinalURL string `json:"final_url,omitempty"`
	// Milliseconds from the request to the whole answer.
	ResponseMS *int64 `json:"response_ms,omitempty"`
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
	Fields []field
	Err    error // the validator's own error
}

// field is one broken place.
type field struct {
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
		e.Fields = append(e.Fields, field{Path: unit.InstanceLocation, Reason: unit.Error.String()})
	}
}
