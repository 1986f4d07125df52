package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/botpage"
)

// The page about the crawlers needs no token, and is served only if it is asked for.
func TestBotPage(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	open := newWorld(t, "done", func(s *Settings) {
		s.Token, s.Config.Bot = token, &botpage.Page{Operator: "Acme", Contact: "bot@acme.example"}
	})
	a := open.do("GET", "/bot", "")
	require.Equal(t, http.StatusOK, a.code)
	assert.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	assert.Contains(t, a.body, "mailto:bot@acme.example")
	assert.Equal(t, http.StatusUnauthorized, open.do("GET", "/bot/x", "").code)
	assert.Equal(t, http.StatusUnauthorized, open.do("GET", "/api/v1/runs", "").code)
	closed := newWorld(t, "done", func(s *Settings) { s.Token = token })
	assert.Equal(t, http.StatusUnauthorized, closed.do("GET", "/bot", "").code)
	assert.Equal(t, http.StatusNotFound, closed.do("GET", "/bot", "", "Authorization", "Bearer "+token).code)
}
