package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
)

const hostile = "<script>alert(1)</script>\u202Eevil\x1b[31m"

// toyKind finds what its job's one run found, with text from strangers everywhere.
func toyKind(at time.Time) explore.Kind {
	pages := 0 // of an endless list
	item := func(key string) explore.Item {
		return explore.Item{Key: explore.Query{"name": key}, Title: hostile, URL: "javascript://toys.example/%0Aalert(1)", At: at, Failures: "toys & co",
			Series: &explore.Series{Name: "price", Unit: hostile, Points: []explore.Point{{At: at, Value: 2}, {At: at.AddDate(0, 0, 3), Value: 1.5}, {At: at.AddDate(0, 0, 4), Value: 1.5}}},
			Record: explore.Record{{Name: "name", Doc: "its name", Value: key}, {Name: "home_url", Doc: "its page", Value: "javascript://toys.example/%0Aalert(2)"}, {Name: "shop_url", Doc: "where", Value: "https://toys.example/?a=b&c"}, {Name: "tags", Doc: "words", Value: []string{hostile}},
				{Name: "seen_at", Value: at}}}
	}
	return explore.Kind{Name: "toys", Title: "Toys", One: "toy", About: "Toys by name.", Shown: []string{"name", "tags", "seen_at"},
		Fields: []explore.Field{{Name: "name", Label: "Name", Required: true}, {Name: "day", Label: "Day", Day: true}},
		Keys:   []explore.Field{{Name: "name", Label: "Name", Required: true}},
		Count: func(_ context.Context, _ explore.Source, q explore.Query) (explore.Counts, error) {
			switch q["name"] {
			case "soon":
				return explore.Counts{}, explore.ErrNothingYet
			case "uncounted":
				return explore.Counts{}, errors.New("counting in bucket b")
			}
			p := &explore.Picture{Title: "Toys by name and day", Row: "name", Column: "day", Columns: []string{"2026-03-01", hostile}, Over: q["name"] == "over",
				Measures: []explore.Measure{{Name: "toys", Title: "Toys"}, {Name: "new", Title: "New"}}}
			p.Add(hostile, 0, "toys", 1200).See(at)
			p.Add(hostile, 1, "new", 7)
			return explore.Counts{At: at, Facets: []explore.Facet{explore.FacetOf("name", map[string]int64{hostile: 3, q["name"]: 4, "": 1})}, Picture: p}, nil
		},
		Search: func(_ context.Context, _ explore.Source, q explore.Query) (explore.List, error) {
			switch {
			case strings.Contains(q["name"], "endless") && (q[explore.After] != "" || q["name"] == "endless"):
				if pages++; pages > 1000 {
					return explore.List{}, errors.New("over 1000 pages")
				}
				return explore.List{Next: "2"}, nil
			case q[explore.After] != "" && q["name"] == "lost":
				return explore.List{}, errors.New("reading secret/key: bucket b")
			case q[explore.After] != "":
				return explore.List{Items: []explore.Item{item("last")}}, nil
			}
			switch q["name"] {
			case "lost", "first then endless":
				return explore.List{Items: []explore.Item{item("first")}, Next: "2"}, nil
			case "none":
				return explore.List{Note: "There is no " + hostile}, nil
			case "refused":
				return explore.List{}, explore.Refuse("name: %s is no toy", hostile)
			case "broken":
				return explore.List{}, errors.New("reading secret/key: bucket b")
			case "soon":
				return explore.List{}, explore.ErrNothingYet
			}
			return explore.List{Items: []explore.Item{item("a/b%2Fc?d=é&e")}, Next: "2/3"}, nil
		},
		Show: func(_ context.Context, _ explore.Source, q explore.Query) (explore.Item, error) {
			if q["name"] == "gone" {
				return explore.Item{}, explore.ErrNone
			}
			i := item(q["name"])
			i.Parts = []explore.Part{{Name: "rule", Title: "Rule", Rows: []explore.Record{{{Name: "path", Doc: "d", Value: "/x"}}}},
				{Name: "text", Title: "Text", Text: "line one\n" + hostile, Bytes: 1 << 20, Truncated: true, Stored: "processing/x"},
				{Name: "sizes", Title: "Sizes", Shown: []string{"width", "why"}, Rows: []explore.Record{{{Name: "width", Value: int64(123)}, {Name: "why", Value: strings.Repeat("y", 41)}}}},
				{Name: "like", Title: "Like it", Kind: "toys", Items: []explore.Item{item("other")}, Shown: []string{"name"}}}
			return i, nil
		}}
}

func TestExplore(t *testing.T) {
	const run = "20260302-100000-000-aaaaaaaa"
	at := time.Date(2026, 3, 2, 10, 0, 1, 0, time.UTC)
	all := testJobs()
	for i := range all {
		all[i].Finds = nil
	}
	all[0].Finds = []explore.Kind{toyKind(at)}
	w := newWorld(t, "done", func(set *Settings) { set.Jobs = all })
	w.put(run, all[0].Name, ledger.Done, at.Add(-time.Second), time.Minute, sampleTally())
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))

	list := w.do("GET", "/api/v1/explore/toys?name=x", "").json(t)
	require.Equal(t, "2/3", list["next"])
	item := list["items"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"name": "a/b%2Fc?d=é&e"}, item["key"])
	require.Equal(t, run, item["run_id"])
	require.Equal(t, []any{"toys"}, w.do("GET", "/api/v1/explore", "").json(t)["kinds"])
	require.Equal(t, explore.ErrNothingYet.Error(), w.do("GET", "/api/v1/explore/toys?name=soon", "").json(t)["note"])

	for path, code := range map[string]int{"?name=x&x=1": 400, "": 400, "?name=": 400, "?name=x&day=1": 400, "?name=" + strings.Repeat("x", 2001): 400, "?name=%00": 400, "?name=%ff": 400,
		"?name=refused": 400, "?name=broken": 500, "/item?name=gone": 404, "/item?name=x&after=2": 400, "s": 404} {
		a := w.do("GET", "/api/v1/explore/toys"+path, "")
		require.Equal(t, code, a.code, "%s: %s", path, a.body)
		require.NotContains(t, a.body, "bucket b")
	}

	page := w.do("GET", "/explore/toys?name=x&day=", "", "Accept", "text/html")
	require.Equal(t, http.StatusOK, page.code)
	require.Contains(t, page.body, `href="/explore/toys/item?name=a%2Fb%252Fc%3Fd%3D%C3%A9%26e"`)
	require.Contains(t, page.body, `href="/explore/toys?after=2%2F3&amp;name=x"`)
	require.Contains(t, page.body, `<td data-label="seen at"><time datetime="2026-03-02T10:00:01Z">2026-03-02 10:00:01</time></td>`, "a time in a list")
	shown := w.do("GET", "/explore/toys/item?name=a%2Fb%252Fc%3Fd%3D%C3%A9%26e", "", "Accept", "text/html")
	require.Equal(t, http.StatusOK, shown.code)
	require.Contains(t, shown.body, ">/x</td>")
	require.Contains(t, shown.body, `href="/runs/`+run+`"`)
	require.Contains(t, shown.body, `href="/dead-letters?job=seed&amp;text=toys&#43;%26&#43;co"`)
	require.Contains(t, shown.body, `href="https://toys.example/?a=b&amp;c"`)
	require.Contains(t, shown.body, `line one`+"\n"+`&lt;script&gt;alert(1)&lt;/script&gt;\u202eevil\u001b[31m`)
	require.Contains(t, shown.body, "the beginning of 1.0 MiB")
	require.Contains(t, shown.body, `<tr><td>123</td><td class="text">`+strings.Repeat("y", 41)+`</td></tr>`, "a column of short values stays narrow")
	for _, a := range []answer{page, shown} {
		require.NotContains(t, a.body, "<script>alert")
		require.NotContains(t, a.body, "\u202E")
		require.NotContains(t, a.body, "\x1b")
		require.NotContains(t, a.body, `="javascript:`)
		require.NotContains(t, a.body, "ZgotmplZ", "only addresses of the web become links")
	}
	require.Contains(t, w.do("GET", "/explore/toys?name=none", "", "Accept", "text/html").body, "There is no &lt;script&gt;")
	require.Contains(t, w.do("GET", "/explore", "", "Accept", "text/html").body, `action="/explore/toys"`)
	require.NotContains(t, w.do("GET", "/explore/toys", "", "Accept", "text/html").body, "Nothing is found")
	require.Equal(t, http.StatusNotFound, w.do("GET", "/explore/toys/item?name=gone", "", "Accept", "text/html").code)

	for path, described := range map[string]string{"": "", "/toys?name=x": "/toys", "/toys?name=none": "/toys", "/toys/item?name=x": "/toys/item"} {
		var v any = w.do("GET", "/api/v1/explore"+path, "").json(t)
		require.NoError(t, schemaOf(w, "/api/v1/explore"+described, "get", 200).Validate(v), path)
	}
}

// Counts lead to the lists that they count, by links with the values in them, and whatever strangers wrote stays a text.
func TestCounts(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 1, 0, time.UTC)
	all := testJobs()
	for i := range all {
		all[i].Finds = nil
	}
	all[0].Finds = []explore.Kind{toyKind(at)}
	w := newWorld(t, "done", func(set *Settings) { set.Jobs = all })
	page := func(path string) string {
		t.Helper()
		a := w.do("GET", path, "", "Accept", "text/html")
		require.Equal(t, http.StatusOK, a.code, a.body)
		for _, bad := range []string{"<script>alert", "\u202E", "\x1b", "ZgotmplZ"} {
			require.NotContains(t, a.body, bad)
		}
		return a.body
	}
	heat := page("/explore/toys?name=x")
	require.Contains(t, heat, `<td class="n heat-5"><a href="/explore/toys?day=2026-03-01&amp;name=%3Cscript`)
	require.Contains(t, heat, `>1,200</a></td><td class="n heat-0">0</td><td class="n">1,200</td>`)
	require.Contains(t, heat, `<a href="/explore/toys?measure=new&amp;name=x">New</a>`)
	require.Contains(t, heat, `aria-current="true">x <span class="soft">4</span></a>`)
	require.Contains(t, heat, `<a href="/explore/toys">any</a>`)
	require.Contains(t, heat, `<td class="n" data-label="price">1.5 &lt;script&gt;`)
	require.Contains(t, heat, `aria-label="price 1.5 &lt;script&gt;`)
	require.Contains(t, heat, "Counted ")
	measured := page("/explore/toys?name=x&measure=new")
	require.Contains(t, measured, `>7</a></td><td class="n">7</td>`)
	require.Contains(t, measured, `<a href="/explore/toys/file?format=csv&amp;name=x" download>`, "a search takes no measure")
	over := page("/explore/toys?name=over")
	require.Contains(t, over, `role="img" aria-label="&lt;script&gt;alert(1)&lt;/script&gt;\u202eevil\u001b[31m: 1,200 toys from 2026-03-01 to`)
	require.NotContains(t, page("/explore/toys?name=x&after=2"), "picture-title", "a later page has no picture")
	require.NotContains(t, page("/explore/toys?name=soon"), "picture-title")
	require.Contains(t, page("/explore/toys/item?name=x"), `<figcaption>price 1.5 &lt;script&gt;`)

	uncounted := page("/explore/toys?name=uncounted")
	require.Contains(t, uncounted, "a/b%2Fc?d=é&amp;e", "the list stays")
	require.Contains(t, uncounted, "It could not be counted")
	require.NotContains(t, heat, "It could not be counted")
	require.Equal(t, 500, w.do("GET", "/api/v1/explore/toys/counts?name=uncounted", "").code)

	for path, schema := range map[string]string{"name=x": "", "name=soon": ""} {
		var v any = w.do("GET", "/api/v1/explore/toys/counts?"+path, "").json(t)
		require.NoError(t, schemaOf(w, "/api/v1/explore/toys/counts", "get", 200).Validate(v), schema)
	}
	require.Equal(t, 400, w.do("GET", "/api/v1/explore/toys/counts?name=x&after=2", "").code)

	csv := w.do("GET", "/explore/toys/file?name=x&format=csv", "")
	require.Equal(t, "name,home_url,shop_url,tags,seen_at", strings.SplitN(csv.body, "\n", 2)[0])
	require.Equal(t, 3, strings.Count(csv.body, "\n"), "both pages, and the names")
	require.Equal(t, `attachment; filename="toys.csv"`, csv.header.Get("Content-Disposition"))
	require.Equal(t, 2, strings.Count(w.do("GET", "/explore/toys/file?name=x&format=jsonl", "").body, `"name":"`))
	for path, code := range map[string]int{"?name=x": 400, "?name=x&format=exe": 400, "?format=csv": 400, "?name=broken&format=csv": 500, "?name=none&format=csv": 200} {
		require.Equal(t, code, w.do("GET", "/explore/toys/file"+path, "").code, path)
	}
}

// A file whose search finds hardly anything ends, and says so, before the server ends the connection.
func TestEndlessDownload(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 1, 0, time.UTC)
	all := testJobs()
	all[0].Finds = []explore.Kind{toyKind(at)}
	w := newWorld(t, "done", func(set *Settings) { set.Jobs = all[:1] })
	w.now = func() time.Time { at = at.Add(time.Second); return at }
	a := w.do("GET", "/explore/toys/file?format=csv&name=endless", "")
	require.Equal(t, http.StatusServiceUnavailable, a.code, a.body)
	require.Contains(t, a.body, "the search takes over 2m0s; choose more narrowly")
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { w.do("GET", "/explore/toys/file?format=csv&name=first+then+endless", "") })
	require.Contains(t, w.log.String(), "the search takes over 2m0s")
}
