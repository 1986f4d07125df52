package launch

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jobManager is a fake of the part of Flink's REST API that is read; its fields are
// named as in https://nightlies.apache.org/flink/flink-docs-release-1.19/docs/ops/rest_api/.
func jobManager(t *testing.T, total, free, buffers int) (address string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/overview", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"taskmanagers":1,"slots-total":%d,"slots-available":%d,"jobs-running":1}`, total, free)
	})
	mux.HandleFunc("/taskmanagers", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"taskmanagers":[{"id":"host:1-a/b","slotsNumber":%d,"freeSlots":%d}]}`, total, free)
	})
	mux.HandleFunc("/taskmanagers/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "host:1-a/b" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":"host:1-a/b","slotsNumber":%d,"metrics":{"heapUsed":1,"nettyShuffleMemorySegmentsTotal":%d}}`, total, buffers)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// What would keep a job from starting is said before the run.
func TestLookAtFlink(t *testing.T) {
	for name, c := range map[string]struct {
		total, free, buffers, parallelism int
		want                              []string
	}{
		"enough":      {4, 4, 6144, 4, nil},
		"few slots":   {4, 1, 6144, 4, []string{`"event":"few_free_slots","free":1,"total":4,"parallelism":4`}},
		"no slots":    {0, 0, 0, 4, []string{`"free":0,"total":0`}},
		"few buffers": {2, 2, 2048, 2, []string{`"event":"few_network_buffers","taskmanager":"host:1-a/b","buffers":2048,"wanted":3072`}},
		"192 MiB":     {2, 2, 6144, 2, nil},
		"one slot":    {2, 2, 100, 1, nil}, // no exchange between TaskManagers
		"both":        {2, 1, 100, 2, []string{"few_free_slots", "few_network_buffers"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, fmt.Sprintf("--runner=flink --parallelism=%d --environment_type=PROCESS --endpoint=x:1", c.parallelism))
			o.FlinkREST = jobManager(t, c.total, c.free, c.buffers)
			require.NoError(t, o.checkFlinkREST())
			var out bytes.Buffer
			log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.MessageKey {
					a.Key = "event"
				}
				return a
			}}))
			require.NoError(t, o.lookAtFlink(t.Context(), log))
			require.Equal(t, len(c.want), strings.Count(out.String(), "\n"), out.String())
			for _, want := range c.want {
				require.Contains(t, out.String(), want)
			}
			require.Equal(t, fmt.Sprintf("waiting for slots: %d of %d are free", c.free, c.total), o.slotsNow(t.Context()))
		})
	}
	o := parsed(t, "--runner=flink --parallelism=2 --environment_type=PROCESS --endpoint=x:1")
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	require.NoError(t, o.lookAtFlink(t.Context(), quiet), "without an address nothing is asked")
	require.Empty(t, o.slotsNow(t.Context()))
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, at := range []string{"127.0.0.1:1", strings.TrimPrefix(other.URL, "http://")} {
		o.FlinkREST = at
		require.ErrorContains(t, o.lookAtFlink(t.Context(), quiet), "--flink-rest="+at+": no JobManager of Flink answers there")
	}
	o.FlinkREST = "nowhere"
	require.ErrorContains(t, o.checkFlinkREST(), "write host:port")
	o.FlinkREST, o.Runner = "x:1", "spark"
	require.ErrorContains(t, o.checkFlinkREST(), "is for --runner=flink")
}
