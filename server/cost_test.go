package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/price"
)

// cost stores a run that has ended, with what it cost.
func (w *world) cost(id, job string, c ledger.Cost) {
	w.t.Helper()
	w.put(id, job, ledger.Done, time.Now(), time.Minute, sampleTally())
	r, err := ledger.ReadReport(w.t.Context(), w.store, id)
	require.NoError(w.t, err)
	r.Cost = &c
	require.NoError(w.t, ledger.WriteReport(w.t.Context(), w.store, r))
}

func sampleCost() ledger.Cost {
	return ledger.Cost{
		Actual: ledger.Figures{Requests: 123_456, Bytes: 3 << 20, Duration: 61, Calls: price.Calls{Reads: 11, Lists: 12, Writes: 13, Deletes: 14},
			Written: 1500, Read: 2500, Price: &price.Price{Calls: 0.0125, Storage: 0.5, Egress: 0.25}},
		Estimated: &ledger.Figures{Requests: 100_000, Calls: price.Calls{Writes: 15}},
		Basis:     "what the last 2 done runs took",
		Prices:    &price.List{Name: "a <contract>", AsOf: "2026-11-01"},
	}
}

// What a run cost is on its page, actual and estimated.
func TestCost(t *testing.T) {
	w := newWorld(t, "done")
	const newest = "20260302-100000-000-aaaaaaaa"
	w.cost("20260301-100000-000-aaaaaaaa", "seed", ledger.Cost{Actual: ledger.Figures{Requests: 7}})
	w.cost(newest, "seed", sampleCost())
	w.put("20260303-100000-000-aaaaaaaa", "seed", ledger.Cancelled, time.Now(), time.Minute, sampleTally()) // without a cost
	w.tick(t.Context(), time.Now())

	page := w.do("GET", "/runs/"+newest, "").body
	for _, want := range []string{`<th scope="col" class="n">Estimated</th>`,
		`<tr><th scope="row">requests</th><td class="n">123,456</td><td class="n">100,000</td></tr>`,
		`<tr><th scope="row">store: writes</th><td class="n">13</td><td class="n">15</td></tr>`,
		`<tr><th scope="row">price of calls</th><td class="n">$0.0125</td><td class="n">-</td></tr>`,
		"Prices: a &lt;contract&gt;, as of 2026-11-01.", "Basis of the estimate: what the last 2 done runs took."} {
		assert.Contains(t, page, want)
	}
	page = w.do("GET", "/runs/20260301-100000-000-aaaaaaaa", "").body
	assert.Contains(t, page, `<tr><th scope="row">requests</th><td class="n">7</td></tr>`)
	assert.NotContains(t, page, "stimate")
	assert.NotContains(t, w.do("GET", "/runs/20260303-100000-000-aaaaaaaa", "").body, `id="cost-title"`)
}

// The shipped Prometheus rules and the dashboard use only metrics that the server has, and docs/server.md names each.
func TestMetricNames(t *testing.T) {
	descriptions := make(chan *prometheus.Desc, 1000)
	newWorld(t, "done").metrics.registry.Describe(descriptions)
	close(descriptions)
	has := map[string]bool{}
	doc, err := os.ReadFile("../docs/server.md")
	require.NoError(t, err)
	for d := range descriptions {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		if has[name] = true; strings.HasPrefix(name, "seed_engine_") {
			assert.Contains(t, string(doc), "`"+name+"`")
		}
	}
	require.Greater(t, len(has), 25)
	used := regexp.MustCompile(`\b(seed_engine|process)_\w+`)
	for _, file := range []string{"prometheus/rules.yaml", "prometheus/rules_test.yaml", "grafana/seed-engine.json"} {
		b, err := os.ReadFile(filepath.Join("../deploy", file))
		require.NoError(t, err)
		metrics := used.FindAllString(string(b), -1)
		require.NotEmpty(t, metrics, file)
		for _, m := range metrics {
			assert.True(t, has[strings.TrimSuffix(m, "_bucket")], "%s: %s", file, m)
		}
	}
}

// What is counted is at 0 before the first time: else Prometheus sees no increase in it, and
// the first tick that fails raises no alert there.
func TestMetrics(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, hourly))
	w.cost("20260302-100000-000-aaaaaaaa", "seed", sampleCost())
	w.tick(t.Context(), time.Now())
	w.metrics.delivered("slack", "sent")
	w.do("GET", "/", "") // is measured
	text := w.do("GET", "/metrics", "").body
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, want := range []string{
		`seed_engine_schedule_ticks_total{outcome="failed",schedule="hourly"} 0`, `seed_engine_schedule_ticks_total{outcome="missed",schedule="hourly"} 0`,
		`seed_engine_server_errors_total{work="removals"} 0`, `seed_engine_wrong_tokens_total{way="form"} 0`, `seed_engine_runs_started_total{job="seed"} 0`,
		`seed_engine_runs{job="seed",state="done"} 1`, `seed_engine_run_items{item="domains_collected",job="seed"} 38`,
		`seed_engine_run_responses{code="404",job="seed"} 15`, `seed_engine_run_request_failures{job="seed",reason="timeout"} 1`,
		`seed_engine_run_duration_seconds{job="seed"} 60`, `seed_engine_server_leader 1`} {
		assert.Contains(t, text, want+"\n")
	}
	assert.Contains(t, text, "go_goroutines")
	assert.Contains(t, text, "process_cpu_seconds_total")
}
