package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const acme = `{"provider_id":"acme","name":"Acme \u2603","seed_urls":["https://docs.acme.example/"],"allowed_path_patterns":["/guide/**","/{a,b}/*"],"sitemap_url":null,"max_pages":50}`

// Providers are listed, added, changed, disabled and removed. What is kept has versions
// with who made them; a change of what somebody else has changed since is refused.
func TestProviders(t *testing.T) {
	w := newWorld(t, "done")
	now := at(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), w)
	const all = "/api/v1/docs/providers"
	rows := func() map[string]map[string]any {
		t.Helper()
		a := w.do("GET", all, "")
		require.Equal(t, http.StatusOK, a.code, a.body)
		out := map[string]map[string]any{}
		for _, row := range a.json(t)["providers"].([]any) {
			row := row.(map[string]any)
			out[row["id"].(string)] = row
		}
		return out
	}
	must := func(a answer) map[string]any {
		t.Helper()
		require.Equal(t, http.StatusOK, a.code, a.body)
		return a.json(t)
	}
	shipped := rows()
	assert.Len(t, shipped, 15)
	assert.Equal(t, "file", shipped["stripe"]["source"])
	assert.EqualValues(t, 0, shipped["stripe"]["version"])
	assert.EqualValues(t, 300, shipped["stripe"]["policy"].(map[string]any)["max_pages"])
	assert.Equal(t, `"0"`, w.do("GET", all+"/stripe", "").header.Get("ETag"))

	added := w.do("PUT", all+"/acme", acme, "If-None-Match", "*")
	one := must(added)
	assert.Equal(t, `"1"`, added.header.Get("ETag"))
	assert.Equal(t, "store", one["source"])
	assert.Equal(t, "Acme ☃", one["policy"].(map[string]any)["name"])
	assert.EqualValues(t, 3, one["policy"].(map[string]any)["max_depth"], "the default")
	assert.Equal(t, 412, w.do("PUT", all+"/acme", acme, "If-None-Match", "*").code)
	blind := w.do("PUT", all+"/acme", acme)
	assert.Equal(t, 428, blind.code)
	assert.Contains(t, blind.body, `If-Match: \"1\"`)

	at(now.Add(time.Minute), w)
	one = must(w.do("PUT", all+"/acme", strings.Replace(acme, "50", "70", 1), "If-Match", `"1"`))
	assert.EqualValues(t, 2, one["version"])
	assert.Equal(t, "2026-03-02T09:01:00Z", one["changed_at"])
	assert.Equal(t, "local from 192.0.2.1:1234", one["changed_by"])
	assert.Equal(t, 412, w.do("PUT", all+"/acme", acme, "If-Match", `"1"`).code, "somebody else changed it")
	one = must(w.do("POST", all+"/acme/disable", `{"why":"they  asked us"}`))
	assert.Equal(t, "it was disabled: they asked us", one["off"])
	one = must(w.do("PUT", all+"/acme", strings.Replace(acme, "50", "71", 1), "If-Match", `"3"`))
	assert.Equal(t, true, one["disabled"], "a change of the policy does not enable it")
	one = must(w.do("POST", all+"/acme/enable", ""))
	assert.Equal(t, false, one["disabled"])
	var versions []any
	for _, v := range one["versions"].([]any) {
		v := v.(map[string]any)
		versions = append(versions, []any{v["version"], v["action"], v["disabled"], strings.Contains(v["text"].(string), "max_pages: 7")})
	}
	assert.Equal(t, []any{[]any{5., "provider_enable", false, true}, []any{4., "provider_edit", true, true}, []any{3., "provider_disable", true, true}, []any{2., "provider_edit", false, true}, []any{1., "provider_add", false, false}}, versions)
	assert.Equal(t, "provider_id: acme\nname: Acme ☃\nseed_urls:\n- https://docs.acme.example/\nallowed_path_patterns:\n- /guide/**\n- /{a,b}/*\nmax_pages: 50\nsitemap_url: null\n", one["versions"].([]any)[4].(map[string]any)["text"])

	// A shipped provider is changed, and goes back to its file.
	assert.Equal(t, "it was disabled: no reason was given", must(w.do("POST", all+"/stripe/disable", "", "If-Match", `"0"`))["off"])
	stripe := `{"provider_id":"stripe","seed_urls":["https://docs.stripe.com/"],"allowed_path_patterns":["/**"],"tos":"allowed","tos_checked":"2026-01-05"}`
	assert.Equal(t, "store_over_file", must(w.do("PUT", all+"/stripe", stripe, "If-Match", `"1"`))["source"])
	assert.Equal(t, "file", must(w.do("DELETE", all+"/stripe", "", "If-Match", `"2"`))["source"])
	assert.NotContains(t, rows()["stripe"]["policy"], "tos_checked")
	assert.Equal(t, "removed", must(w.do("DELETE", all+"/acme", ""))["status"])
	assert.NotContains(t, rows(), "acme")
	one = must(w.do("PUT", all+"/acme", acme, "If-Match", `"6"`))
	assert.EqualValues(t, 7, one["version"], "its versions continue")

	asked := w.asked()
	assert.Len(t, asked, 10)
	for _, line := range []string{"provider_add acme: seeds https://docs.acme.example/", "provider_edit acme: max_pages: 50 → 70", "provider_disable acme: they asked us", "provider_enable acme", "provider_remove stripe: back to the file's", "provider_remove acme"} {
		assert.Contains(t, asked, line)
	}
}

// What is sent is checked as a file is; the answer names the field and what to write.
func TestProvidersRefused(t *testing.T) {
	w := newWorld(t, "done")
	const at = "/api/v1/docs/providers/acme"
	require.Equal(t, http.StatusOK, w.do("PUT", at, acme).code)
	policies := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(policies, "acme.yaml"), []byte("provider_id: acme\nseed_urls: [https://a.example/]\nallowed_path_patterns: [/**]\n"), 0o600))
	fixed := worldAt(t, w.dir, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_POLICIES="+policies) })
	list := fixed.do("GET", "/api/v1/docs/providers", "").json(t)["providers"].([]any)
	require.Len(t, list, 1)
	assert.Equal(t, "file", list[0].(map[string]any)["source"])
	assert.Equal(t, http.StatusOK, fixed.do("POST", at+"/disable", "").code)
	for _, c := range []struct {
		w                  *world
		method, path, body string
		code               int
		says               string
	}{
		{w, "PUT", at, strings.Replace(acme, `"max_pages":50`, `"max_pages":501,"max_depth":9`, 1), 400, `{"error":"max_depth: 9 is outside 1 to 5; max_pages: 501 is outside 1 to 500"}`},
		{w, "PUT", at, strings.Replace(acme, `"max_pages"`, `"max_page"`, 1), 400, `unknown field \"max_page\"`},
		{w, "PUT", at, strings.Replace(acme, `"max_pages":50`, `"max_pages":2.5`, 1), 400, "max_pages: 2.5 is no whole number"},
		{w, "PUT", at, strings.Replace(acme, `"max_pages":50`, `"tos":"allowed"`, 1), 400, "tos_checked: missing; tos: allowed needs the date"},
		{w, "PUT", at, strings.Replace(acme, `"acme"`, `"emca"`, 1), 400, "provider_id: the policy names emca"},
		{w, "PUT", at, `{"provider_id":"acme","seed_urls":["https://u:p@a.example/"],"allowed_path_patterns":["/**"]}`, 400, "must not have a user or password"},
		{w, "PUT", at, `{"provider_id":"acme","seed_urls":"https://a.example/"}`, 400, `{"error":"seed_urls: string was used where sequence is expected"}`},
		{w, "PUT", at, `{"provider_id":"acme","custom_selectors":{"content":".a","remove":".b"}}`, 400, `{"error":"custom_selectors: string was used where sequence is expected"}`},
		{w, "PUT", at, strings.Replace(acme, "Acme", `Acme\n\u0000`, 1), 400, "has line breaks or control characters; write one line"},
		{w, "PUT", at, `{}`, 400, "seed_urls: the list is empty"},
		{w, "PUT", at, `[]`, 400, "write the policy as JSON"},
		{w, "PUT", at, `{"a": 1} {}`, 400, "write the policy as JSON"},
		{w, "PUT", at, ``, 400, "write the policy as JSON"},
		{w, "POST", at + "/disable", `{"reason":"x"}`, 400, "the body is not what is needed"},
		{w, "POST", at + "/disable", `{"why":"` + strings.Repeat("x", 501) + `"}`, 400, "at most 500"},
		{w, "GET", "/api/v1/docs/providers/nobody", "", 404, "there is no such provider"},
		{w, "DELETE", "/api/v1/docs/providers/nobody", "", 404, "there is no such provider"},
		{w, "DELETE", "/api/v1/docs/providers/stripe", "", 409, "in a file; remove it there"},
		{fixed, "PUT", at, acme, 409, "change the files there"},
	} {
		got := c.w.do(c.method, c.path, c.body)
		assert.Equal(t, c.code, got.code, "%s %s %s: %s", c.method, c.path, c.body, got.body)
		assert.Contains(t, got.body, c.says)
	}
	wrong := w.do("PUT", at, acme, "If-Match", "newest")
	assert.Equal(t, 412, wrong.code)
	assert.Contains(t, wrong.body, "read it again")
	assert.Equal(t, 428, w.do("PUT", at, acme, "If-Match", "*").code, "a change needs the version that was read")
}

// A policy whose addresses a crawl would refuse is refused; a server whose runs may request private addresses takes it.
func TestProvidersPrivate(t *testing.T) {
	w := newWorld(t, "done")
	allowed := worldAt(t, w.dir, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_ALLOW_PRIVATE=true") })
	const at = "/api/v1/docs/providers/acme"
	policy := func(seed, rest string) string {
		return `{"provider_id":"acme","allowed_path_patterns":["/**"],"seed_urls":["` + seed + `"]` + rest + `}`
	}
	const good = "https://docs.acme.example/"
	for body, says := range map[string]string{
		policy("http://127.0.0.1/", ""):                        "seed_urls: 127.0.0.1 is refused: loopback",
		policy("http://0x7f.1/x", ""):                          "seed_urls: 127.0.0.1 is refused: loopback",
		policy("https://[::1]/", ""):                           "seed_urls: ::1 is refused: loopback",
		policy("https://10.1.2.3/", ""):                        "seed_urls: 10.1.2.3 is refused: private",
		policy("http://169.254.169.254/latest", ""):            "seed_urls: 169.254.169.254 is refused: link-local",
		policy("https://[64:ff9b::a00:1]/", ""):                "NAT64 of 10.0.0.1",
		policy("http://localhost/", ""):                        "a name for private use",
		policy("https://metadata.google.internal/", ""):        "a name for private use",
		policy("https://wiki/", ""):                            "a name without a dot",
		policy("https://docs.acme.example:8443/", ""):          "seed_urls: port 8443 is refused",
		policy(good, `,"tos_url":"https://192.168.1.1/terms"`): "tos_url: 192.168.1.1 is refused: private",
	} {
		a := w.do("PUT", at, body)
		assert.Equal(t, http.StatusBadRequest, a.code, body)
		assert.Contains(t, a.body, says, body)
	}
	assert.Equal(t, http.StatusNotFound, w.do("GET", at, "").code, "nothing was kept")
	assert.Equal(t, http.StatusOK, allowed.do("PUT", at, policy("http://127.0.0.1:8080/", "")).code)
}

// Sites and publishers have what providers have: the same list, checks, versions, pages and trials, in their own words.
func TestOtherPolicies(t *testing.T) {
	w := newWorld(t, "done")
	fixed := worldAt(t, w.dir, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_SITES=/etc/sites") })
	const all = "/api/v1/catalog/sites"
	lamps := func(more string) string {
		return `{"name": "lamps", "list": {"url": "https://lamps.example/"` + more + `}, "key": "sku"}`
	}
	try := func(page, more string) string { return `{"url": "` + page + `"` + more + `}` }
	for _, c := range []struct {
		w                             *world
		method, path, described, body string
		code                          int
		says                          string
	}{
		{w, "GET", all, "", "", 200, `"id":"tea_house","source":"file"`},
		{w, "GET", all + "/nobody", "/{id}", "", 404, "there is no such site; GET /api/v1/catalog/sites lists them"},
		{w, "PUT", all + "/lamps", "/{id}", `{"name": "lamps", "list": {"url": "https://lamps.example/"}}`, 400, "key: it is missing"},
		{w, "PUT", all + "/lamps", "/{id}", lamps(`, "lnk": "a"`), 400, `unknown field \"lnk\"`},
		{w, "PUT", all + "/lamp", "/{id}", lamps(""), 400, "name: the policy names lamps, but the request is for lamp; a site's name never changes"},
		{w, "PUT", all + "/lamps", "/{id}", strings.Replace(lamps(""), "lamps.example", "10.1.2.3", 1), 400, "list.url: 10.1.2.3 is refused: private"},
		{w, "PUT", all + "/lamps", "/{id}", `[]`, 400, "write the policy as JSON, such as {"},
		{w, "PUT", all + "/lamps", "/{id}", lamps(""), 200, `"source":"store"`},
		{w, "PUT", all + "/lamps", "/{id}", lamps(""), 428, "the site exists already"},
		{w, "PUT", all + "/code", "/{id}", strings.ReplaceAll(lamps(""), "lamps", "code"), 409, "the site code cannot be changed here: it is code of the program. It can still be disabled"},
		{w, "POST", all + "/code/disable", "/{id}/disable", `{"why": "they asked us to"}`, 200, `"off":"it was disabled: they asked us to"`},
		{w, "POST", all + "/code/enable", "/{id}/enable", "", 200, `"disabled":false`},
		{fixed, "PUT", all + "/tea_house", "/{id}", strings.ReplaceAll(lamps(""), "lamps", "tea_house"), 409, "take the sites from the directory of --sites; change the files there. It can"},
		{fixed, "PUT", all + "/desks", "/{id}", strings.ReplaceAll(lamps(""), "lamps", "desks"), 409, "no site can be added here: the runs of this server take the sites"},
		{w, "POST", all + "/nobody/try", "/{id}/try", try("https://tea.example/", ""), 404, "there is no such site"},
		{w, "POST", all + "/code/try", "/{id}/try", try("https://tea.example/", ""), 409, "the site code has no policy to try: it is code of the program"},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("https://lamps.example/x", ""), 400, "url: it is on lamps.example, and the site tea_house is on tea.example; write the URL of a page there"},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("--db=x", ""), 400, "url: write the URL of a page"},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("http://127.0.0.1/", ""), 400, "url: 127.0.0.1 is refused: loopback"},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("https://tea.example/a", `, "policy": "name: x\nkeys: y\n"`), 400, `policy: unknown field`},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("https://www.tea.example/a", ""), 200, `https://www.tea.example/a by name: tea_house\nlist:`},
		{w, "POST", all + "/tea_house/try", "/{id}/try", try("https://b.example/a", `, "policy": "name: b\nkey: c\nlist: {url: https://b.example}\n"`), 200, `by name: b\nkey: c`},
		{w, "DELETE", all + "/tea_house", "/{id}", "", 409, "this site is in a file"},
		{w, "DELETE", all + "/lamps", "/{id}", "", 200, `"status":"removed"`},
	} {
		got := c.w.do(c.method, c.path, c.body)
		require.Equal(t, c.code, got.code, "%s %s %s: %s", c.method, c.path, c.body, got.body)
		assert.Contains(t, got.body, c.says)
		assert.NotContains(t, got.body, "rovider")
		assert.NotContains(t, got.body, "hush")
		assert.NoError(t, schemaOf(w, all+c.described, strings.ToLower(c.method), c.code).Validate(any(got.json(t))), got.body)
	}
	// Nothing in the description of a kind names another.
	var doc struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal([]byte(w.do("GET", "/openapi.json", "").body), &doc))
	for path, about := range doc.Paths {
		if strings.HasPrefix(path, all) {
			assert.NotContains(t, strings.ToLower(string(about)), "provider", path)
		}
	}
}

// The pages of another kind take what its forms send, and show what is wrong, tried and changed.
func TestOtherPolicyPages(t *testing.T) {
	w := newWorld(t, "done")
	fixed := worldAt(t, w.dir, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_SITES=/etc/sites") })
	send := func(policy string, more ...string) string {
		form := url.Values{"policy": {policy}, "version": {"0"}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return form.Encode()
	}
	changed := strings.Replace(teaHouse, "link: a", "link: a.tea", 1)
	for _, c := range []struct {
		w          *world
		path, form string
		code       int
		says       string
	}{
		{w, "/sites", "", 200, "All 2"},
		{w, "/sites", "", 200, "tea_house Tea crawled shipped – – –"},
		{w, "/sites/code", "", 200, "The site cannot be changed here: it is code of the program. It can be disabled."},
		{w, "/sites/tea_house", "", 200, "https://tea.example/ (list.url)"},
		{w, "/sites/tea_house", send(teaHouse + "keys: 3\n"), 400, "This policy cannot be used. Nothing was changed: Line 6: unknown field"},
		{w, "/sites/tea_house", send(teaHouse, "try", "true", "page", "https://else.example/"), 400, "Nothing was changed: url: it is on else.example, and the site tea_house is on tea.example"},
		{w, "/sites/tea_house", send(changed, "try", "true", "page", "https://tea.example/1"), 200, "What the trial printed https://tea.example/1 by name: tea_house list: url: https://tea.example/ link: a.tea"},
		{w, "/sites", send(teaHouse), 400, "there is a site tea_house already"},
		{w, "/sites/tea_house", send(changed), 303, ""},
		{w, "/sites/tea_house", send(teaHouse), 412, "Nothing was changed: the site has been changed since you read it"},
		{w, "/sites/tea_house", "", 200, "site edit list.link: &#34;a&#34; → &#34;a.tea&#34; Its text"},
		{w, "/sites/tea_house/remove", "", 200, "Back to the file’s tea_house?"},
		{fixed, "/sites/tea_house", "", 200, "The site cannot be changed here: the runs of this server take the sites from the directory of --sites"},
	} {
		a := c.w.do("GET", c.path, "")
		if c.form != "" {
			a = c.w.form(c.path, c.form)
		}
		require.Equal(t, c.code, a.code, "%s: %s", c.path, plainText(a.body))
		assert.Contains(t, plainText(a.body), c.says, c.path)
	}
}

// TestUnblockProvider starts the pipeline program for the pages of a provider that answered 403.
func TestUnblockProvider(t *testing.T) {
	w := newWorld(t, "done", func(set *Settings) { set.Token, set.ReadToken = "operators-token-0001", "a-readers-token-0001" })
	const at = "/api/v1/docs/providers/stripe/unblock"
	for _, c := range []struct {
		as, path, body, says string
		code                 int
	}{
		{"a-readers-token-0001", at, "", "may only read", 403},
		{"operators-token-0001", "/api/v1/docs/providers/strpe/unblock", "", "there is no such provider", 404},
		{"operators-token-0001", at, `{"url":"--db=x"}`, "write the URL of a page", 400},
		{"operators-token-0001", at, `{"url":"https://docs.stripe.com/none"}`, "no such page is blocked by a 403", 409},
		{"operators-token-0001", at, `{"url":"https://docs.stripe.com/a"}`, `"id":"stripe"`, 200},
	} {
		a := w.do("POST", c.path, c.body, "Authorization", "Bearer "+c.as)
		assert.Equal(t, c.code, a.code, a.body)
		assert.Contains(t, a.body, c.says)
	}
	last := w.do("GET", "/api/v1/audit", "", "Authorization", "Bearer operators-token-0001").json(t)["lines"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"provider_unblock", "stripe", "https://docs.stripe.com/a"}, []any{last["action"], last["target"], last["detail"]})
	assert.Equal(t, "docs unblock stripe https://docs.stripe.com/a", w.read("unblocked.txt"))
}
