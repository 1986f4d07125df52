package botauth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/io/web/robots"
)

// The page says who crawls and how to be left out, and escapes what the operator wrote. What is next to it is what the block has.
func TestPage(t *testing.T) {
	t.Setenv(botauth.KeyVariable, "")
	full := botauth.Bot{Operator: "A & <b>", Contact: "bot@a.example", Addresses: []string{"192.0.2.7", "2001:db8::/48"}, Page: "https://a.example/bot", Key: "bot.pem"}
	for _, c := range []struct {
		name      string
		bot       botauth.Bot
		documents []string
		has, not  []string
	}{
		{"full", full, []string{"page", "card", "directory", "addresses"}, []string{"<title>The crawlers of A &amp; &lt;b&gt;</title>",
			`<a href="mailto:bot@a.example">bot@a.example</a>`, "APIIntelBot", "<code>2001:db8::/48</code>", `href="/.well-known/crawler-addresses.json"`,
			`href="/.well-known/http-message-signatures-directory"`, "<pre>User-agent: APIIntelBot\nUser-agent: Newsfork-SeedEngine\nDisallow: /\n</pre>"}, nil},
		{"named", botauth.Bot{Name: "Acme/2", Operator: "A", Contact: "https://a.example/contact", Page: "https://a.example/bot"}, []string{"page", "card"},
			[]string{`<a href="https://a.example/contact">`, "<pre>User-agent: Acme\nDisallow: /\n</pre>"}, []string{"<h2>Addresses", "APIIntelBot", "signed"}},
		{"without an address", botauth.Bot{Operator: "A", Contact: "bot@a.example", Addresses: []string{"192.0.2.7"}}, []string{"page"},
			[]string{"<code>192.0.2.7</code>"}, []string{"signed", ".json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.bot.CheckPage())
			var names []string
			all := botauth.Publish(&c.bot)
			for _, d := range all {
				names = append(names, d.Name)
			}
			assert.Equal(t, c.documents, names)
			page, err := all[0].Make(time.Now())
			require.NoError(t, err)
			for _, want := range c.has {
				assert.Contains(t, string(page.Body), want)
			}
			for _, bad := range c.not {
				assert.NotContains(t, string(page.Body), bad)
			}
		})
	}
	assert.Empty(t, botauth.Publish(nil))
}

// The example of robots.txt leaves out every crawler of the program, and no other.
func TestRobots(t *testing.T) {
	page, err := botauth.Publish(&botauth.Bot{})[0].Make(time.Now())
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page.Body), "<pre>")
	text, _, _ = strings.Cut(text, "</pre>")
	f := robots.Parse([]byte(text))
	for _, a := range botauth.Agents {
		assert.False(t, f.Allowed(a.Own, "/x"), a.Own)
	}
	assert.True(t, f.Allowed("Googlebot", "/x"))
}
