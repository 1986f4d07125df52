package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/botpage"
	"github.com/newsfork/seed-engine/pipeline"
)

// The page names the User-Agents of all jobs.
func TestBotPage(t *testing.T) {
	emptyEnv(t)
	got := here(t, "init bot-page --operator=Acme --contact=bot@acme.example --addresses=192.0.2.7,2001:db8::/48")
	assert.Equal(t, ExitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "<code>2001:db8::/48</code>")
	for _, j := range pipeline.All() {
		agent := j.Agent
		if agent == "" {
			agent = web.DefaultUserAgent
		}
		token, _, _ := strings.Cut(agent, "/")
		assert.True(t, slices.ContainsFunc(botpage.Agents, func(a botpage.Agent) bool { return a.Token == token }), "%s: %s", j.Name, token)
	}
	for line, says := range map[string]string{
		"init bot-page":                              "--operator: say who crawls",
		"init bot-page --operator=A":                 "--contact: \"\" is neither",
		"init bot-page --operator=A --contact=b x":   "write pipeline init bot-page",
		"init bot-page --operator=A --where=nowhere": "where",
	} {
		got := here(t, line)
		assert.Equal(t, ExitUsage, got.code, line)
		assert.Contains(t, got.stderr, says)
	}
}
