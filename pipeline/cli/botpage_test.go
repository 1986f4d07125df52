package cli

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/pipeline"
)

// The documents say what the block says, and the page names the User-Agents of all jobs.
func TestBotPage(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	b, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	writeFile(t, "bot.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})))
	require.NoError(t, os.Chmod("bot.pem", 0o600))
	writeFile(t, "c.yaml", "bot:\n  operator: Acme # us\n  contact: bot@acme.example\n  page: https://acme.example/bot\n  addresses: [192.0.2.7, '2001:db8::/48']\n  key: bot.pem\n")
	for part, want := range map[string]string{
		"page": "<code>2001:db8::/48</code>", "card": `"client_uri":"https://acme.example/bot"`, "directory": `"crv":"Ed25519"`, "addresses": `"192.0.2.7/32"`,
	} {
		got := here(t, "init bot-page --config=c.yaml --part="+part)
		assert.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stdout, want)
		assert.Contains(t, got.stderr, "Content-Type: ")
		assert.Equal(t, part == "directory", strings.Contains(got.stderr, "Signature-Input: binding0="), got.stderr)
		assert.Equal(t, part != "page", json.Valid([]byte(got.stdout)))
	}
	for _, j := range pipeline.All() {
		agent := cmp.Or(j.Agent, web.DefaultUserAgent)
		assert.True(t, slices.ContainsFunc(botauth.Agents, func(a botauth.Agent) bool { return a.Own == agent }), "%s: %s", j.Name, agent)
	}
	for line, says := range map[string]string{
		"init bot-page": "operator: say who crawls",
		"init bot-page --bot={\"operator\":\"A\"}":                        "contact: \"\" is neither",
		"init bot-page --contact=b@a.example x":                           "write pipeline init bot-page",
		"init bot-page --contact=b@a.example --where=nowhere":             "where",
		"init bot-page --config=c.yaml --part=page --bot={\"nam\":\"A\"}": "unknown field",
	} {
		got := here(t, line)
		assert.Equal(t, exitUsage, got.code, line)
		assert.Contains(t, got.stderr, says, line)
	}
}
