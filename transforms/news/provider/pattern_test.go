package provider_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func addresses(t testing.TB, paths string) (out []*url.URL) {
	t.Helper()
	for path := range strings.FieldsSeq(paths) {
		u, err := url.Parse("https://demo.example" + path)
		require.NoError(t, err)
		out = append(out, u)
	}
	return out
}

// The pattern of articles' addresses keeps what they have in common, and says nothing when
// that is too little.
func TestPattern(t *testing.T) {
	for _, tt := range cases.Table[[]struct {
		Paths, Want string
		Matched     int
		Not         string
	}](t, "patterns.yaml") {
		got, matched := provider.Pattern(addresses(t, tt.Paths))
		assert.Equal(t, tt.Want, got)
		assert.Equal(t, tt.Matched, matched, got)
		if got != "" {
			assert.NotRegexp(t, regexp.MustCompile(got), tt.Not)
		}
	}
}

// Whatever addresses a site has, the pattern is a regular expression that an address matches, or none.
func FuzzPattern(f *testing.F) {
	f.Add("/2026/03/01/a-12345", "/2026/03/02/b-123")
	f.Add("/a?no=1234", "/%zz/a.b(c")
	f.Fuzz(func(t *testing.T, a, b string) {
		var all []*url.URL
		for _, path := range []string{a, b} {
			if u, err := url.Parse("https://demo.example/" + strings.TrimPrefix(path, "/")); err == nil && u.Host == "demo.example" {
				all = append(all, u)
			}
		}
		e, n := provider.Pattern(all)
		assert.True(t, e == "" || n != 0, "%q matches none of %q", e, all)
	})
}
