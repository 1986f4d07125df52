//go:build e2e

package server

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/botauth"
)

// sites are web servers of many hosts on one address. They keep the signed requests that come.
type sites struct {
	mu       sync.Mutex
	signed   []string
	unsigned int
	cut      map[string]bool // paths whose connection was cut once
}

// ServeHTTP answers /redirect with the same page of another host, /cut with no answer once, and /ask, unless it is signed with the
// nonce that it names, with a request to sign.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(&b) // a builder does not fail
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Signature") == "" {
		s.unsigned++
	} else {
		s.signed = append(s.signed, b.String()+"\r\n")
	}
	nonce := "nonce-of" + strings.ReplaceAll(r.URL.Path, "/", "-")
	switch what, _, _ := strings.Cut(r.URL.Path[1:], "/"); {
	case what == "redirect":
		http.Redirect(w, r, "http://to-"+r.Host+"/page"+r.URL.Path+"?from="+r.Host, http.StatusFound)
	case what == "cut" && !s.cut[r.URL.Path]:
		s.cut[r.URL.Path] = true
		panic(http.ErrAbortHandler)
	case what == "ask" && !strings.Contains(r.Header.Get("Signature-Input"), nonce):
		w.Header().Set("Accept-Signature", `asked=("@authority" "@target-uri" "user-agent");nonce="`+nonce+`";created;expires;tag="web-bot-auth"`)
		w.WriteHeader(http.StatusForbidden)
	}
}

// TestSignedRequests has two other programs verify what the client signs.
func TestSignedRequests(t *testing.T) { verified(t, 300, 100) }

// verified sends at least that many signed requests, in batches that are verified before their signatures end, with redirects, cut
// connections, hosts that ask for a signature, and a new key in the middle. All are valid for their own host and none for another one.
func verified(t *testing.T, requests, batch int) {
	botgate := fromPyPI(t, "botgate")
	dir := t.TempDir()
	at := &sites{cut: map[string]bool{}}
	server := httptest.NewServer(at)
	defer server.Close()
	bot := botauth.Bot{Name: "AcmeBot/1.0", Page: "https://acme.example/bot", Key: filepath.Join(dir, "bot.pem")}
	open := func(mode string) *web.Client {
		sign := bot.Signing()
		sign.Mode = mode
		c, err := web.New(web.Config{UserAgent: bot.UserAgent(""), ConnectTo: server.Listener.Addr().String(), Sign: sign})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	get := func(c *web.Client, url string) {
		r, err := c.Get(t.Context(), web.Request{URL: url, MaxRedirects: 3})
		if err != nil { // its connection was cut
			r, err = c.Get(t.Context(), web.Request{URL: url})
		}
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status, url)
	}
	keyIDs := map[string]bool{}
	var key string
	done := 0
	for n := 0; done < requests; n++ {
		if n == 0 || n == max(1, requests/batch/2) { // the directory lists both keys, and the new one signs
			key += newKey(t)
			require.NoError(t, os.WriteFile(bot.Key, []byte(key), 0o600))
		}
		always, challenged := open(botauth.Always), open(botauth.Challenged)
		for i := 0; len(at.signed) < batch; i++ {
			host := fmt.Sprintf("http://h%d.example/", i%50)
			get(always, fmt.Sprintf("%spage/%d-%d?q=%d&r=a%%20b", host, n, i, i))
			get(always, fmt.Sprintf("%sredirect/%d-%d", host, n, i))
			get(always, fmt.Sprintf("%scut/%d-%d", host, n, i))
			get(challenged, fmt.Sprintf("http://c%d.example/ask/%d-%d?x", i%50, n, i))
		}
		folder := filepath.Join(dir, fmt.Sprint(n))
		require.NoError(t, os.Mkdir(folder, 0o700))
		for i, text := range at.signed {
			require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%05d.http", i)), []byte(text), 0o600))
			_, id, _ := strings.Cut(text, `keyid="`)
			keyIDs[id[:43]] = true
		}
		directory, err := bot.Directory(time.Now())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "directory.json"), directory.Body, 0o600))
		out, err := exec.Command(filepath.Join(filepath.Dir(botgate), "python3"), "testdata/verify.py", botgate, filepath.Join(dir, "directory.json"), folder).CombinedOutput()
		require.NoError(t, err, "%s", out)
		var got map[string]int
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &got), "%s", out)
		all := len(at.signed)
		require.Equal(t, map[string]int{"requests": all, "own": all, "botgate": all, "other": 0, "botgate_other": 0, "late": 0}, got, "%s", out)
		done, at.signed = done+all, nil
		require.NoError(t, os.RemoveAll(folder))
	}
	require.Positive(t, at.unsigned, "hosts that were not yet asking")
	t.Logf("%d signed requests, %d keys", done, len(keyIDs))
}

func newKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	b, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}))
}
