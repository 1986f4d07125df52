package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

func TestStub(t *testing.T) {
	long := strings.Repeat("Words about what the status means and what to do. ", 30)
	for name, tt := range map[string]struct{ html, why, to string }{
		"a soft 404":             {`<title>Page not found | Docs</title><main><h1>Sorry</h1><p>Try the search.</p></main>`, "it says that it was not found (a soft 404)", ""},
		"by its number":          {`<title>404 - Docs</title><main><p>Nothing here.</p></main>`, "it says that it was not found (a soft 404)", ""},
		"by its heading":         {`<title>Docs</title><main><h1>404 Not Found</h1><p>Nothing here.</p></main>`, "it says that it was not found (a soft 404)", ""},
		"in Korean":              {`<title>페이지를 찾을 수 없습니다</title><main><p>주소를 확인하세요.</p></main>`, "it says that it was not found (a soft 404)", ""},
		"about the status":       {`<title>404 Not Found</title><main><h1>404 Not Found</h1><p>` + long + `</p></main>`, "", ""},
		"about a function":       {`<title>404 handler | Docs</title><main><h1>404 handler</h1><p>Set it.</p></main>`, "", ""},
		"with code":              {`<title>Page not found</title><main><h1>Page not found</h1><pre>app.use(notFound)</pre></main>`, "", ""},
		"a script":               {`<title>x</title><script>window.location.replace("/docs/new")</script><p>Moved.</p>`, "redirects to /docs/new by a script", "/docs/new"},
		"a script that assigns":  {`<title>x</title><script>location.href = '../new';</script>`, "redirects to ../new by a script", "../new"},
		"a script that says so":  {`<title>Redirecting…</title><script>location = "/docs/new"</script><p>Wait.</p>`, "says only that it redirects", "/docs/new"},
		"a script in a page":     {`<title>x</title><script>function go() { location = "/docs/new" }</script><main><p>` + long + `</p></main>`, "", ""},
		"another object's field": {`<title>x</title><script>store.location = "Berlin"</script><main><p>Few words.</p></main>`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pg, err := content.Extract([]byte(tt.html), "text/html; charset=utf-8", content.Options{})
			require.NoError(t, err)
			why, to := stub(pg, []byte(tt.html))
			if v := answer.Classify(answer.Response{Status: 200, Body: []byte(tt.html)}); why == "" && v.Kind == answer.Soft404 {
				why = softNotFound
			}
			require.Equal(t, tt.why, why)
			require.Equal(t, tt.to, to)
		})
	}
}
