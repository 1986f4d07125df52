package cli

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/newsfork/seed-engine/io/ledger"
)

// A tracesCollector takes traces as a collector of OpenTelemetry does.
type tracesCollector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*otlp.Span
	tokens []string // Authorization headers
	about  map[string]string
}

func startCollector(t *testing.T, status int) *tracesCollector {
	t.Helper()
	c := &tracesCollector{about: map[string]string{}}
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
		c.mu.Lock()
		defer c.mu.Unlock()
		assert.Equal(t, "/v1/traces", r.URL.Path)
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

func (c *tracesCollector) named(name string) (found []*otlp.Span) {
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func attributes(s *otlp.Span) map[string]any {
	m := map[string]any{}
	for _, a := range s.Attributes {
		m[a.Key] = a.Value.GetStringValue()
		if a.Value.GetStringValue() == "" {
			m[a.Key] = a.Value.GetIntValue()
		}
	}
	return m
}

// A run sends its trace, and those of its visits, to the collector that the environment
// names.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := startCollector(t, http.StatusOK)
	got := start(t, smallBucket(t, false), "--web=demo --runner=direct --host-delay=1ms --report=- --store=b", env(
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20very-secret", "OTEL_TRACES_SAMPLER_ARG=1", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"))
	require.Zero(t, got.code, got.stderr)
	r := report(t, []byte(got.stdout))
	require.NotContains(t, got.stdout+got.stderr, "very-secret")

	assert.Contains(t, c.tokens, "Bearer very-secret")
	assert.Equal(t, "seed-engine", c.about["service.name"])
	assert.Equal(t, "test", c.about["deployment.environment.name"])
	runs, lanes, visits := c.named("run"), c.named("lane"), c.named("visit")
	require.Len(t, runs, 1)
	run := runs[0]
	assert.Equal(t, map[string]any{"seed.run_id": r.RunID, "seed.job": "seed", "seed.runner": "direct"}, attributes(run))
	assert.Contains(t, got.stderr, `"trace_id":"`+hex.EncodeToString(run.TraceId)+`"`)
	require.NotEmpty(t, lanes)
	var hosts int64
	ofLane := map[string]bool{}
	for _, l := range lanes {
		assert.Equal(t, run.TraceId, l.TraceId)
		assert.Equal(t, run.SpanId, l.ParentSpanId)
		assert.Equal(t, otlp.Status_STATUS_CODE_UNSET, l.Status.GetCode())
		hosts += attributes(l)["seed.hosts"].(int64)
		ofLane[string(l.SpanId)] = true
	}
	assert.EqualValues(t, 3, hosts)
	var sources []any
	byTrace := map[string]bool{}
	for _, v := range visits {
		sources = append(sources, attributes(v)["seed.source"])
		assert.NotEqual(t, run.TraceId, v.TraceId)
		if assert.Len(t, v.Links, 1) {
			assert.Equal(t, run.TraceId, v.Links[0].TraceId)
			assert.True(t, ofLane[string(v.Links[0].SpanId)])
		}
		byTrace[string(v.TraceId)] = true
	}
	assert.ElementsMatch(t, []any{"kind-urlset-1.com", "kind-urlset-2.com", "kind-no-robots-3.org"}, sources)
	requests := c.named(http.MethodGet)
	assert.EqualValues(t, r.HTTP.Requests, len(requests))
	statuses := ledger.Counts{}
	for _, q := range requests {
		assert.True(t, byTrace[string(q.TraceId)], "a request belongs to a visit")
		a := attributes(q)
		assert.Equal(t, "https", a["url.scheme"])
		assert.NotEmpty(t, a["server.address"])
		statuses[strconv.FormatInt(a["http.response.status_code"].(int64), 10)]++
	}
	assert.Equal(t, r.HTTP.ByStatus, statuses)
	assert.True(t, slices.ContainsFunc(requests, func(s *otlp.Span) bool { return attributes(s)["url.path"] == "/robots.txt" }))
}

// Without a collector a run is what it was, and the log says that the traces are lost;
// variables that cannot be read are refused before a run.
func TestTracesRefused(t *testing.T) {
	t.Parallel()
	const run = "--web=demo --runner=direct --host-delay=1ms --store=b"
	dir, broken := smallBucket(t, false), startCollector(t, http.StatusBadRequest)
	endpoint := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + broken.URL + "/v1/traces"
	for _, wrong := range []string{"OTEL_TRACES_SAMPLER_ARG=2", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		got := start(t, dir, run, env(endpoint, wrong))
		assert.Equal(t, ExitUsage, got.code, wrong)
		name, _, _ := strings.Cut(wrong, "=")
		assert.Contains(t, got.stderr, name)
	}
	assert.Empty(t, broken.spans)
	got := start(t, dir, run, env(endpoint, "OTEL_TRACES_SAMPLER_ARG=0"))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "400 Bad Request")
	assert.NotEmpty(t, broken.named("run"))
	assert.Empty(t, broken.named("visit"))
}

func env(more ...string) func(*exec.Cmd) {
	return func(c *exec.Cmd) { c.Env = append(c.Environ(), more...) }
}
