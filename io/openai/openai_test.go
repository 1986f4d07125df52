package openai

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer has as many bytes as the caller takes, and no more.
func TestLargeAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer s.Close()
	e, err := At(s.URL, "/x", "m", "n", "", time.Minute)
	require.NoError(t, err)
	defer e.Close()
	b, err := e.Post(t.Context(), "q", 1<<20)
	require.NoError(t, err)
	assert.Len(t, b, 1<<20)
	_, err = e.Post(t.Context(), "q", 1<<19)
	assert.ErrorContains(t, err, "its answer is over 0 MB")
}

// An endpoint that repeats the key, in any answer or in the first line of one, does not make us
// print it.
func TestKeyIsNotPrinted(t *testing.T) {
	const key = `sk-Ab/9+"<z>=key0`
	said := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			w.WriteHeader(http.StatusUnauthorized)
		case "/broken":
			c, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", said)
				assert.NoError(t, c.Close())
			}
			return
		}
		_, _ = io.WriteString(w, said)
	}))
	defer s.Close()
	for _, said = range []string{
		key, strings.Repeat("x", 290) + key, `{"error": "Incorrect API key provided: sk-Ab\/9+\"<z>=key0"}`, `{"error": "sk-Ab/9+\"\u003cz\u003e=key0"}`,
		url.QueryEscape(key), url.PathEscape(key), base64.StdEncoding.EncodeToString([]byte(key)), strings.Repeat(key, 3),
	} {
		for _, path := range []string{"/refused", "/broken", "/taken"} {
			e, err := At(s.URL, path, "m", "n", key, time.Minute)
			require.NoError(t, err)
			b, err := e.Post(t.Context(), "q", 1<<20)
			got := fmt.Sprintf("%s %v", b, err)
			for _, part := range []string{"Ab", "z", "key0", base64.StdEncoding.EncodeToString([]byte(key))[:8]} {
				assert.NotContains(t, strings.ReplaceAll(got, "xxx", ""), part, "%s: %s", path, said)
			}
			if path != "/broken" { // such an error ends at a space
				assert.Contains(t, got, "REDACTED", path)
			}
			if path == "/refused" {
				var status *StatusError
				require.ErrorAs(t, err, &status)
				assert.NotContains(t, status.Text, "Ab")
			}
			e.Close()
		}
	}
	e, err := At("http://127.0.0.1:1", "/x", "m", "n", "127.0.0.1:1", time.Minute)
	require.NoError(t, err)
	_, err = e.Post(t.Context(), "q", 1)
	var refused *net.OpError
	assert.True(t, errors.As(err, &refused), "what it is stays known: %v", err)
	assert.NotContains(t, err.Error(), "127.0.0.1:1")
}
