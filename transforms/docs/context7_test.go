package docs

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// What Context7 has is left to it, unless a run has --fallback. What it lacks is crawled, and so is
// every provider as long as it cannot be asked, whatever channel the policy names. It is asked once,
// with the key, and only where there is one. The fake answers as the API guide says.
func TestContext7(t *testing.T) {
	j := newJob(t, dbtest.SQLite(t), webtest.Options{})
	var names []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v2/libs/search" || r.Header.Get("Authorization") != "Bearer ctx7sk-test" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		name := r.URL.Query().Get("libraryName")
		names = append(names, name)
		w.Header().Set("Content-Type", "application/json")
		text := `[{"id": "/else/where", "name": "Elsewhere", "totalSnippets": 10}]`
		if name == "Stripe" {
			text = `[{"id": "/stripe/docs", "name": "Stripe", "totalSnippets": 10}]`
		}
		if name == "AWS SES" {
			text = `[{"id": "/websites/docs_aws_amazon_com_ses", "name": "Amazon Simple Email Service", "totalSnippets": 10}]`
		}
		_, _ = io.WriteString(w, text)
	}
	asks := func() (n int) {
		for _, r := range j.sim.Requests() {
			if r.Host == "context7.com" {
				n++
				require.NotContains(t, r.Path, "robots.txt")
			}
		}
		j.sim.ResetLog()
		return n
	}
	j.cfg.Fallback = false
	all := []string{"anthropic", "aws-ses", "stripe", "toss-payments"}
	j.cfg.Policies = slices.DeleteFunc(j.cfg.Policies, func(p policy.Policy) bool { return !slices.Contains(all, p.ProviderID) })
	i := slices.IndexFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.ProviderID == "stripe" })
	j.cfg.Policies[i].Sources = []policy.Source{policy.HTML} // its channel asks Context7 first all the same
	crawled := func() (out []string) {
		r, _ := j.run("direct")
		for _, p := range r.Providers {
			out = append(out, p.Provider)
		}
		return out
	}
	require.Equal(t, all, crawled())
	require.Zero(t, asks(), "without a key nothing is asked")

	w := &world{t: t, db: openDB(t, j.cfg.DB)}
	failures := func() []string {
		return w.strings(`SELECT provider || ': ' || reason FROM docs_sources WHERE source = 'context7' AND state = 'failed' AND provider IN ('anthropic', 'aws-ses')`)
	}
	t.Setenv(context7Key, "ctx7sk-wrong")
	const refused, notAsked = "status 401; is CONTEXT7_API_KEY right?", "not asked, because it failed for anthropic"
	for _, down := range []struct {
		answer http.HandlerFunc
		reason string
	}{
		{status(500), "status 500"}, {status(429), "status 429"}, {typed("application/json", "<html>"), "reading Context7's answer: invalid character '<' looking for beginning of value"},
		{typed("application/json", `{"error": "slow down"}`), "reading Context7's answer: it has no list of libraries"}, {answer, refused},
	} {
		j.sim.Handle("context7.com", down.answer)
		r, _ := j.run("direct")
		require.Equal(t, []string{"anthropic: " + down.reason, "aws-ses: " + notAsked}, failures())
		require.Len(t, r.Providers, 4, "all are crawled")
		require.Equal(t, "aws-ses", r.Providers[1].Provider)
		require.Positive(t, r.Providers[1].TotalPages)
		require.Equal(t, sourceReport{sourceCount{Source: "context7"}, "https://context7.com: failed (" + notAsked + ")"}, r.Providers[1].Sources[0])
		require.Equal(t, 1, asks(), "what fails is not tried for each provider")
	}

	t.Setenv(context7Key, "ctx7sk-test")
	require.Equal(t, []string{"anthropic", "toss-payments"}, crawled())
	require.Equal(t, 4, asks())
	require.Len(t, names, 4)
	require.Equal(t, []string{"anthropic", "toss-payments"}, crawled())
	require.Zero(t, asks(), "it is remembered")
	require.Empty(t, failures())
	require.Equal(t, []string{"aws-ses: Context7 has it as /websites/docs_aws_amazon_com_ses", "stripe: Context7 has it as /stripe/docs"}, w.strings(`SELECT provider || ': ' || reason FROM docs_sources WHERE source = 'context7' AND state = 'found' ORDER BY provider`))

	j.cfg.Fallback = true
	require.Equal(t, all, crawled())
	require.NotContains(t, strings.Join(names, " "), "://")
}
