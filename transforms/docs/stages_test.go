package docs

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
)

func init() {
	register.Function2x2(hostText)
	register.Function2x1(outcomeText)
	register.Function1x1(tallyText)
	register.Function1x3(hostOfText)
	register.Function1x3(outcomeOfText)
}

// What stages emit, as text that lanetest.Equals compares.

func hostText(lane int, h hostVisits) (string, error) {
	b, err := json.Marshal(h)
	return fmt.Sprintf("%d %s", lane, b), err
}

func outcomeText(session string, v outcome) string {
	return fmt.Sprintf("%s %s %s %s", session, v.Provider, v.State, v.Reason)
}

func tallyText(ledger.Tally) string { return "tally" }

// hostOfText and outcomeOfText make inputs of JSON; the session is "s1".
func hostOfText(text string) (int, hostVisits, error) {
	var h hostVisits
	err := json.Unmarshal([]byte(text), &h)
	return 1, h, err
}

func outcomeOfText(text string) (string, outcome, error) {
	var v outcome
	err := json.Unmarshal([]byte(text), &v)
	return "s1", v, err
}

func inJSON(t *testing.T, values ...any) (texts []string) {
	t.Helper()
	for _, v := range values {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		texts = append(texts, string(b))
	}
	return texts
}

// stage runs a part of the graph on its own, in the run r1.
func (j *job) stage(t *testing.T, build func(beam.Scope, Config)) {
	t.Helper()
	cfg := j.cfg
	cfg.Lane.RunID = "r1"
	defer func() { require.NoError(t, lane.Close("r1")) }() // also of one that fails
	ptest.BuildAndRun(t, func(s beam.Scope) { build(s, cfg) })
}

func TestListStage(t *testing.T) {
	j := newJob(t, dbtest.SQLite(t), webtest.Options{})
	j.cfg.Lanes, j.cfg.Policies = 2, j.cfg.Policies[:4]
	p := j.cfg.Policies
	p[1].Terms = policy.Prohibited
	var want []string
	for i, of := range []policy.Policy{p[0], p[2], p[3]} {
		want = append(want, fmt.Sprintf("%d %s", i%2, inJSON(t, hostVisits{of.Host(), "r1", []string{of.ProviderID}})[0]))
	}
	j.stage(t, func(s beam.Scope, cfg Config) {
		hosts, tallies := List(s, cfg)
		lanetest.Equals(s, beam.ParDo(s, hostText, hosts), want...)
		lanetest.Equals(s, lanetest.Counts(s, tallies), "providers 3")
	})
	require.Empty(t, j.sim.Requests())
}

func TestVisitStage(t *testing.T) {
	j := newJob(t, dbtest.SQLite(t), webtest.Options{})
	d := openDB(t, j.cfg.DB)
	_, _, err := beginSession(t.Context(), d, "s1", time.Now())
	require.NoError(t, err)
	p := j.cfg.Policies
	hosts := inJSON(t, hostVisits{p[0].Host(), "s1", []string{p[0].ProviderID}}, hostVisits{p[2].Host(), "s1", []string{p[2].ProviderID}})
	j.stage(t, func(s beam.Scope, cfg Config) {
		visited, tallies := Visit(s, cfg, beam.ParDo(s, hostOfText, beam.CreateList(s, hosts)))
		lanetest.Equals(s, beam.ParDo(s, outcomeText, visited), "s1 "+p[0].ProviderID+" done ", "s1 "+p[2].ProviderID+" done ", "s1   ")
		lanetest.Equals(s, lanetest.Counts(s, tallies), "pages_fetched 22", "pages_new 22", "chunks 88",
			"pages_updated 0", "pages_unchanged 0", "pages_deleted 0", "pages_skipped 0", "pages_failed 0", "pages_blocked 0", "pages_reserved 0")
	})
	for _, r := range j.sim.Requests() {
		require.Contains(t, []string{p[0].Host(), p[2].Host()}, r.Host)
	}
}

// Conclude ends the session when no provider is left open in it.
func TestConcludeStage(t *testing.T) {
	for name, c := range map[string]struct {
		last   outcome
		counts []string
		ended  bool
	}{
		"all are done":       {outcome{"", string(Done), ""}, nil, true},
		"one is abandoned":   {outcome{"", string(Held), "Retry-After: 3600"}, []string{"providers_not_done 1"}, true},
		"one is unreachable": {outcome{"", string(Unreachable), "its robots.txt: dns"}, []string{"providers_not_done 1"}, true},
		"one is open":        {outcome{"", string(Open), ""}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, dbtest.SQLite(t), webtest.Options{})
			j.cfg.Policies = j.cfg.Policies[:2]
			d := openDB(t, j.cfg.DB)
			_, _, err := beginSession(t.Context(), d, "s1", time.Now())
			require.NoError(t, err)
			c.last.Provider = j.cfg.Policies[1].ProviderID
			visited := inJSON(t, outcome{}, outcome{j.cfg.Policies[0].ProviderID, string(Done), ""}, c.last)
			j.stage(t, func(s beam.Scope, cfg Config) {
				tallies := Conclude(s, cfg, beam.ParDo(s, outcomeOfText, beam.CreateList(s, visited)))
				lanetest.Equals(s, lanetest.Counts(s, tallies), c.counts...)
				lanetest.Equals(s, beam.ParDo(s, tallyText, tallies), "tally")
			})
			var left int
			require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM docs_sessions WHERE `+d.Never("finished_at")).Scan(&left))
			require.Equal(t, map[bool]int{true: 0, false: 1}[c.ended], left)
			r, err := ReadReport(t.Context(), j.store, "r1")
			require.NoError(t, err)
			require.Equal(t, "s1", r.Session)
			progress, err := ledger.ReadProgress(t.Context(), j.store, "r1")
			require.NoError(t, err)
			require.Empty(t, progress.Lanes)
		})
	}
}
