package canonical_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func key(t *testing.T, raw string, keep ...string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err, "parsing %q", raw)
	k, err := canonical.Key(u, keep)
	require.NoError(t, err, "key of %q", raw)
	return k
}

// The key of a key is the key.
func TestKey(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		In, Want string
		Keep     []string
	}](t, "keys.yaml") {
		got := key(t, c.In, c.Keep...)
		assert.Equal(t, c.Want, got, "%q with %q", c.In, c.Keep)
		assert.Equal(t, got, key(t, got, c.Keep...), "%q: its key %q", c.In, got)
	}
}

func TestKeyRefuses(t *testing.T) {
	for in, want := range map[string]error{
		"mailto:a@b.com":     canonical.ErrScheme,
		"ftp://e.com/a":      canonical.ErrScheme,
		"/docs":              canonical.ErrScheme,
		"https:///docs":      canonical.ErrURL,
		"https:opaque":       canonical.ErrURL,
		"javascript:void(0)": canonical.ErrScheme,
	} {
		u, err := url.Parse(in)
		require.NoError(t, err, "parsing %q", in)
		got, err := canonical.Key(u, nil)
		assert.ErrorIs(t, err, want, "%q: %q, %v; want %v", in, got, err, want)
	}
}

func TestPath(t *testing.T) {
	for key, want := range map[string]string{
		"https://e.com/":          "/",
		"https://e.com/a/b?c=/d":  "/a/b",
		"https://e.com/a%3Fb":     "/a%3Fb",
		"https://[::1]:8080/docs": "/docs",
		"https://e.com":           "/",
	} {
		got := canonical.Path(key)
		assert.Equal(t, want, got, key)
	}
}

func TestAddress(t *testing.T) {
	base, err := url.Parse("http://www.E.com/docs/api/index.html?lang=ko")
	require.NoError(t, err)
	base.Host = strings.ToLower(base.Host)
	f := func(href, want string, wantErr error, keep ...string) {
		t.Helper()
		got, err := canonical.Address(base, href, keep)
		if !errors.Is(err, wantErr) || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v; want %q, %v", href, got, err, want, wantErr)
		}
	}
	f("charges", "http://www.e.com/docs/api/charges", nil)
	f("../guide/#top", "http://www.e.com/docs/guide/", nil)
	f("?lang=en", "http://www.e.com/docs/api/index.html?lang=en", nil)
	f("//cdn.e.com/x", "http://cdn.e.com/x", nil)
	f(`\x\y`, "http://www.e.com/x/y", nil)
	f(" \n https://E.com:443/a b\n ", "https://e.com/a%20b", nil)
	f("https://me:pw@e.com/", "https://e.com/", nil)
	f("a?utm_source=x&v=2&ref=y", "http://www.e.com/docs/api/a?v=2", nil)
	f("a?ref=y&v=2", "http://www.e.com/docs/api/a?ref=y&v=2", nil, "ref")
	f("a?utm_source=x", "http://www.e.com/docs/api/a", nil)
	f("a%2Fb|c", "http://www.e.com/docs/api/a%2Fb%7Cc", nil)
	f("100%", "http://www.e.com/docs/api/100%25", nil)
	f("/한글", "http://www.e.com/%ED%95%9C%EA%B8%80", nil)
	f("https://한국.kr/", "https://xn--3e0b707e.kr/", nil)
	f("", "", canonical.ErrEmpty)
	f("  ", "", canonical.ErrEmpty)
	f("#section", "", canonical.ErrFragment)
	f("javascript:void(0)", "", canonical.ErrScheme)
	f("JavaScript:void(0)", "", canonical.ErrScheme)
	f("java\nscript:void(0)", "", canonical.ErrScheme)
	f("mailto:a@b.com", "", canonical.ErrScheme)
	f("tel:+82", "", canonical.ErrScheme)
	f("data:text/html,x", "", canonical.ErrScheme)
	f("http://e.com:99999/", "", canonical.ErrURL)
	f("http://a b/", "", canonical.ErrURL)
	f("http://0x7f.1/", "", canonical.ErrURL)
}

// minResolved is how many rows of the url cases about resolving links are right;
// it may only rise. Left out are rows of other schemes than http and https, and
// those that differ by intent: fragments and user information are dropped, a
// fragment alone is no link, IPv4 addresses must be dotted decimal.
const minResolved = 236

func TestResolveCases(t *testing.T) {
	right := 0
	type row struct {
		ID, In, Base, Rule string
		Out                *string
	}
	for _, r := range cases.Rows[row](t, "urls/url_cases.jsonl") {
		if r.Rule != "resolve" && r.Rule != "whatwg" {
			continue
		}
		var base *url.URL
		if r.Base != "" {
			var err error
			if base, err = url.Parse(r.Base); err != nil || base.Scheme != "http" && base.Scheme != "https" {
				continue
			}
		}
		got, err := canonical.Address(base, r.In, []string{"*", "ref"})
		if errors.Is(err, canonical.ErrScheme) || errors.Is(err, canonical.ErrFragment) || errors.Is(err, canonical.ErrEmpty) {
			if r.Out != nil && (strings.HasPrefix(*r.Out, "http:") || strings.HasPrefix(*r.Out, "https:")) && errors.Is(err, canonical.ErrScheme) {
				t.Errorf("%s: %q refused: %v, want %q", r.ID, r.In, err, *r.Out)
			}
			continue
		}
		var want string
		if r.Out != nil {
			u, err := url.Parse(*r.Out)
			if err != nil {
				continue // not an address that Go can fetch
			}
			u.Fragment, u.RawFragment, u.User = "", "", nil
			want = strings.TrimSuffix(u.String(), "?")
		}
		switch {
		case err != nil && want == "", err == nil && got.String() == want:
			right++
		case err != nil && strings.Contains(err.Error(), "four decimal"):
		case strings.Contains(want, ".xn--pokxncvks"): // no Punycode to golang.org/x/net/idna
		default:
			t.Errorf("%s: %q on %q: %v (%v), want %q", r.ID, r.In, r.Base, got, err, want)
		}
	}
	assert.True(t, right >= minResolved, "%d rows are right, floor %d", right, minResolved)
	t.Logf("%d rows are right", right)
}

func TestTracking(t *testing.T) {
	for p, want := range map[string]bool{
		"utm_source=x": true, "UTM_Campaign=x": true, "ref=": true, "gclid=x": true, "fbclid=x": true, "mc_cid=x": true, "NaPm=x": true,
		"xtor=RSS-3": true, "maca=en-rss-en-all": true, "CMP=share_btn": true, "cmp=rss": true, "ocid=abc": true, "ns_campaign=1490": true, "at_custom1=x": true,
		"src=rss": true, "origin=rss": true, "source=Newsletter_daily": true, "feed=rss": true,
		"src=/a.jpg": false, "origin=LHR": false, "source=rssl": false, "feed=rss2": false, "from=2026-01-02": false, "via=": false,
		"page=2": false, "reference=rss": false, "idxno=1": false, "q=rss": false, "": false, "v=x": false, "compare=1": false,
	} {
		name, value, _ := strings.Cut(p, "=")
		got := canonical.Tracking(name, value)
		assert.Equal(t, want, got, p)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("https://e.com/docs/", "../a?b=c#d", "b")
	f.Add("http://[::1]:80/%2e%2e/", `\\한국.kr:443/%ff`, "*")
	f.Add("https://e.com/a?b", "http:x", "")
	f.Add("", "http://../", "")
	f.Add("", "http://a../", "")
	f.Add("", "https://a.example/문서(1)!", "")
	f.Fuzz(func(t *testing.T, rawBase, href, keep string) {
		base, err := url.Parse(rawBase)
		if err != nil {
			return
		}
		u, err := canonical.Address(base, href, []string{keep})
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
			t.Fatalf("address %q of %q on %q", u, href, rawBase)
		}
		if base.Host != "" && strings.Contains(u.Host, base.Host) {
			return // the base's own host is taken as it is
		}
		k, err := canonical.Key(u, []string{keep})
		if strings.Trim(u.Hostname(), ".") == "" { // a valid URL, and no page
			require.ErrorIs(t, err, canonical.ErrURL, "key %q of the address %q", k, u)
			return
		}
		require.NoError(t, err, "key of the address %q", u)
		again, err := url.Parse(k)
		require.NoError(t, err, "key %q of %q is no URL", k, u)
		k2, err := canonical.Key(again, []string{keep})
		require.True(t, err == nil && k2 == k, "key %q of %q has the key %q (%v)", k, u, k2, err)
		canonical.Match("/{docs,a}/**", canonical.Path(k))
	})
}
