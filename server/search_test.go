package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/embed"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/index"
)

// indexed gives a server a search index with two chunks, whose vectors an endpoint makes:
// the first of them is like each question. The endpoint is broken for one question.
func indexed(t *testing.T) func(*Settings) {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&asked) != nil || r.Header.Get("Authorization") != "Bearer sk-4711" || strings.HasPrefix(asked.Input[0], "broken") {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,0]}]}`)) // a client that is gone needs no answer
	}))
	t.Cleanup(endpoint.Close)
	client, err := embed.New(endpoint.URL+"/v1", "small", "sk-4711")
	require.NoError(t, err)
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	x, err := index.Open(t.Context(), d, "small")
	require.NoError(t, err)
	require.NoError(t, x.Apply(t.Context(), index.Change{At: time.Now(), Whole: true, Put: []index.Chunk{
		{ID: "b", Provider: "pay", URL: "javascript:alert(1)", Text: "All of <it>."},
	}, Vectors: map[string][]float32{"b": {0, 1}}}))
	require.NoError(t, x.Apply(t.Context(), index.Change{At: time.Now(), Put: []index.Chunk{
		{ID: "a", Provider: "pay", URL: "https://pay.example/refunds", Anchor: "how", Title: "Refunds", Context: "Refunds > <How>", Text: "Paid back", FetchedAt: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)},
	}, Vectors: map[string][]float32{"a": {1, 0}}}))
	return func(set *Settings) {
		set.Embed = client
		set.Open = func(_ context.Context, job string) (explore.Source, error) {
			assert.Equal(t, "docs", job)
			return explore.Source{Store: set.Store, DB: d}, nil
		}
	}
}

// The page and the API ask the same index, and pass on what is in it and no markup. No
// process is started.
func TestSearch(t *testing.T) {
	w := newWorld(t, "done", indexed(t), func(set *Settings) { set.Program = []string{"/none"} })
	page := w.do("GET", "/search?q=%3Cb%3E+--refunds&provider=pay", "", "Accept", "text/html").body
	for _, has := range []string{`value="&lt;b&gt; --refunds"`, `href="https://pay.example/refunds#how"`, "Refunds &gt; &lt;How&gt;", "Paid back", "fetched 2026-03-02 10:00:00", "All of &lt;it&gt;.", "By words and meaning"} {
		assert.Contains(t, page, has)
	}
	assert.NotContains(t, page, "javascript:")
	assert.Contains(t, w.do("GET", "/search", "").body, `name="q"`)
	found := func(query string) (all []string) {
		got := w.do("GET", "/api/v1/search?"+query, "").json(t)
		assert.Equal(t, true, got["by_vectors"])
		for _, r := range got["results"].([]any) {
			all = append(all, r.(map[string]any)["id"].(string))
		}
		return all
	}
	assert.Equal(t, []string{"a", "b"}, found("q=refunds"))
	assert.Equal(t, []string{"a"}, found("q=refunds&limit=1"))
	assert.Empty(t, found("q=refunds&provider=other"))
	for _, bad := range []string{"", "q=", "q=+", "q=x&limit=0", "q=x&limit=51", "q=x&limit=x", "q=x&limit=", "q=x&provider=..", "q=" + strings.Repeat("x", maxQuestion+1)} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/search?"+bad, "").code, bad)
	}
	broken := w.do("GET", "/api/v1/search?q=broken+refunds", "").json(t)
	assert.Equal(t, false, broken["by_vectors"])
	assert.Len(t, broken["results"], 1, "words are searched without the endpoint")
	assert.Contains(t, w.do("GET", "/search?q=broken+refunds", "").body, "By words alone: the endpoint for embeddings failed, the best first.")
	assert.Contains(t, w.log.String(), "search_by_words_alone")
	for range maxSearches {
		w.searcher.slots <- struct{}{}
	}
	assert.Equal(t, http.StatusServiceUnavailable, w.do("GET", "/api/v1/search?"+url.Values{"q": {"x"}}.Encode(), "").code)
}

// Where the docs job has not run with the server's database, or none is named, there is no
// index, until there is one. Other failures are the server's.
func TestNoSearchIndex(t *testing.T) {
	var err error
	good := Settings{}
	w := newWorld(t, "done", indexed(t), func(set *Settings) {
		good = *set
		set.Open = func(ctx context.Context, job string) (explore.Source, error) {
			if err != nil {
				return explore.Source{}, err
			}
			return good.Open(ctx, job)
		}
	})
	for why, code := range map[error]int{explore.ErrNothingYet: http.StatusConflict, explore.Refuse("needs --db, password=hunter2"): http.StatusConflict, errors.New("reading secret/key"): http.StatusInternalServerError} {
		err = why
		a := w.do("GET", "/api/v1/search?q=x", "")
		assert.Equal(t, code, a.code, why)
		assert.NotContains(t, a.body, "secret")
		var v any
		require.NoError(t, json.Unmarshal([]byte(a.body), &v))
		assert.NoError(t, schemaOf(t, "/api/v1/search", "get", code).Validate(v), a.body)
	}
	assert.Contains(t, w.log.String(), "search_refused")
	assert.NotContains(t, w.log.String(), "hunter2")
	err = nil
	assert.Equal(t, http.StatusOK, w.do("GET", "/api/v1/search?q=x", "").code)
}

// The endpoint is that of the environment; half of one is refused.
func TestEmbedClient(t *testing.T) {
	for _, c := range []struct{ url, model, says string }{{"", "", ""}, {"http://127.0.0.1:1/v1", "small", ""}, {"http://127.0.0.1:1/v1", "", "name the endpoint's model"}, {"", "small", "https://host/v1"}} {
		t.Setenv(embed.URLVariable, c.url)
		t.Setenv(embed.ModelVariable, c.model)
		client, err := embedClient()
		if c.says != "" {
			assert.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, embed.URLVariable)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.url != "", client != nil)
	}
}
