package botpage_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/botpage"
	"github.com/newsfork/seed-engine/io/web/robots"
)

// The page says who crawls and how to be left out, and escapes what the operator wrote.
func TestPage(t *testing.T) {
	p := botpage.Page{Operator: "A & <b>", Contact: "bot@a.example", Addresses: []string{"192.0.2.7", "2001:db8::/48"}}
	require.NoError(t, p.Check())
	b, err := p.HTML()
	require.NoError(t, err)
	for _, want := range []string{"<title>The crawlers of A &amp; &lt;b&gt;</title>", `<a href="mailto:bot@a.example">bot@a.example</a>`, "APIIntelBot", "<code>2001:db8::/48</code>", "<pre>User-agent: APIIntelBot\nUser-agent: Newsfork-SeedEngine\nDisallow: /\n</pre>"} {
		assert.Contains(t, string(b), want)
	}
	p.Contact, p.Addresses = "https://a.example/contact", nil
	require.NoError(t, p.Check())
	b, err = p.HTML()
	require.NoError(t, err)
	assert.Contains(t, string(b), `<a href="https://a.example/contact">`)
	assert.NotContains(t, string(b), "<h2>Addresses")

	for want, bad := range map[string]botpage.Page{
		"operator: say who crawls":             {Contact: "bot@a.example"},
		`contact: "" is neither`:               {Operator: "A"},
		`contact: "javascript:x" is neither`:   {Operator: "A", Contact: "javascript:x"},
		`contact: "http://a.example/" is`:      {Operator: "A", Contact: "http://a.example/"},
		`addresses: "somewhere" is no IP addr`: {Operator: "A", Contact: "bot@a.example", Addresses: []string{"somewhere"}},
	} {
		assert.ErrorContains(t, bad.Check(), want)
	}
}

// The example of robots.txt leaves out every crawler of the program, and no other.
func TestRobots(t *testing.T) {
	f := robots.Parse([]byte(botpage.Robots()))
	for _, a := range botpage.Agents {
		assert.False(t, f.Allowed(a.Token, "/x"), a.Token)
	}
	assert.True(t, f.Allowed("Googlebot", "/x"))
}
