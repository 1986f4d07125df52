package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
)

// TestBadUsage has command lines that the server refuses before it listens.
func TestBadUsage(t *testing.T) {
	optionsRead := false
	readOptions := func(context.Context, map[string]string) (store.Store, []string, *slog.Logger, explore.Opener,
		func(context.Context, string, []string) error, error) {
		optionsRead = true
		s, err := store.Open(t.Context(), t.TempDir())
		return s, nil, slog.New(slog.DiscardHandler), nil, nil, err
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("schedule: []\n"), 0o600))
	for _, c := range []struct {
		listen, config, says string
	}{
		{"", bad, `unknown field "schedule"`},
		{"", bad + "x", "reading --config"},
		{"8787", "", "write host:port"},
		{"0.0.0.0:8787", "", "a token is needed"},
	} {
		err := Main(t.Context(), c.listen, c.config, readOptions, testJobs())
		var usage interface{ Usage() }
		require.ErrorAs(t, err, &usage, "%v", c)
		assert.ErrorContains(t, err, c.says)
		assert.False(t, optionsRead, "no store is opened, and no sample copied: %v", c)
	}
	refused := errors.New("refused")
	err := Main(t.Context(), "", "", func(context.Context, map[string]string) (store.Store, []string, *slog.Logger, explore.Opener,
		func(context.Context, string, []string) error, error) {
		return nil, nil, nil, nil, nil, refused
	}, testJobs())
	assert.ErrorIs(t, err, refused)
}

// What is counted is at 0 before the first time: else Prometheus sees no increase in it, and
// the first tick that fails raises no alert there.
func TestCountersBeginAtZero(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, hourly))
	w.tick(t.Context(), time.Now())
	text := w.do("GET", "/metrics", "").body
	for _, line := range []string{`seed_engine_schedule_ticks_total{outcome="failed",schedule="hourly"} 0`, `seed_engine_schedule_ticks_total{outcome="missed",schedule="hourly"} 0`,
		`seed_engine_server_errors_total{work="removals"} 0`, `seed_engine_wrong_tokens_total{way="form"} 0`, `seed_engine_runs_started_total{job="seed"} 0`} {
		assert.True(t, strings.Contains(text, line+"\n"), line)
	}
}

// TestDocumentNamesAll checks that docs/server.md names each metric, alert, flag and
// variable of the program.
func TestDocumentNamesAll(t *testing.T) {
	b, err := os.ReadFile("../docs/server.md")
	require.NoError(t, err)
	doc := string(b)
	w := newWorld(t, "done", scheduled(t, hourly))
	w.put("20260302-100000-000-aaaaaaaa", "seed", "done", time.Now(), time.Minute, sampleTally())
	w.tick(t.Context(), time.Now())
	w.metrics.starts.WithLabelValues("seed").Inc()
	w.metrics.ticks.WithLabelValues("hourly", "started").Inc()
	w.metrics.delivered("slack", "sent")
	w.metrics.errors.WithLabelValues("board").Inc()
	w.alarm.State.Firing = map[string]alarm.Breach{"x": {Job: "seed", Rule: "duration"}}
	w.do("GET", "/", "")
	names := map[string]bool{}
	families, err := w.metrics.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "seed_engine_") {
			names[f.GetName()] = true
		}
	}
	require.GreaterOrEqual(t, len(names), 14)
	for _, name := range append(alert.Rules(), alert.MinimumSamples) {
		names[name] = true
	}
	for _, name := range append([]string{"--listen", "--config", DefaultListen}, known.SecretVariables...) {
		names[name] = true
	}
	for _, r := range w.routes() {
		_, path, _ := strings.Cut(r.Pattern, " ")
		if !isAPI(path) {
			continue
		}
		names[regexp.MustCompile(`^/api/v1/(runs/\{id\})?`).ReplaceAllString(path, "/")] = path != "/api/v1/runs/{id}"
	}
	for name, wanted := range names {
		if wanted {
			assert.Contains(t, doc, strings.TrimPrefix(name, "//"), "docs/server.md does not name it")
		}
	}
}
