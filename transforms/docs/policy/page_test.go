package policy_test

import (
	"net/url"
	"testing"

	"github.com/newsfork/seed-engine/transforms/docs/policy"

	"github.com/stretchr/testify/require"
)

// The policy of an address without a file has the address's folder as its scope, unknown
// terms, and the blocks of personal data.
func TestForURL(t *testing.T) {
	f := func(address string, depth int, pattern string) {
		t.Helper()
		u, err := url.Parse(address)
		require.NoError(t, err)
		p, err := policy.ForURL(u, depth)
		require.NoError(t, err)
		if got := p.AllowedPathPatterns; len(got) != 1 || got[0] != pattern {
			t.Errorf("%s: patterns %q, want %q", address, got, pattern)
		}
		if p.Terms != policy.Unknown || p.SeedURLs[0] != address || p.MaxDepth != depth || p.Delay() < 1e9 || p.Scope().In("/blog/x") {
			t.Errorf("%s: %+v", address, p)
		}
	}
	f("https://docs.example/guide", 0, "/**")
	f("https://docs.example/guide", 2, "/guide/**")
	f("https://docs.example/guide/", 2, "/guide/**")
	f("https://docs.example/guide/intro.html", 1, "/guide/**")
	f("https://docs.example/", 5, "/**")
	f("https://docs.example/a[b]*", 1, "/a?b??/**")

	a, b := &url.URL{Scheme: "https", Host: "docs.example", Path: "/a"}, &url.URL{Scheme: "https", Host: "docs.example", Path: "/b"}
	seen := map[string]bool{}
	for _, u := range []*url.URL{a, b} {
		for depth := range 2 {
			p, err := policy.ForURL(u, depth)
			require.NoError(t, err)
			require.False(t, seen[p.ProviderID], "%s to depth %d: %s is taken", u, depth, p.ProviderID)
			seen[p.ProviderID] = true
		}
	}
}
