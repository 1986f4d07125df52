package server

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/botauth"
)

// The page about the crawlers needs no token, and is served only if it is asked for.
func TestBotPage(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	b, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "bot.pem")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}), 0o600))
	open := newWorld(t, "done", func(s *Settings) {
		s.Token, s.Config.Bot = token, &botauth.Bot{Operator: "Acme", Contact: "bot@acme.example", Page: "https://acme.example/bot", Key: key}
	})
	a := open.do("GET", "/bot", "")
	require.Equal(t, http.StatusOK, a.code)
	assert.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	assert.Contains(t, a.body, "mailto:bot@acme.example")
	a = open.do("GET", "/.well-known/http-message-signatures-directory", "")
	require.Equal(t, http.StatusOK, a.code, a.body)
	assert.Equal(t, "application/http-message-signatures-directory+json", a.header.Get("Content-Type"))
	assert.Contains(t, a.header.Get("Signature-Input"), `("@authority";req "content-digest")`)
	assert.Contains(t, open.do("GET", "/.well-known/signature-agent-card", "").body, `"jwks_uri":"https://acme.example/.well-known/`)
	require.NoError(t, os.Chmod(key, 0o644))
	a = open.do("GET", "/.well-known/http-message-signatures-directory", "")
	assert.Equal(t, http.StatusInternalServerError, a.code)
	assert.NotContains(t, a.body, key, "strangers read it")
	assert.Equal(t, http.StatusUnauthorized, open.do("GET", "/bot/x", "").code)
	assert.Equal(t, http.StatusUnauthorized, open.do("GET", "/api/v1/runs", "").code)
	closed := newWorld(t, "done", func(s *Settings) { s.Token = token })
	assert.Equal(t, http.StatusUnauthorized, closed.do("GET", "/bot", "").code)
	assert.Equal(t, http.StatusNotFound, closed.do("GET", "/bot", "", "Authorization", "Bearer "+token).code)
}
