package web

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A client keeps a few URLs of each kind of failure and of each bad status, without
// passwords, and none of what went well.
func TestExamples(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/none"):
			http.Error(w, "none", http.StatusNotFound)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/none", http.StatusFound)
		case r.URL.Path == "/reset":
			panic(http.ErrAbortHandler)
		}
	})
	c := client(t, Config{AllowPrivate: true})
	assert.Nil(t, c.Stats().Examples, "examples before the first request")
	get := func(path string) {
		_, _ = c.Get(t.Context(), Request{URL: strings.Replace(s.URL, "//", "//user:swordfish@", 1) + path, MaxRedirects: 2}) // Stats has what became of it
	}
	get("/")
	get("/moved")
	get("/reset")
	get("/none")
	long := "/none" + strings.Repeat("x", 400)
	get(long)
	for i := range 5 {
		get("/none" + strconv.Itoa(i))
	}
	want := map[string][]string{"404": {s.URL + "/none", (s.URL + long)[:maxExample], s.URL + "/none0"}, "reset": {s.URL + "/reset"}}
	assert.Equal(t, want, c.Stats().Examples)
}
