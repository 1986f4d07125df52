package canonical_test

import (
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

func TestMatch(t *testing.T) {
	f := func(pattern, path string, want bool) {
		t.Helper()
		if got := canonical.Match(pattern, path); got != want {
			t.Errorf("%q on %q: %v", pattern, path, got)
		}
	}
	f("/docs/**", "/docs", true)
	f("/docs/**", "/docs/a", true)
	f("/docs/**", "/docs/a/b/c", true)
	f("/docs/**", "/docsets", false)
	f("/docs/**", "/v2/docs/a", false)
	f("/**", "/", true)
	f("/**", "/a/b", true)
	f("/docs/*", "/docs/a", true)
	f("/docs/*", "/docs/a/b", false)
	f("/docs/*", "/docs", false)
	f("/docs/v?", "/docs/v1", true)
	f("/docs/v?", "/docs/v12", false)
	f("/docs/v?", "/docs/v", false)
	f("/docs/한?", "/docs/한글", true)
	f("/{docs,guides}/**", "/guides/a", true)
	f("/{docs,guides}/**", "/guides", true)
	f("/{docs,a/b}/c", "/a/b/c", true)
	f("/{docs,guides}/**", "/blog/a", false)
	f("/docs/[a-c]*", "/docs/beta", true)
	f("/docs/[!a-c]*", "/docs/beta", false)
	f("/docs/[^a-c]*", "/docs/delta", true)
	f("/a/**/z", "/a/z", true)
	f("/a/**/z", "/a/b/c/z", true)
	f("/a**/z", "/ab/c/z", false) // ** inside a name is *
	f("**/changelog/**", "/docs/changelog/1", true)
	f("/docs/*.html", "/docs/a.html", true)
	f("/docs/A", "/docs/a", false)
	f("/docs/%ED%95%9C/**", "/docs/한/글", true)
	f("/docs/**", "/docs/.net/a", false)
	f("/docs/.*/**", "/docs/.net/a", true)
	f("/docs/{.net,java}/**", "/docs/.net/a", true)
	f("/docs/*", "/docs/.hidden", false)
	f("/docs/a.b/**", "/docs/a.b/c", true)
	f("/docs/[", "/docs/[", false)
	f("re:^/docs/v[0-9]+/", "/docs/v12/a", true)
	f("re:^/docs/v[0-9]+/", "/docs/v12", false)
	f("re:^/docs/v[0-9]+/", "/old/docs/v1/a", false)
	f("re:/changelog($|/)", "/docs/changelog", true)
	f(`re:^/docs/[^/]+\.html$`, "/docs/.net.html", true)
	f("re:^/docs/한", "/docs/한/글", true)
	f("re:^/docs/%ED%95%9C", "/docs/한", false) // the path is decoded
	f("re:(", "/(", false)
	f("re:(?i)^/DOCS", "/docs", true)
}

func TestScope(t *testing.T) {
	stripe := canonical.Scope{
		Allow: []string{"/api/**", "/payments/**"},
		Block: []string{"/changelog/**", "/api/internal/**"},
	}
	f := func(path, pattern string, in bool) {
		t.Helper()
		if got, ok := stripe.Rule(path); got != pattern || ok != in || stripe.In(path) != in {
			t.Errorf("%q: %q, %v; want %q, %v", path, got, ok, pattern, in)
		}
	}
	f("/api", "/api/**", true)
	f("/api/charges", "/api/**", true)
	f("/api/internal", "/api/internal/**", false)
	f("/api/internal/x", "/api/internal/**", false)
	f("/changelog", "/changelog/**", false)
	f("/blog", "", false)
	f("/", "", false)
}

func TestCheck(t *testing.T) {
	f := func(pattern, complaint string) {
		t.Helper()
		err := canonical.Scope{Allow: []string{"/docs/**"}, Block: []string{pattern}}.Check()
		if complaint == "" && err != nil || complaint != "" && (err == nil || !strings.Contains(err.Error(), complaint)) {
			t.Errorf("%q: %v, want %q", pattern, err, complaint)
		}
	}
	f("/docs/**", "")
	f("**/blog/**", "")
	f("/{a,b}/[x-z]?", "")
	f("", "is empty")
	f("docs/**", "does not begin with a slash")
	f("!/docs", "does not begin with a slash")
	f("/docs/[a", "is malformed")
	f("/docs/{a", "is malformed")
	f("/docs/+(a|b)", "uses +(")
	f("/docs/v{1..3}", "two dots")
	f("re:^/docs/v[0-9]{1,3}/", "")
	f("re:", "is an empty regular expression")
	f("re:^/docs/(", "is no regular expression")
	f("re:^/docs/(?!old)", "is no regular expression")
	f("re:"+strings.Repeat("a", 1001), "is longer than 1000")
}
