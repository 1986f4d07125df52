package docs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// describing is a world whose policy looks for descriptions of APIs.
func describing(t *testing.T, d *db.DB) *world {
	w := newWorld(t, d)
	w.policy.Sources = []policy.Source{policy.OpenAPI, policy.HTML}
	w.pages("a")
	return w
}

// described is a description with one operation.
func described(path, summary string) http.HandlerFunc {
	return typed("application/json", fmt.Sprintf(`{"openapi":"3.1.0","info":{"title":"Demo"},"paths":{%q:{"get":{"summary":%q}}}}`, path, summary))
}

// sourceOf is the source of a page, and why.
func (w *world) sourceOf(path string) string {
	w.t.Helper()
	all := w.strings(`SELECT source || ': ' || reason FROM docs_page_sources WHERE provider = $1 AND key = $2`, w.policy.ProviderID, "https://"+host+path)
	require.Len(w.t, all, 1, path)
	return all[0]
}

// noted are the descriptions and catalogs that were looked for, with what became of them.
func (w *world) noted() []string {
	w.t.Helper()
	return w.strings(`SELECT address || ' ' || state || ' (' || reason || ')' FROM docs_sources WHERE source IN ('openapi', 'api_catalog') ORDER BY address`)
}

// Where no page names a description it is looked for in the usual places that the policy
// allows, after the seeds; the first that has it costs one request, and what is missing
// is not asked for again for four weeks.
func TestDescriptionPlaces(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		at := "https://" + host
		w := describing(t, d)
		w.set("/docs/openapi.yaml", tagged(`"o"`, typed("application/yaml", "openapi: 3.0.0\ninfo: {title: Demo}\npaths: {/things: {get: {summary: All things, description: Mail me@example.com}}}\n")))
		state, _ := w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs", "/.well-known/api-catalog", "/docs/openapi.json", "/docs/openapi.yaml", "/docs/a"}, w.paths())
		require.Equal(t, row{Indexed, "", 1, 200, true}, w.row("/docs/openapi.yaml"))
		require.Equal(t, "openapi: a usual place", w.sourceOf("/docs/openapi.yaml"))
		require.Equal(t, []string{at + "/.well-known/api-catalog missing (status 404)", at + "/docs/openapi.json missing (status 404)", at + "/docs/openapi.yaml found (a usual place)"}, w.noted())
		_, counts := sourcesOf(w)
		require.Equal(t, map[string][2]int64{"api_catalog": {0, 1}, "openapi": {1, 2}, "html": {2, 2}}, counts)
		require.Equal(t, []string{"3"}, w.strings(`SELECT CAST(requested AS TEXT) FROM docs_runs`), "a description is a page, a place that has none is not")
		require.Equal(t, [2]int64{3, 0}, [2]int64{w.crawl.part.stats.Requests, w.crawl.part.stats.Errors})
		require.Equal(t, int64(2), w.crawl.w.Web.Stats().Absent, "what is not there is no failure of the run")
		require.NotContains(t, w.everything(), "me@example.com")

		w.newSession()
		w.run()
		require.Equal(t, []string{"/docs", "/docs/openapi.yaml", "/docs/a"}, w.paths())
		require.Equal(t, NotModified, w.row("/docs/openapi.yaml").Status)
		w.set("/docs/openapi.yaml", status(404)) // then the places are tried again
		w.newSession()
		w.run()
		require.Equal(t, []string{"/docs", "/docs/openapi.yaml", "/docs/a"}, w.paths())
		require.Equal(t, Deleted, w.row("/docs/openapi.yaml").Status)
	})
}

// Only what the policy, robots.txt and earlier answers allow is asked for.
func TestDescriptionPlacesAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, robots  string
		allow, block  []string
		answers       map[string]http.HandlerFunc
		first, second []string // requests besides the pages
	}{
		{name: "all of the host", allow: []string{"/**"}, first: []string{"/.well-known/api-catalog", "/docs/openapi.json", "/docs/openapi.yaml", "/openapi.json", "/openapi.yaml", "/swagger.json", "/v3/api-docs"}},
		{name: "blocked", block: []string{"/docs/*.json", "/.well-known/**"}, first: []string{"/docs/openapi.yaml"}},
		{name: "robots.txt", robots: "User-agent: *\nDisallow: /docs/openapi.json\nDisallow: /.well-known/\n", first: []string{"/docs/openapi.yaml"}},
		{name: "a page for every path", answers: map[string]http.HandlerFunc{"/docs/openapi.json": doc("home"), "/docs/openapi.yaml": typed("application/json", `{"a":1}`)},
			first: []string{"/.well-known/api-catalog", "/docs/openapi.json", "/docs/openapi.yaml"}},
		{name: "503", answers: map[string]http.HandlerFunc{"/docs/openapi.json": status(503)}, first: []string{"/.well-known/api-catalog", "/docs/openapi.json", "/docs/openapi.yaml"}, second: []string{"/docs/openapi.json"}},
		{name: "a redirect off the scope", answers: map[string]http.HandlerFunc{"/docs/openapi.json": status(302, "Location", "/openapi.json"), "/openapi.json": described("/a", "A")},
			first: []string{"/.well-known/api-catalog", "/docs/openapi.json", "/docs/openapi.yaml"}},
		{name: "a redirect", answers: map[string]http.HandlerFunc{"/docs/openapi.json": status(302, "Location", "/docs/v1.json"), "/docs/v1.json": described("/a", "A")},
			first: []string{"/.well-known/api-catalog", "/docs/openapi.json", "/docs/v1.json"}, second: []string{"/docs/v1.json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := describing(t, openDB(t, dbtest.SQLite(t)))
			if tt.allow != nil {
				w.policy.AllowedPathPatterns = tt.allow
			}
			w.policy.BlockedPathPatterns = append(w.policy.BlockedPathPatterns, tt.block...)
			w.set("/robots.txt", text(tt.robots))
			for path, h := range tt.answers {
				w.set(path, h)
			}
			besides := func() (out []string) {
				state, _ := w.run()
				require.Equal(t, Done, state)
				for _, path := range w.paths() {
					if path != "/docs" && path != "/docs/a" && path != "/pricing" {
						out = append(out, path)
					}
				}
				return out
			}
			require.Equal(t, tt.first, besides())
			w.newSession()
			require.Equal(t, tt.second, besides())
			w.time.Advance(29 * 24 * time.Hour)
			w.newSession()
			if tt.second == nil {
				require.Equal(t, tt.first, besides(), "after four weeks they are asked for again")
			}
		})
	}
}

// A page, its header or the API catalog name descriptions. Then no place is tried; what the
// policy does not allow is noted and left.
func TestDescriptionNamed(t *testing.T) {
	t.Parallel()
	at := "https://" + host
	for _, tt := range []struct {
		name    string
		seed    http.HandlerFunc
		answers map[string]http.HandlerFunc
		asked   []string
		source  string
		noted   []string
	}{
		{"Redoc", html(`<html><head><title>API</title></head><body><main><h1>API</h1><p>` + strings.Repeat("text ", 40) + `</p><redoc spec-url="spec.json"></redoc></main></body></html>`),
			map[string]http.HandlerFunc{"/docs/spec.json": described("/a", "A")}, []string{"/docs/", "/docs/spec.json"}, "/docs/spec.json openapi: " + at + "/docs names it",
			[]string{at + "/docs/spec.json named (" + at + "/docs names it)"}},
		{"a header", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `</docs/api>; rel="service-desc", <https://api.example.com/openapi.json>; rel="service-desc"`)
			doc("seed")(w, r)
		}, map[string]http.HandlerFunc{"/docs/api": described("/a", "A")}, []string{"/docs/", "/docs/api"}, "/docs/api openapi: " + at + "/docs names it",
			[]string{"https://api.example.com/openapi.json left (" + at + "/docs names it; it is left: another host: api.example.com)", at + "/docs/api named (" + at + "/docs names it)"}},
		{"a link", doc("seed", "/docs/v2/openapi.yml", "/swagger.json"), map[string]http.HandlerFunc{"/docs/v2/openapi.yml": described("/a", "A")}, []string{"/docs/", "/docs/v2/openapi.yml"},
			"/docs/v2/openapi.yml openapi: " + at + "/docs names it",
			[]string{at + "/docs/v2/openapi.yml named (" + at + "/docs names it)", at + "/swagger.json left (" + at + "/docs names it; it is left: no allowed path pattern matches)"}},
		{"the catalog", doc("seed"), map[string]http.HandlerFunc{"/.well-known/api-catalog": typed("application/linkset+json", `{"linkset":[{"service-desc":[{"href":"/docs/desc"},{"href":"https://other.example/x"}]}]}`), "/docs/desc": described("/a", "A")},
			[]string{"/docs/", "/.well-known/api-catalog", "/docs/desc"}, "/docs/desc openapi: " + at + "/.well-known/api-catalog names it",
			[]string{at + "/.well-known/api-catalog found (it names 1 descriptions that the policy allows)", at + "/docs/desc found (" + at + "/.well-known/api-catalog names it)",
				"https://other.example/x left (" + at + "/.well-known/api-catalog names it; it is left: another host: other.example)"}},
		{"no description", doc("seed", "/docs/openapi.json"), map[string]http.HandlerFunc{"/docs/openapi.json": doc("a page about it")}, []string{"/docs/", "/docs/openapi.json"}, "/docs/openapi.json html: it is no description",
			[]string{at + "/docs/openapi.json named (" + at + "/docs names it)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := describing(t, openDB(t, dbtest.SQLite(t)))
			w.policy.SeedURLs = []string{at + "/docs/"}
			w.set("/docs/", tt.seed)
			for path, h := range tt.answers {
				w.set(path, h)
			}
			state, _ := w.run()
			require.Equal(t, Done, state)
			require.Equal(t, tt.asked, w.paths())
			path, source, _ := strings.Cut(tt.source, " ")
			require.Equal(t, source, w.sourceOf(path))
			require.ElementsMatch(t, tt.noted, w.noted())

			w.newSession()
			w.run()
			again := []string{"/docs/", path}
			require.ElementsMatch(t, again, w.paths(), "neither places nor the catalog")
		})
	}
	w := describing(t, openDB(t, dbtest.SQLite(t)))
	w.policy.Sources = []policy.Source{policy.HTML}
	w.set("/docs", html(`<main><h1>API</h1><p>`+strings.Repeat("text ", 40)+`</p><redoc spec-url="/docs/spec.json"></redoc></main>`))
	w.run()
	require.Equal(t, []string{"/docs"}, w.paths(), "with html alone nothing but the pages is asked for")
}

// The same description in two forms is one page: the first.
func TestDescriptionTwice(t *testing.T) {
	t.Parallel()
	w := describing(t, openDB(t, dbtest.SQLite(t)))
	w.set("/docs", doc("seed", "/docs/openapi.json", "/docs/openapi.yaml"))
	w.set("/docs/openapi.json", tagged(`"j"`, described("/a", "A")))
	w.set("/docs/openapi.yaml", tagged(`"y"`, typed("application/yaml", "openapi: 3.1.0\ninfo: {title: Demo}\npaths: {/a: {get: {summary: A}}}\n")))
	for range 2 {
		w.run()
		require.True(t, w.row("/docs/openapi.json").Content)
		require.Equal(t, row{Skipped, "the same description as https://" + host + "/docs/openapi.json", 1, 200, false}, w.row("/docs/openapi.yaml"))
		w.newSession()
	}
}
