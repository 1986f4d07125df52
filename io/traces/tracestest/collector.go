// Package tracestest has a collector of OpenTelemetry traces for tests. No promise: see docs/library.md.
package tracestest

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes traces at its URL by OTLP over HTTP.
type Collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*otlp.Span
	tokens []string
	about  map[string]string
}

// Start starts a collector that gives every answer the status, until the test ends.
func Start(t testing.TB, status int) *Collector {
	t.Helper()
	c := &Collector{about: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if !assert.NoError(t, err) {
				return
			}
			body = unzipped
		}
		b, err := io.ReadAll(body)
		var got collector.ExportTraceServiceRequest
		if !assert.NoError(t, err) || !assert.NoError(t, proto.Unmarshal(b, &got)) {
			return
		}
		assert.Equal(t, "/v1/traces", r.URL.Path)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tokens = append(c.tokens, r.Header.Get("Authorization"))
		for _, rs := range got.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				c.about[a.Key] = a.Value.GetStringValue()
			}
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// Named returns the spans of a name.
func (c *Collector) Named(name string) (found []*otlp.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Tokens are the Authorization headers that came.
func (c *Collector) Tokens() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens)
}

// About is what the senders say of themselves.
func (c *Collector) About() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.about)
}

// Attributes are those of a span: text, and int64.
func Attributes(s *otlp.Span) map[string]any {
	m := map[string]any{}
	for _, a := range s.Attributes {
		m[a.Key] = a.Value.GetStringValue()
		if a.Value.GetStringValue() == "" {
			m[a.Key] = a.Value.GetIntValue()
		}
	}
	return m
}
