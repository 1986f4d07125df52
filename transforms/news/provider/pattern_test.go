package provider_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
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
	for _, tt := range []struct {
		paths, want string
		matched     int
		not         string
	}{
		{"/business/2026/mar/01/one-two /world/2026/mar/02/three", `^/[^/?]+/20\d\d/[a-z]{3}/\d\d/[^/?]+`, 2, "/business"},
		{"/economie/article/2026/03/01/demo-un_6512345_3234.html /sport/article/2026/03/02/deux_6512346_3234.html", `^/[^/?]+/article/20\d\d/\d\d/\d\d/[^/?]*_\d{4,}\.html`, 2, "/economie/"},
		{"/view/AKR20260301000100001 /view/AKR20260301000200002", `^/view/AKR\d{5,}`, 2, "/view/x"},
		{"/a/74-20012345 /a/74-20012346", `^/a/74-\d{5,}`, 2, "/a/12"},
		{"/wirtschaft/demo-a-12345678.html /politik/ganz-anders-a-12345679.html", `^/[^/?]+/[^/?]*-a-\d{5,}\.html`, 2, "/wirtschaft/"},
		{"/news/view.php?no=1234 /news/view.php?no=1235&x=2", `^/news/view\.php\?(?:.*&)?no=`, 2, "/news/view.php"},
		{"/news/one-title /news/another-title", `^/news/[^/?]+/?$`, 2, "/news/a/b"},
		{"/one-title /another-title", "", 0, ""},
		{"/articles/123456 /live/99123457", `^/[^/?]+/\d{5,}`, 2, "/articles/x"},
		{"/articles/123456 /articles/123457 /articles/123458 /live/2026/03/one /live/2026/04/two", `^/(?:articles/\d{5,}|live/20\d\d/\d\d/[^/?]+)`, 5, "/articles/x"},
	} {
		got, matched := provider.Pattern(addresses(t, tt.paths))
		assert.Equal(t, tt.want, got)
		assert.Equal(t, tt.matched, matched, got)
		if got != "" {
			assert.NotRegexp(t, regexp.MustCompile(got), tt.not)
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
