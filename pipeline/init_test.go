package pipeline

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
)

// init policy says that there is no llms.txt or sitemap only if the site says so, and otherwise why it could not tell.
func TestInitPolicyCouldNotTell(t *testing.T) {
	const none, noMap = "# there is no llms.txt at https://docs.example/docs/llms.txt nor at https://docs.example/llms.txt\n",
		"# no sitemap with pages below /docs/ was found, by robots.txt or at https://docs.example/sitemap.xml\n"
	for name, c := range map[string]struct {
		robots string
		status map[string]int // 0: the connection ends
		want   []string
	}{
		"absent":     {"", map[string]int{"/docs/llms.txt": 404, "/llms.txt": 410, "/sitemap.xml": 404}, []string{none, noMap}},
		"other":      {"", map[string]int{"/docs/llms.txt": 200, "/llms.txt": 200, "/sitemap.xml": 200}, []string{none, noMap}},
		"disallowed": {"User-agent: *\nDisallow: /llms.txt\n", map[string]int{"/docs/llms.txt": 404, "/sitemap.xml": 404}, []string{"# could not tell if there is an llms.txt: robots.txt, line 2, disallows https://docs.example/llms.txt", noMap}},
		"refused": {"", map[string]int{"/docs/llms.txt": 403, "/llms.txt": 404, "/sitemap.xml": 503}, []string{"# could not tell if there is an llms.txt: https://docs.example/docs/llms.txt answers with status 403",
			"# could not tell if a sitemap has pages below /docs/: https://docs.example/sitemap.xml answers with status 503"}},
		"broken": {"", map[string]int{"/docs/llms.txt": 404, "/llms.txt": 0, "/sitemap.xml": 0}, []string{"# could not tell if there is an llms.txt: fetching https://docs.example/llms.txt: reset",
			"# could not tell if a sitemap has pages below /docs/: fetching https://docs.example/sitemap.xml: reset"}},
		"elsewhere": {"", map[string]int{"/docs/llms.txt": 302, "/llms.txt": 404, "/sitemap.xml": 302}, []string{
			"# could not tell if there is an llms.txt: it redirects to another host: give the address there, https://elsewhere.example/docs/llms.txt",
			"# could not tell if a sitemap has pages below /docs/: it redirects to another host: give the address there, https://elsewhere.example/sitemap.xml"}},
	} {
		t.Run(name, func(t *testing.T) {
			sites := func(w *webtest.Web) {
				w.Handle("docs.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					status, there := c.status[r.URL.Path]
					switch {
					case r.URL.Path == "/robots.txt":
						_, _ = fmt.Fprint(w, c.robots)
					case there && status == 0:
						panic(http.ErrAbortHandler)
					case status == http.StatusFound:
						http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, status)
					default:
						w.Header().Set("Content-Type", "text/html; charset=utf-8")
						if there {
							w.WriteHeader(status)
						}
						_, _ = fmt.Fprint(w, `<!doctype html><title>Docs</title><p>Words about the product. <a href="/docs/first">The first page</a></p>`)
					}
				}))
			}
			o := RunOptions{Web: "demo", Turns: "off", Concurrency: 1}
			at := &url.URL{Scheme: "https", Host: "docs.example", Path: "/docs/"}
			text, err := visitSite(t.Context(), o, o.WebConfig(""), sites, at, initPolicy)
			require.NoError(t, err)
			for _, want := range c.want {
				assert.Contains(t, text, want)
			}
			assert.Contains(t, text, "sitemap_url: null\n")
		})
	}
}
