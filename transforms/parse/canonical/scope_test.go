package canonical_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func TestMatch(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		Pattern, Path string
		Want          bool
	}](t, "matches.yaml") {
		assert.Equal(t, c.Want, canonical.Match(c.Pattern, c.Path), "%q on %q", c.Pattern, c.Path)
	}
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
