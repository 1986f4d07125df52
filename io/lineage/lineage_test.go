package lineage

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func schemaOf(t *testing.T) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("testdata/run-event.schema.json")
	require.NoError(t, err)
	return s
}

// environment returns a lookup of the variables.
func environment(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

// The events of a run come in order, as the standard wants them, with what a collector needs.
func TestEvents(t *testing.T) {
	type request struct {
		path, key string
		event     any
	}
	requests := make(chan request, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		event, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		assert.NoError(t, err)
		requests <- request{r.URL.Path, r.Header.Get("Authorization"), event}
		w.WriteHeader(http.StatusCreated)
	}))
	defer collector.Close()
	t.Setenv("OPENLINEAGE_API_KEY", "k3y")
	s, err := FromEnv(environment(map[string]string{"OPENLINEAGE_URL": collector.URL + "/base/", "OPENLINEAGE_NAMESPACE": "crawls"}),
		func(err error) { t.Error(err) })
	require.NoError(t, err)
	at := time.Date(2026, 3, 2, 10, 0, 0, 5e8, time.FixedZone("", 3600))
	in, out := []Dataset{{Namespace: "s3://b", Name: "datasets"}}, []Dataset{{Namespace: "postgres://h:5432", Name: "d.public.t", Rows: 7}}
	s.Send(Event{State: Start, At: at, RunID: "r1", Job: "seed", Inputs: in, Outputs: out[:0]})
	in = []Dataset{{Namespace: "s3://b", Name: "datasets", Rows: 40, Files: 2}}
	s.Send(Event{State: Complete, At: at.Add(time.Minute), RunID: "r1", Job: "seed", Inputs: in, Outputs: out})
	s.Send(Event{State: Fail, At: at, RunID: "r2", Job: "seed", Streaming: true, Error: "no network"})
	s.Send(Event{State: Abort, At: at, RunID: "r2", Job: "seed"})
	s.Close(time.Minute)
	close(requests)
	var states []any
	ids := map[any]int{}
	valid := schemaOf(t)
	for r := range requests {
		require.NoError(t, valid.Validate(r.event))
		e := r.event.(map[string]any)
		require.Equal(t, []string{"/base/api/v1/lineage", "Bearer k3y"}, []string{r.path, r.key})
		require.Equal(t, "crawls", e["job"].(map[string]any)["namespace"])
		states = append(states, e["eventType"], e["eventTime"], e["job"].(map[string]any)["facets"].(map[string]any)["jobType"].(map[string]any)["processingType"])
		ids[e["run"].(map[string]any)["runId"]]++
		if e["eventType"] == "COMPLETE" {
			statistics := e["inputs"].([]any)[0].(map[string]any)["inputFacets"].(map[string]any)["inputStatistics"].(map[string]any)
			require.Equal(t, []string{"40", "2"}, []string{statistics["rowCount"].(interface{ String() string }).String(), statistics["fileCount"].(interface{ String() string }).String()})
		}
	}
	require.Equal(t, []any{"START", "2026-03-02T09:00:00.5Z", "BATCH", "COMPLETE", "2026-03-02T09:01:00.5Z", "BATCH",
		"FAIL", "2026-03-02T09:00:00.5Z", "STREAMING", "ABORT", "2026-03-02T09:00:00.5Z", "BATCH"}, states)
	require.Equal(t, []int{2, 2}, slices.Collect(maps.Values(ids)), "the events of a run have one id")
}

// A collector that refuses, is not there, or never answers costs no time and one warning.
func TestCollectorDown(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	defer hangs.CloseClientConnections()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusForbidden) }))
	defer refuses.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	moved := httptest.NewServer(http.RedirectHandler(refuses.URL, http.StatusTemporaryRedirect)) // where the key must not go
	defer moved.Close()
	for at, want := range map[string]string{hangs.URL: "context canceled", refuses.URL: "403 Forbidden: who are you", gone: "refused", moved.URL: "307 Temporary Redirect"} {
		var warnings []error
		s, err := FromEnv(environment(map[string]string{"OPENLINEAGE_URL": at}), func(err error) { warnings = append(warnings, err) })
		require.NoError(t, err)
		for range 2 {
			s.Send(Event{State: Start, RunID: "r1", Job: "seed"})
		}
		s.Close(200 * time.Millisecond)
		require.Len(t, warnings, 1)
		require.ErrorContains(t, warnings[0], want)
	}
	full := &Sender{queue: make(chan Event, 1), failed: func(e error) { err = e }}
	full.Send(Event{})
	full.Send(Event{})
	require.ErrorContains(t, err, "100 events wait already")
}

// Without a URL nothing is sent; a wrong one is refused before the run.
func TestFromEnv(t *testing.T) {
	for _, of := range []map[string]string{{}, {"OPENLINEAGE_URL": "http://x", "OPENLINEAGE_DISABLED": "true"}} {
		s, err := FromEnv(environment(of), nil)
		require.NoError(t, err)
		require.Nil(t, s)
		s.Send(Event{})
		s.Close(0)
	}
	for _, at := range []string{"localhost:5000", "ftp://x", "http://", ":"} {
		_, err := FromEnv(environment(map[string]string{"OPENLINEAGE_URL": at}), nil)
		require.ErrorContains(t, err, "use one such as http://localhost:5000")
	}
	t.Setenv("OPENLINEAGE_API_KEY", "a")
	t.Setenv("OPENLINEAGE_API_KEY_FILE", "b")
	_, err := FromEnv(environment(map[string]string{"OPENLINEAGE_URL": "http://x"}), nil)
	require.ErrorContains(t, err, "both set")
}
