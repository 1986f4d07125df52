package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// plainText is a page without its markup.
func plainText(page string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.NewReplacer("</time", "</time", "</", " </").Replace(page), "")), " ")
}

// On its pages a provider is added, changed, disabled and removed as over HTTP: the same
// checks, versions and audit lines. A text with faults comes back with them.
func TestProviderPages(t *testing.T) {
	w := newWorld(t, "done")
	at(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), w)
	send := func(path string, form url.Values) answer {
		t.Helper()
		return w.form(path, form.Encode())
	}
	goes := func(to string, a answer) {
		t.Helper()
		require.Equal(t, http.StatusSeeOther, a.code, plainText(a.body))
		require.Equal(t, to, a.header.Get("Location"))
	}
	show := func(path string) string {
		t.Helper()
		a := w.do("GET", path, "")
		require.Equal(t, http.StatusOK, a.code, a.body)
		return a.body
	}
	const text = "# by hand\nprovider_id: acme\nname: Acme\nseed_urls: [https://docs.acme.example/]\nallowed_path_patterns: [/guide/**]\nmax_pages: 50\n"
	list := plainText(show("/providers"))
	assert.Contains(t, list, "All 15")
	assert.Contains(t, list, "stripe Stripe context7 shipped – – –")

	bad := send("/providers", url.Values{"policy": {strings.ReplaceAll(text, "50", "501") + "max_page: 3\n"}})
	assert.Equal(t, http.StatusBadRequest, bad.code)
	assert.Contains(t, plainText(bad.body), `Line 7: unknown field`)
	bad = send("/providers", url.Values{"policy": {strings.ReplaceAll(strings.ReplaceAll(text, "50", "501"), "https", "ftp")}})
	assert.Contains(t, plainText(bad.body), `Line 6: max_pages: 501 is outside 1 to 500`)
	assert.Contains(t, plainText(bad.body), `Line 4: seed_urls[0]: &#34;ftp://docs.acme.example/&#34;; use https`)
	assert.Contains(t, bad.body, `aria-invalid="true"`)
	assert.Contains(t, bad.body, "# by hand\nprovider_id: acme", "what was written is still there")
	assert.Contains(t, bad.body, `<details class="card" open>`)
	bad = send("/providers", url.Values{"policy": {strings.ReplaceAll(text, ": acme", ": stripe")}})
	assert.Contains(t, plainText(bad.body), "there is a provider stripe already")
	assert.Empty(t, w.asked())

	goes("/providers/acme", send("/providers", url.Values{"policy": {strings.ReplaceAll(text, "\n", "\r\n")}}))
	page := show("/providers/acme")
	assert.Contains(t, page, "# by hand\nprovider_id: acme", "with its comment")
	assert.Contains(t, plainText(page), "added here, version 1 of 2026-03-02 09:00:00 by local from")
	goes("/providers/acme", send("/providers/acme", url.Values{"version": {"1"}, "policy": {strings.ReplaceAll(text, "50", "70")}}))
	page = plainText(show("/providers/acme"))
	assert.Contains(t, page, "provider edit max_pages: 50 → 70")
	assert.Contains(t, page, "provider add provider_id: – → &#34;acme&#34;")
	late := send("/providers/acme", url.Values{"version": {"1"}, "policy": {strings.ReplaceAll(text, "50", "80")}})
	assert.Equal(t, http.StatusPreconditionFailed, late.code)
	assert.Contains(t, plainText(late.body), "has been changed since you read it")
	assert.Contains(t, late.body, "max_pages: 80", "what was written is still there")
	assert.Contains(t, plainText(send("/providers/acme", url.Values{"version": {"2"}, "policy": {strings.ReplaceAll(text, ": acme", ": emca")}}).body), "the policy names emca")

	goes("/providers/acme", send("/providers/acme/disable", url.Values{"version": {"2"}, "why": {"they asked us"}}))
	assert.Contains(t, plainText(show("/providers/acme")), "disabled it was disabled: they asked us")
	assert.Contains(t, plainText(show("/providers")), "acme Acme disabled it was disabled: they asked us added here 3 2026-03-02 09:00:00")
	assert.Equal(t, http.StatusPreconditionFailed, send("/providers/acme/enable", url.Values{"version": {"2"}}).code)
	goes("/providers/acme", send("/providers/acme/enable", url.Values{"version": {"3"}}))
	confirm := show("/providers/acme/remove")
	assert.Contains(t, plainText(confirm), "Remove provider acme? It is not crawled any more.")
	assert.Contains(t, confirm, `name="version" value="4"`)
	goes("/providers", send("/providers/acme/remove", url.Values{"version": {"4"}}))
	assert.Contains(t, plainText(show("/providers")), "Added here and removed: acme.")
	assert.Equal(t, 404, w.do("GET", "/providers/acme", "").code)
	goes("/providers/acme", send("/providers", url.Values{"policy": {text}}))
	page = plainText(show("/providers/acme"))
	assert.Contains(t, page, "version 6")
	assert.Contains(t, page, "provider remove provider_id: &#34;acme&#34; → –")

	// A shipped one.
	assert.Equal(t, http.StatusConflict, w.do("GET", "/providers/stripe/remove", "").code)
	goes("/providers/stripe", send("/providers/stripe", url.Values{"version": {"0"}, "policy": {"provider_id: stripe\nseed_urls: [https://docs.stripe.com/]\nallowed_path_patterns: [/**]\nmax_pages: 299\ntos: allowed\ntos_checked: 2025-01-05\n"}}))
	page = plainText(show("/providers/stripe"))
	assert.Contains(t, page, "changed here, version 1")
	assert.Contains(t, page, "max_pages: 300 → 299")
	assert.Contains(t, page, "allowed, read on 2025-01-05; its terms of service were read on 2025-01-05, 421 days ago")
	assert.Contains(t, plainText(show("/providers/stripe/remove")), "Use the file’s policy")

	assert.Contains(t, strings.Join(w.asked(), "\n"), "provider_edit acme: max_pages: 50 → 70")
	assert.Equal(t, 404, w.do("GET", "/providers/nobody", "").code)
	assert.Equal(t, http.StatusForbidden, w.form("/providers/acme/disable", "why=x", "Sec-Fetch-Site", "cross-site").code)
}

// The list says first what is wrong with a policy in the store, and the page of the provider
// what to do. Nobody can have read terms in the future.
func TestRefusedPolicyOnPage(t *testing.T) {
	w := newWorld(t, "done")
	body, err := json.Marshal(policyfile.Change{Text: "provider_id: acme\nname: \"A\\aB\"\nseed_urls: [https://docs.acme.example/]\nallowed_path_patterns: [/guide/**]\n"})
	require.NoError(t, err)
	_, err = kept.On(w.store, policy.Kind(nil).Kept()).Add(t.Context(), "acme", 0, kept.Version{At: w.now(), Who: "ann", Body: body})
	require.NoError(t, err)
	const wrong = `acme unreadable policy:2: name: &#34;A\aB&#34; has line breaks or control characters; write one line`
	assert.Contains(t, plainText(w.do("GET", "/providers", "").body), wrong)
	assert.Contains(t, plainText(w.do("GET", "/providers/acme", "").body), "unreadable policy:2: name: &#34;A\\aB&#34; has line breaks or control characters; write one line. "+
		"So its policy in the store is refused; correct or remove it on the provider&#39;s page or by the API (/api/v1/docs/providers/acme)")
	future := w.do("PUT", "/api/v1/docs/providers/bell", `{"provider_id":"bell","seed_urls":["https://b.example/"],"allowed_path_patterns":["/**"],"tos":"allowed","tos_checked":"2062-01-05"}`)
	assert.Equal(t, 400, future.code)
	assert.JSONEq(t, `{"error":"tos_checked: 2062-01-05 is in the future; write the day on which the terms were read"}`, future.body)
}

// The page of a provider shows its newest crawl.
func TestProviderCrawlOnPage(t *testing.T) {
	w := newWorld(t, "done")
	now := time.Now()
	const id = "20260302-100000-000-aaaaaaaa"
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: id, Job: docsJob, Runner: "prism", StartedAt: now.Add(-time.Hour)}))
	run, err := ledger.Finish(t.Context(), w.store, id, ledger.Done, nil, now)
	require.NoError(t, err)
	r := ledger.BuildReport(testJob(docsJob), run, sampleTally(), now, ledger.LaneProgress{Finished: true})
	r.Providers = []map[string]any{{"provider": "stripe", "state": "done", "total_pages": 12}}
	require.NoError(t, ledger.WriteReport(t.Context(), w.store, r))
	require.NoError(t, w.board.Refresh(t.Context(), now))
	page := plainText(w.do("GET", "/providers/stripe", "").body)
	assert.Contains(t, page, "Last crawl done, 12 pages, 20260302-100000-000-aaaaaaaa")
}

// A provider of which everything was removed is not shown as one that is crawled.
func TestRemovedProvider(t *testing.T) {
	var broken error
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	w := newWorld(t, "done", func(set *Settings) {
		set.Open = func(context.Context, string) (explore.Source, error) { return explore.Source{DB: d}, broken }
	})
	broken = errors.New("no answer")
	assert.Contains(t, plainText(w.do("GET", "/providers", "").body), "toss-payments 토스페이먼츠 crawled shipped")
	assert.Contains(t, w.log.String(), "purged_unread")
	broken = nil
	_, err = d.ExecContext(t.Context(), `CREATE TABLE docs_providers (id TEXT PRIMARY KEY, disabled_at BIGINT NOT NULL)`)
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `INSERT INTO docs_providers (id, disabled_at) VALUES ('toss-payments', $1), ('aws-ses', $2)`, 1, 0)
	require.NoError(t, err)
	list := plainText(w.do("GET", "/providers", "").body)
	assert.Contains(t, list, "toss-payments 토스페이먼츠 removed everything of it was removed; ")
	assert.Contains(t, plainText(w.do("GET", "/providers/toss-payments", "").body), "State removed everything of it was removed; `pipeline --job=docs --enable-provider=toss-payments` lets it be crawled again")
	assert.Contains(t, list, "aws-ses AWS SES crawled shipped")
	assert.Contains(t, w.do("GET", "/api/v1/docs/providers/toss-payments", "").json(t)["off"], "everything of it was removed")
}

// A request to remove everything of a provider is recorded after a question. A misspelt
// one is refused.
func TestRemovalPage(t *testing.T) {
	w := newWorld(t, "done")
	require.NoError(t, w.store.Put(t.Context(), "handoff/docs/gone/1", strings.NewReader("x"), store.PutOptions{}))
	assert.Contains(t, w.do("GET", "/removals?provider=stripe", "").body, `name="provider" value="stripe"`)
	assert.Contains(t, plainText(w.do("GET", "/removals/ask?provider=stirpe", "").body), "similar ones are stripe, ")
	assert.Equal(t, http.StatusNotFound, w.do("GET", "/removals/ask?provider=A", "").code)
	for _, path := range []string{"/removals/ask", "/removals?provider=%3C", "/removals/ask?provider=stripe&note=" + strings.Repeat("x", 501)} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", path, "").code, path)
	}
	ask := w.do("GET", "/removals/ask?provider=gone&from=legal%40gone.example&note=7", "")
	assert.Contains(t, plainText(ask.body), "Remove everything of gone?")
	assert.Contains(t, ask.body, `name="from" value="legal@gone.example"`)
	a := w.form("/removals", "provider=gone&from=legal%40gone.example&note=7")
	require.Equal(t, http.StatusSeeOther, a.code, a.body)
	all, err := removal.All(t.Context(), w.store)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, []string{"gone", "legal@gone.example", "7"}, []string{all[0].Provider, all[0].From, all[0].Note})
	assert.Contains(t, plainText(w.do("GET", "/removals", "").body), "gone open")
	assert.Equal(t, "removal_request gone: 7", w.asked()[0])
}
