package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// A request to remove a provider is recorded, the pipeline program is started for it, and
// an alert fires from a day before it must be done until there is a receipt.
func TestRemovalRequests(t *testing.T) {
	w := newWorld(t, "done")
	require.NoError(t, w.store.Put(t.Context(), "handoff/docs/acme/1", strings.NewReader("x"), store.PutOptions{})) // it has no policy any more
	now := at(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), w)
	tick := func(after time.Duration) string {
		t.Helper()
		at(now.Add(after), w)
		w.tick(t.Context(), now.Add(after))
		w.background.Wait()
		return w.do("GET", "/api/v1/alerts", "").body
	}
	assert.NotContains(t, tick(0), `"provider":"acme"`)
	for body, want := range map[string]struct {
		code int
		text string
	}{
		`{}`:                            {400, "write the id"},
		`{"provider":"A/b"}`:            {404, "write the id"}, // as a name that nothing is stored of
		`{"provider":"acme","who":"x"}`: {400, "the body is not"},
	} {
		a := w.do("POST", "/api/v1/docs/removals", body)
		assert.Equal(t, want.code, a.code, body)
		assert.Contains(t, a.body, want.text)
	}
	misspelt := w.do("POST", "/api/v1/docs/removals", `{"provider":"stirpe"}`)
	assert.Equal(t, http.StatusNotFound, misspelt.code)
	assert.Contains(t, misspelt.body, "provider: nothing is stored of stirpe; similar ones are stripe, ")
	assert.Empty(t, w.asked())
	a := w.do("POST", "/api/v1/docs/removals", `{"provider":"acme","from":"legal@acme.example","note":"ticket 7"}`)
	require.Equal(t, http.StatusCreated, a.code, a.body)
	one := a.json(t)
	assert.Equal(t, "2026-03-04T09:00:00Z", one["due"])
	assert.Equal(t, a.header.Get("Location"), "/api/v1/docs/removals/"+one["id"].(string))
	assert.Equal(t, "removal_request acme: ticket 7", w.asked()[0])
	assert.NotContains(t, tick(2*time.Minute), `"provider":"acme"`)
	assert.Equal(t, "removals do", w.read("removals-done.txt"), "the program was started")
	assert.NotContains(t, tick(23*time.Hour), `"provider":"acme"`)
	raised := tick(24*time.Hour + time.Second)
	assert.Contains(t, raised, `"provider":"acme"`)
	assert.Contains(t, raised, "everything of it must be removed until 2026-03-04 09:00 UTC")
	assert.Contains(t, w.do("GET", a.header.Get("Location"), "").body, `"receipt":null`)

	e, err := removal.Find(t.Context(), w.store, one["id"].(string))
	require.NoError(t, err)
	_, err = removal.Done(t.Context(), w.store, e, removal.Receipt{DoneAt: now.Add(25 * time.Hour), By: "test", Erased: true})
	require.NoError(t, err)
	assert.Contains(t, tick(26*time.Hour), `"firing":[]`)
	assert.Contains(t, w.do("GET", "/api/v1/docs/removals", "").body, `"in_time":true`)
	assert.Equal(t, 404, w.do("GET", "/api/v1/docs/removals/none", "").code)
	assert.True(t, strings.Contains(w.log.String(), "alert_over"))
}

// A site of another job is removed as a provider is, by the API and by the page, if something of it is kept.
func TestRemovalOfASite(t *testing.T) {
	w := newWorld(t, "done", func(set *Settings) {
		set.Jobs = slices.Clone(set.Jobs)
		i := slices.IndexFunc(set.Jobs, func(j option.Job) bool { return j.Name == "catalog" })
		set.Jobs[i].Removal = &removal.What{Job: "catalog", Kind: "site", Objects: removal.Under("things/")}
		set.Open = func(context.Context, string) (explore.Source, error) { return explore.Source{Store: set.Store}, nil }
	})
	require.NoError(t, w.store.Put(t.Context(), "things/gadgets/1", strings.NewReader("x"), store.PutOptions{}))
	for body, want := range map[string]string{`{"site":"gadget"}`: "site: nothing is stored of gadget", `{"site":"A/b"}`: "site: write the id of a site", `{"site":"gadgets","provider":"stripe"}`: "site: write one name"} {
		a := w.do("POST", "/api/v1/docs/removals", body)
		assert.Contains(t, []int{400, 404}, a.code)
		assert.Contains(t, a.body, want)
	}
	a := w.do("POST", "/api/v1/docs/removals", `{"site":"gadgets","note":"7"}`)
	require.Equal(t, http.StatusCreated, a.code, a.body)
	assert.Contains(t, w.do("GET", "/removals", "").body, "<option>site</option>")
	ask := w.do("GET", "/removals/ask?kind=site&provider=gadgets", "")
	assert.Contains(t, plainText(ask.body), "Remove everything of gadgets?")
	assert.Contains(t, ask.body, `name="kind" value="site"`)
	a = w.form("/removals", "kind=site&provider=gadgets")
	require.Equal(t, http.StatusSeeOther, a.code, a.body)
	all, err := removal.All(t.Context(), w.store)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, e := range all {
		assert.Equal(t, []string{"catalog", "gadgets"}, []string{e.Job, e.Provider})
	}
}
