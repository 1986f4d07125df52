package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What init site makes of a demo's shop finds the products, by the keys, that the shipped file finds.
func TestInitSite(t *testing.T) {
	emptyEnv(t)
	for name, c := range map[string]struct {
		list, key string
		products  int
		has       []string
	}{
		"gadgets": {"https://gadgets.example/shop/", "sku", 48, []string{`"title":"Gadget no. 7"`, `"price":{"amount":7.9,"currency":"EUR"}`}},
		"matter":  {"https://csa-iot.org/csa-iot_products/page/1/?p_keywords=&p_type%5B%5D=14&p_program_type%5B%5D=1049&p_certificate=&p_family=&p_firmware_ver=", "certificate_id", 0, []string{`"firmware_version":`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, name+".yaml")
			got := here(t, "init site --web=demo "+c.list+" --to="+file)
			require.Equal(t, exitOK, got.code, got.stderr)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			t.Logf("%s", text)
			assert.Contains(t, string(text), "\nkey: "+c.key+"\n")
			stores := map[string]string{}
			for of, args := range map[string]string{"made": "--sites=" + dir, "shipped": "--site=" + name} {
				stores[of] = filepath.Join(dir, of)
				require.NoError(t, os.Mkdir(stores[of], 0o750))
				got := here(t, "catalog --web=demo --log-level=error "+args+" --store="+stores[of])
				require.Equal(t, exitOK, got.code, got.stderr)
			}
			made, shipped := here(t, "export products - --store="+stores["made"]).stdout, here(t, "export products - --store="+stores["shipped"]).stdout
			assert.Equal(t, keysOf(t, shipped), keysOf(t, made))
			if c.products > 0 {
				assert.Len(t, keysOf(t, made), c.products)
			}
			for _, want := range c.has {
				assert.Contains(t, made, want)
			}
		})
	}
}

// What init policy makes of a demo's documentation leads to the pages that the shipped policy leads to.
func TestInitPolicy(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	dir = filepath.Join(dir, "policies") // which the command makes
	file := filepath.Join(dir, "openai.yaml")
	got := here(t, "init policy --web=demo https://platform.openai.com/docs --to="+file)
	require.Equal(t, exitOK, got.code, got.stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	t.Logf("%s", text)
	assert.Contains(t, string(text), "allowed_path_patterns:\n  - \"/docs/**\"\n")
	stores := map[string]string{}
	for of, args := range map[string]string{"made": "--policies=" + dir, "shipped": "--fallback --provider=openai"} {
		stores[of] = filepath.Join(dir, of)
		require.NoError(t, os.Mkdir(stores[of], 0o750))
		got := here(t, "docs --web=demo --log-level=error "+args+" --store="+stores[of])
		require.Equal(t, exitOK, got.code, got.stderr)
	}
	made, shipped := here(t, "export pages - --store="+stores["made"]).stdout, here(t, "export pages - --store="+stores["shipped"]).stdout
	assert.NotEmpty(t, urlsOf(t, shipped))
	assert.Subset(t, urlsOf(t, made), urlsOf(t, shipped))
}

// A site that blocks, one behind a redirect, one that scripts make, one without a list, one that robots.txt closes: init says so,
// writes nothing, and requests little.
func TestInitRefuses(t *testing.T) {
	emptyEnv(t)
	var requests atomic.Int64
	page := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, "<!doctype html><html><head><title>T</title></head><body>"+body+"</body></html>")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /closed/\n")
		case "/blocks/":
			page(w, http.StatusForbidden, "<h1>Access denied</h1>")
		case "/away/":
			http.Redirect(w, r, "https://elsewhere.example/shop/", http.StatusFound)
		case "/scripts/":
			page(w, http.StatusOK, `<div id="root"></div><script src="/app.js"></script>`)
		case "/few/":
			page(w, http.StatusOK, `<p>Nothing here.</p><a href="/about">About</a>`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	for at, want := range map[string]map[string]string{
		"/blocks/":  {"site": "answers with status 403"},
		"/away/":    {"site": "it redirects to another host: give the address there, https://elsewhere.example/shop/"},
		"/scripts/": {"site": "only scripts make the page's content", "policy": ""},
		"/few/":     {"site": "no three links of the page look alike", "policy": "names a page below /few/"},
		"/closed/":  {"policy": "robots.txt, line 2, disallows"},
	} {
		for what, want := range want {
			requests.Store(0)
			file := filepath.Join(t.TempDir(), "x.yaml")
			got := here(t, "init "+what+" --allow-private --turns=off "+s.URL+at+" --to="+file)
			assert.LessOrEqual(t, requests.Load(), int64(6), at)
			if want == "" {
				text, err := os.ReadFile(file)
				require.NoError(t, err, got.stderr)
				assert.Contains(t, string(text), "spa_rendering: true")
				assert.Contains(t, string(text), "characters of text before its 1 scripts run")
				continue
			}
			assert.Equal(t, exitFailed, got.code, at)
			assert.Contains(t, got.stderr, want, at)
			assert.NoFileExists(t, file)
		}
	}
	for args, want := range map[string]string{
		"init site":             "write pipeline init site URL",
		"init policy ftp://a.b": "write the URL of a page",
		"init site --to=/none/such/x.yaml https://a.example": "there is no directory /none",
		"init policy --contact=me https://a.example":         "use a URL or a mail address",
	} {
		got := here(t, args)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Contains(t, got.stderr, want, args)
	}
}

func keysOf(t *testing.T, lines string) []string { return column(t, lines, "product_key") }
func urlsOf(t *testing.T, lines string) []string { return column(t, lines, "url") }

// column returns a column of JSON lines, sorted.
func column(t *testing.T, lines, name string) (all []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var row map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		require.NotEmpty(t, row[name], line)
		all = append(all, fmt.Sprint(row[name]))
	}
	slices.Sort(all)
	return all
}
