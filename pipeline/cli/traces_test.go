package cli

import (
	"encoding/hex"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/traces/tracestest"
)

// A run sends its trace, and those of its visits, to the collector that the environment
// names.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := tracestest.Start(t, http.StatusOK)
	got := start(t, smallBucket(t, false), "--web=demo --runner=direct --host-delay=1ms --report=- --store=b", env(
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20very-secret", "OTEL_TRACES_SAMPLER_ARG=1", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"))
	require.Zero(t, got.code, got.stderr)
	r := report(t, []byte(got.stdout))
	require.NotContains(t, got.stdout+got.stderr, "very-secret")

	assert.Contains(t, c.Tokens(), "Bearer very-secret")
	assert.Equal(t, "seed-engine", c.About()["service.name"])
	assert.Equal(t, "test", c.About()["deployment.environment.name"])
	runs, lanes, visits := c.Named("run"), c.Named("lane"), c.Named("visit")
	require.Len(t, runs, 1)
	run := runs[0]
	assert.Equal(t, map[string]any{"seed.run_id": r.RunID, "seed.job": "seed", "seed.runner": "direct"}, tracestest.Attributes(run))
	assert.Contains(t, got.stderr, `"trace_id":"`+hex.EncodeToString(run.TraceId)+`"`)
	require.NotEmpty(t, lanes)
	var hosts int64
	ofLane := map[string]bool{}
	for _, l := range lanes {
		assert.Equal(t, run.TraceId, l.TraceId)
		assert.Equal(t, run.SpanId, l.ParentSpanId)
		assert.Equal(t, otlp.Status_STATUS_CODE_UNSET, l.Status.GetCode())
		hosts += tracestest.Attributes(l)["seed.hosts"].(int64)
		ofLane[string(l.SpanId)] = true
	}
	assert.EqualValues(t, 3, hosts)
	var sources []any
	byTrace := map[string]bool{}
	for _, v := range visits {
		sources = append(sources, tracestest.Attributes(v)["seed.source"])
		assert.NotEqual(t, run.TraceId, v.TraceId)
		if assert.Len(t, v.Links, 1) {
			assert.Equal(t, run.TraceId, v.Links[0].TraceId)
			assert.True(t, ofLane[string(v.Links[0].SpanId)])
		}
		byTrace[string(v.TraceId)] = true
	}
	assert.ElementsMatch(t, []any{"kind-urlset-1.com", "kind-urlset-2.com", "kind-no-robots-3.org"}, sources)
	requests := c.Named(http.MethodGet)
	assert.EqualValues(t, r.HTTP.Requests, len(requests))
	statuses := ledger.Counts{}
	for _, q := range requests {
		assert.True(t, byTrace[string(q.TraceId)], "a request belongs to a visit")
		a := tracestest.Attributes(q)
		assert.Equal(t, "https", a["url.scheme"])
		assert.NotEmpty(t, a["server.address"])
		statuses[strconv.FormatInt(a["http.response.status_code"].(int64), 10)]++
	}
	assert.Equal(t, r.HTTP.ByStatus, statuses)
	assert.True(t, slices.ContainsFunc(requests, func(s *otlp.Span) bool { return tracestest.Attributes(s)["url.path"] == "/robots.txt" }))
}

// Without a collector a run is what it was, and the log says that the traces are lost;
// variables that cannot be read are refused before a run.
func TestTracesRefused(t *testing.T) {
	t.Parallel()
	const run = "--web=demo --runner=direct --host-delay=1ms --store=b"
	dir, broken := smallBucket(t, false), tracestest.Start(t, http.StatusBadRequest)
	endpoint := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + broken.URL + "/v1/traces"
	for _, wrong := range []string{"OTEL_TRACES_SAMPLER_ARG=2", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		got := start(t, dir, run, env(endpoint, wrong))
		assert.Equal(t, ExitUsage, got.code, wrong)
		name, _, _ := strings.Cut(wrong, "=")
		assert.Contains(t, got.stderr, name)
	}
	assert.Empty(t, broken.Named("run"))
	got := start(t, dir, run, env(endpoint, "OTEL_TRACES_SAMPLER_ARG=0"))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "400 Bad Request")
	assert.NotEmpty(t, broken.Named("run"))
	assert.Empty(t, broken.Named("visit"))
}

func env(more ...string) func(*exec.Cmd) {
	return func(c *exec.Cmd) { c.Env = append(c.Environ(), more...) }
}
