package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// indexed returns a searcher with an index of two chunks, whose vectors an endpoint makes: the first of them is like each question.
// The endpoint is broken for one question.
func indexed(t *testing.T) (s *searcher, log *bytes.Buffer) {
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
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	log = &bytes.Buffer{}
	return &searcher{x.Keep(), client, slog.New(slog.NewTextHandler(log, nil)), make(chan struct{}, maxSearches)}, log
}

// get asks for a path, with the Host of a loopback server unless headers say otherwise.
func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8788"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The page and the API ask the same index, and pass on what is in it and no markup.
func TestSearch(t *testing.T) {
	s, log := indexed(t)
	h := s.handler("")
	page := get(h, "/?q=%3Cb%3E+--refunds&provider=pay").Body.String()
	for _, has := range []string{`value="&lt;b&gt; --refunds"`, `href="https://pay.example/refunds#how"`, "Refunds &gt; &lt;How&gt;", "Paid back", "fetched 2026-03-02 10:00:00", "All of &lt;it&gt;.", "By words and meaning"} {
		assert.Contains(t, page, has)
	}
	assert.NotContains(t, page, "javascript:")
	assert.Contains(t, get(h, "/").Body.String(), `name="q"`)
	answer := func(query string) (got struct {
		Results   []index.Found
		ByVectors bool `json:"by_vectors"`
	}) {
		w := get(h, "/api/v1/search?"+query)
		require.Equal(t, http.StatusOK, w.Code)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		return got
	}
	found := func(query string) (all []string) {
		got := answer(query)
		assert.True(t, got.ByVectors)
		for _, r := range got.Results {
			all = append(all, r.ID)
		}
		return all
	}
	assert.Equal(t, []string{"a", "b"}, found("q=refunds"))
	assert.Equal(t, []string{"a"}, found("q=refunds&limit=1"))
	assert.Empty(t, found("q=refunds&provider=other"))
	for _, bad := range []string{"", "q=", "q=+", "q=x&limit=0", "q=x&limit=51", "q=x&limit=x", "q=x&limit=", "q=x&provider=..", "q=" + strings.Repeat("x", maxQuestion+1)} {
		assert.Equal(t, http.StatusBadRequest, get(h, "/api/v1/search?"+bad).Code, bad)
	}
	assert.Contains(t, get(h, "/?q=x&limit=51").Body.String(), "limit: use 1 to 50")
	broken := answer("q=broken+refunds")
	assert.False(t, broken.ByVectors)
	assert.Len(t, broken.Results, 1, "words are searched without the endpoint")
	assert.Contains(t, get(h, "/?q=broken+refunds").Body.String(), "By words alone: the endpoint for embeddings failed, the best first.")
	assert.Contains(t, log.String(), "search_by_words_alone")
	for range maxSearches {
		s.slots <- struct{}{}
	}
	assert.Equal(t, http.StatusServiceUnavailable, get(h, "/api/v1/search?"+url.Values{"q": {"x"}}.Encode()).Code)
}

// What fails for another reason than the question is told to the log alone.
func TestSearchFails(t *testing.T) {
	s, log := indexed(t)
	_, err := s.index.DB.ExecContext(t.Context(), `DROP TABLE search_chunks`)
	require.NoError(t, err)
	for _, path := range []string{"/?q=x", "/api/v1/search?q=x"} {
		w := get(s.handler(""), path)
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.NotContains(t, w.Body.String(), "search_chunks")
	}
	assert.Contains(t, log.String(), "search_chunks")
}

// Without a token loopback names alone are answered, and no other address is listened on. With one, it is required.
func TestProtected(t *testing.T) {
	emptyEnv(t)
	s, _ := indexed(t)
	open, closed := s.handler(""), s.handler("sesame")
	for host, code := range map[string]int{"localhost:8788": 200, "[::1]:8788": 200, "127.0.0.1": 200, "evil.example": 421, "192.0.2.1:8788": 421} {
		assert.Equal(t, code, get(open, "/", "Host", host).Code, host)
	}
	basic := &http.Request{Header: http.Header{}}
	basic.SetBasicAuth("anybody", "sesame")
	for given, code := range map[string]int{"": 401, "Bearer sesam": 401, "Bearer ": 401, "Basic x": 401, "Bearer sesame": 200, basic.Header.Get("Authorization"): 200} {
		for _, path := range []string{"/", "/style.css", "/api/v1/search?q=refunds"} {
			w := get(closed, path, "Host", "search.example", "Authorization", given)
			assert.Equal(t, code, w.Code, "%s %s", path, given)
			assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
			assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	listen := func(at string) error { return serve(ended, at, s, &bytes.Buffer{}) }
	require.ErrorContains(t, listen("0.0.0.0:0"), "a token is needed: set "+tokenVariable)
	require.ErrorContains(t, listen(":0"), "a token is needed")
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv(tokenVariable+"_FILE", file)
	require.ErrorContains(t, listen("0.0.0.0:0"), tokenVariable+"_FILE")
	require.NoError(t, os.WriteFile(file, []byte(" \n"), 0o600))
	require.ErrorContains(t, listen("0.0.0.0:0"), "is empty")
	require.NoError(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	require.NoError(t, listen("0.0.0.0:0"))
}
