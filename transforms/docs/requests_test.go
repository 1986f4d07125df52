//go:build !race

// What works here at the same time works in TestJob under the race detector, too.

package docs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
)

// What the same pages cost by their sources, in a first session and in one after it in
// which nothing has changed.
func TestRequestsBySource(t *testing.T) {
	t.Parallel()
	type cost struct{ pages, requests int64 } // of all providers together
	costs := func(r crawlReport) map[string]cost {
		out := map[string]cost{}
		for _, p := range r.Providers {
			require.Equal(t, Done, p.State)
			require.Empty(t, p.Warnings, "the simulated sites are as different as real ones")
			for _, s := range p.Sources {
				out[s.Source] = cost{out[s.Source].pages + s.Pages, out[s.Source].requests + s.Requests}
			}
		}
		return out
	}
	keys := map[string][]string{}
	for _, tt := range []struct {
		name         string
		offer        func(*docsim.Site)
		first, again map[string]cost
	}{
		{"html", func(*docsim.Site) {}, map[string]cost{"llms": {0, 30}, "api_catalog": {0, 15}, "openapi": {0, 16}, "html": {165, 165}}, map[string]cost{"llms": {}, "api_catalog": {}, "openapi": {}, "html": {165, 165}}},
		{"openapi", describe, map[string]cost{"llms": {0, 30}, "openapi": {15, 15}, "html": {165, 165}}, map[string]cost{"llms": {}, "openapi": {15, 15}, "html": {165, 165}}},
		{"github", func(*docsim.Site) {}, map[string]cost{"github": {165, 180}}, map[string]cost{"github": {165, 15}}},
		{"markdown", func(s *docsim.Site) { offerTexts(s, false) },
			map[string]cost{"llms": {0, 30}, "llms_full": {0, 15}, "api_catalog": {0, 15}, "openapi": {0, 16}, "markdown": {150, 150}, "html": {15, 15}}, map[string]cost{"llms": {0, 15}, "llms_full": {}, "api_catalog": {}, "openapi": {}, "markdown": {150, 150}, "html": {15, 15}}},
		{"llms_full", func(s *docsim.Site) { offerTexts(s, true) },
			map[string]cost{"llms": {0, 30}, "llms_full": {150, 15}, "api_catalog": {0, 15}, "openapi": {0, 16}, "html": {15, 15}}, map[string]cost{"llms": {0, 15}, "llms_full": {150, 15}, "api_catalog": {}, "openapi": {}, "html": {15, 15}}},
	} {
		j := newJob(t, dbtest.SQLite(t), webtest.Options{})
		for _, s := range j.sites {
			tt.offer(s)
		}
		if tt.name == "github" {
			fromGitHub(j)
		}
		first, _ := j.run("direct")
		again, _ := j.run("direct")
		for _, got := range []struct {
			name      string
			have, get map[string]cost
		}{{"first session", tt.first, costs(first)}, {"again", tt.again, costs(again)}} {
			var pages, requests int64
			for _, c := range got.get {
				pages, requests = pages+c.pages, requests+c.requests
			}
			t.Logf("%-10s %-14s %d pages, %d requests, %.2f a page: %v", tt.name, got.name, pages, requests, float64(requests)/float64(pages), got.get)
			require.Equal(t, got.have, got.get, "%s, %s", tt.name, got.name)
		}
		d := openDB(t, j.cfg.DB)
		w := &world{t: t, db: d}
		keys[tt.name] = w.strings(`SELECT key FROM docs_pages WHERE content_hash <> '' AND key NOT LIKE '%.json' ORDER BY key`)
		require.Equal(t, keys["html"], keys[tt.name], "the same pages")
	}
}
