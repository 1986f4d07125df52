package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
)

type described struct {
	OpenAPI string                    `json:"openapi"`
	Paths   map[string]map[string]any `json:"paths"`
}

// isAPI reports whether a path is one of the API.
func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/") || slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/openapi.json"}, path)
}

// TestEveryRouteIsDescribed holds the API's routes and openapi.json against
// each other.
func TestEveryRouteIsDescribed(t *testing.T) {
	w := newWorld(t, "done")
	var d described
	require.NoError(t, json.Unmarshal([]byte(w.do("GET", "/openapi.json", "").body), &d))
	assert.Equal(t, "3.1.0", d.OpenAPI)
	var have, want []string
	for path, methods := range d.Paths {
		for m := range methods {
			have = append(have, strings.ToUpper(m)+" "+path)
		}
	}
	for _, r := range w.routes() {
		if _, path, _ := strings.Cut(r.Pattern, " "); isAPI(path) {
			want = append(want, r.Pattern)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	assert.Equal(t, want, have)
}

// TestFieldsAreDescribed holds what a request may say against the description.
func TestFieldsAreDescribed(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties           map[string]any `json:"properties"`
				AdditionalProperties any            `json:"additionalProperties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal([]byte(newWorld(t, "done").do("GET", "/openapi.json", "").body), &doc))
	for _, j := range known.JobsOf(testJobs()).Started() {
		s := doc.Components.Schemas[strings.ToUpper(j.Name[:1])+j.Name[1:]+"Request"]
		assert.Equal(t, false, s.AdditionalProperties, j.Name)
		var names []string
		for _, f := range j.Fields() {
			names = append(names, f.Field())
		}
		slices.Sort(names)
		assert.Equal(t, names, slices.Sorted(maps.Keys(s.Properties)), j.Name)
	}
}

// TestAnswersAreAsDescribed holds real answers against their schemas.
func TestAnswersAreAsDescribed(t *testing.T) {
	w := newWorld(t, "wait")
	w.put("20260302-100000-000-aaaaaaaa", "seed", ledger.Done, time.Now(), time.Minute, sampleTally())
	dead := ledger.DeadLetter{Job: "seed", RunID: "20260302-100000-000-aaaaaaaa", Kind: "bad_file", Input: ledger.Input{File: "x"}}
	require.NoError(t, ledger.Put(t.Context(), w.store, dead))
	letter := "/api/v1/dead-letters/seed/" + dead.ID()
	log, err := ledger.NewLog(w.store, "20260302-100000-000-aaaaaaaa", "")
	require.NoError(t, err)
	_, err = log.Write([]byte(`{"event":"run_ended"}` + "\n"))
	require.NoError(t, errors.Join(err, log.Flush(t.Context())))
	warnings, err := ledger.NewLog(w.store, "20260302-100000-000-aaaaaaaa", "host-7")
	require.NoError(t, err)
	const warning = `{"time":"2026-03-02T10:00:01Z","level":"WARN","event":"lease_unsure","error":"<b>"}` + "\n"
	_, err = warnings.Write([]byte(warning))
	require.NoError(t, errors.Join(err, warnings.Flush(t.Context())))
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))
	over, none := "/api/v1/runs/20260302-100000-000-aaaaaaaa", "/api/v1/runs/none"
	id := w.start("/api/v1/docs/runs", "")
	for _, c := range []struct {
		method, path, body, described string
		code                          int
	}{
		{"POST", "/api/v1/seeds/orchestrate", "{}", "/api/v1/seeds/orchestrate", 202},
		{"POST", "/api/v1/seeds/orchestrate", "{}", "/api/v1/seeds/orchestrate", 409},
		{"POST", "/api/v1/seeds/orchestrate", `{"x":1}`, "/api/v1/seeds/orchestrate", 400},
		{"POST", "/api/v1/seeds/orchestrate", `{"x":"` + strings.Repeat("x", maxBody) + `"}`, "/api/v1/seeds/orchestrate", 413},
		{"POST", "/api/v1/seeds/orchestrate", "<x/>", "/api/v1/seeds/orchestrate", 415},
		{"POST", "/api/v1/docs/runs", "", "/api/v1/docs/runs", 409},
		{"POST", "/api/v1/catalog/runs", "{}", "/api/v1/catalog/runs", 202},
		{"POST", "/api/v1/news/runs", "{}", "/api/v1/news/runs", 202},
		{"GET", "/api/v1/runs", "", "/api/v1/runs", 200},
		{"GET", "/api/v1/runs?limit=x", "", "/api/v1/runs", 400},
		{"GET", over, "", "/api/v1/runs/{id}", 200},
		{"GET", "/api/v1/runs/" + id, "", "/api/v1/runs/{id}", 200},
		{"GET", none, "", "/api/v1/runs/{id}", 404},
		{"GET", none + "/log", "", "/api/v1/runs/{id}/log", 404},
		{"POST", "/api/v1/runs/" + id + "/pause", "", "/api/v1/runs/{id}/pause", 202},
		{"POST", "/api/v1/runs/" + id + "/resume", "", "/api/v1/runs/{id}/resume", 202},
		{"POST", "/api/v1/runs/" + id + "/cancel", "", "/api/v1/runs/{id}/cancel", 202},
		{"POST", over + "/cancel", "", "/api/v1/runs/{id}/cancel", 409},
		{"POST", none + "/cancel", "", "/api/v1/runs/{id}/cancel", 404},
		{"GET", over + "/dead-letters", "", "/api/v1/runs/{id}/dead-letters", 200},
		{"POST", over + "/dead-letters/replay", "{}", "/api/v1/runs/{id}/dead-letters/replay", 200},
		{"POST", over + "/dead-letters/replay", `{"ids":[]}`, "/api/v1/runs/{id}/dead-letters/replay", 400},
		{"GET", "/api/v1/dead-letters", "", "/api/v1/dead-letters", 200},
		{"GET", "/api/v1/dead-letters?job=", "", "/api/v1/dead-letters", 400},
		{"GET", "/api/v1/dead-letters?job=x", "", "/api/v1/dead-letters", 400},
		{"GET", "/api/v1/dead-letters?state=shut", "", "/api/v1/dead-letters", 400},
		{"POST", "/api/v1/dead-letters/replay", `{"job":"seed"}`, "/api/v1/dead-letters/replay", 200},
		{"POST", "/api/v1/dead-letters/replay", `{"job":"seed","kind":"other"}`, "/api/v1/dead-letters/replay", 200},
		{"POST", "/api/v1/dead-letters/replay", `{"state":"all"}`, "/api/v1/dead-letters/replay", 400},
		{"GET", letter, "", "/api/v1/dead-letters/{job}/{id}", 200},
		{"GET", letter + "0", "", "/api/v1/dead-letters/{job}/{id}", 404},
		{"POST", letter + "/dismiss", `{"note":"a picture"}`, "/api/v1/dead-letters/{job}/{id}/dismiss", 200},
		{"POST", letter + "/dismiss", `{"note":" "}`, "/api/v1/dead-letters/{job}/{id}/dismiss", 400},
		{"POST", letter + "0/dismiss", `{"note":"a picture"}`, "/api/v1/dead-letters/{job}/{id}/dismiss", 404},
		{"GET", letter, "", "/api/v1/dead-letters/{job}/{id}", 200},
		{"POST", letter + "/reopen", "", "/api/v1/dead-letters/{job}/{id}/reopen", 200},
		{"POST", letter + "/reopen", "", "/api/v1/dead-letters/{job}/{id}/reopen", 409},
		{"GET", "/api/v1/docs/providers", "", "/api/v1/docs/providers", 200},
		{"PUT", "/api/v1/docs/providers/acme", acme, "/api/v1/docs/providers/{id}", 200},
		{"PUT", "/api/v1/docs/providers/acme", acme, "/api/v1/docs/providers/{id}", 428},
		{"PUT", "/api/v1/docs/providers/acme", "{}", "/api/v1/docs/providers/{id}", 400},
		{"GET", "/api/v1/docs/providers/acme", "", "/api/v1/docs/providers/{id}", 200},
		{"POST", "/api/v1/docs/providers/acme/disable", `{"why":"x"}`, "/api/v1/docs/providers/{id}/disable", 200},
		{"POST", "/api/v1/docs/providers/acme/enable", "", "/api/v1/docs/providers/{id}/enable", 200},
		{"POST", "/api/v1/docs/providers/acme/unblock", "", "/api/v1/docs/providers/{id}/unblock", 200},
		{"POST", "/api/v1/docs/providers/acme/unblock", `{"url":"https://docs.acme.example/none"}`, "/api/v1/docs/providers/{id}/unblock", 409},
		{"DELETE", "/api/v1/docs/providers/acme", "", "/api/v1/docs/providers/{id}", 200},
		{"DELETE", "/api/v1/docs/providers/acme", "", "/api/v1/docs/providers/{id}", 404},
		{"DELETE", "/api/v1/docs/providers/stripe", "", "/api/v1/docs/providers/{id}", 409},
		{"POST", "/api/v1/docs/removals", `{"provider":"acme"}`, "/api/v1/docs/removals", 201},
		{"POST", "/api/v1/docs/removals", `{}`, "/api/v1/docs/removals", 400},
		{"GET", "/api/v1/docs/removals", "", "/api/v1/docs/removals", 200},
		{"GET", "/api/v1/docs/removals/none", "", "/api/v1/docs/removals/{id}", 404},
		{"GET", "/healthz", "", "/healthz", 200},
		{"GET", "/readyz", "", "/readyz", 200},
		{"GET", "/openapi.json", "", "/openapi.json", 200},
	} {
		var kind []string
		if c.code == http.StatusUnsupportedMediaType {
			kind = []string{"Content-Type", "application/xml"}
		}
		a := w.do(c.method, c.path, c.body, kind...)
		require.Equal(t, c.code, a.code, "%s %s: %s", c.method, c.path, a.body)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"))
		var v any
		require.NoError(t, json.Unmarshal([]byte(a.body), &v))
		assert.NoError(t, schemaOf(w, c.described, strings.ToLower(c.method), c.code).Validate(v), "%s %s: %s", c.method, c.path, a.body)
	}
	warned := w.do("GET", over, "").json(t)["workers"]
	assert.Equal(t, []any{map[string]any{"worker": "host-7", "lines": []any{map[string]any{"time": "2026-03-02T10:00:01Z", "level": "WARN", "event": "lease_unsure", "error": "<b>"}}}}, warned)
	page := w.do("GET", "/runs/20260302-100000-000-aaaaaaaa", "", "Accept", "text/html").body
	assert.Regexp(t, `(?s)Warnings of workers.*lease unsure.*WARN.*host-7.*error=&lt;b&gt;`, page)
	kept := w.do("GET", over+"/log", "")
	assert.Equal(t, `{"event":"run_ended"}`+"\n"+warning, kept.body)
	assert.Equal(t, "text/plain; charset=utf-8", kept.header.Get("Content-Type"))
	assert.Contains(t, w.do("GET", "/metrics", "").header.Get("Content-Type"), "text/plain")
	assert.Equal(t, http.StatusMethodNotAllowed, w.do("DELETE", over, "").code)
}

// schemaOf compiles the schema of an answer.
func schemaOf(w *world, path, method string, code int) *jsonschema.Schema {
	t, text := w.t, []byte(w.do("GET", "/openapi.json", "").body)
	t.Helper()
	var d described
	require.NoError(t, json.Unmarshal(text, &d))
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("openapi.json", doc))
	escape := strings.NewReplacer("~", "~0", "/", "~1").Replace
	at := fmt.Sprintf("#/paths/%s/%s/responses/%d", escape(path), method, code)
	answer := d.Paths[path][method].(map[string]any)["responses"].(map[string]any)[fmt.Sprint(code)]
	require.NotNil(t, answer, at)
	if ref, ok := answer.(map[string]any)["$ref"].(string); ok {
		at = ref
	}
	s, err := c.Compile("openapi.json" + at + "/content/application~1json/schema")
	require.NoError(t, err, at)
	return s
}
