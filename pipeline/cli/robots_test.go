package cli

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// sealed is the time and hash of the document that was read.
var sealed = regexp.MustCompile(`(?m)^ {13}\d{4}-\d\d-\d\dT[0-9:.]+Z, sha256 [0-9a-f]{64}\n`)

// try says by which line of which group a URL is allowed or not, and its
// exit code says the same to scripts.
func TestRobotsCommand(t *testing.T) {
	emptyEnv(t)
	got := here(t, "try --web=demo https://kind-crawl-delay-1.com/admin/public/x")
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, `allowed      https://kind-crawl-delay-1.com/admin/public/x
agent        Newsfork-SeedEngine/1.0
by           line 6: Allow: /admin/public/
group        User-agent: * (line 2)
crawl delay  1s
robots.txt   https://kind-crawl-delay-1.com/robots.txt
sitemap      https://kind-crawl-delay-1.com/sitemap.xml
rights       search unsaid, ai-input unsaid, ai-train unsaid, archive unsaid; a record of preferences, no legal advice
`, sealed.ReplaceAllString(got.stdout, ""))
	assert.Regexp(t, sealed, got.stdout)

	// A URL that is allowed, and that no run would visit.
	long := "https://kind-crawl-delay-long-1.com/a"
	got = here(t, "try --web=demo "+long)
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, `
crawl delay  1m0s
not visited  that is longer than --max-crawl-delay=30s, so a run asks this host for nothing but robots.txt
robots.txt   `)
	for _, args := range []string{"--max-crawl-delay=1m ", "--job=docs "} { // docs waits for any crawl delay
		got = here(t, "try --web=demo "+args+long)
		assert.Contains(t, got.stdout, "\ncrawl delay  1m0s\nrobots.txt   ", args)
	}

	for args, want := range map[string]pipeline.RobotsAnswer{
		"https://kind-urlset-1.com/search?q=1":                     {Line: 4, Rule: "Disallow: /search?", Group: "*", GroupLines: []int{2}, Agent: "Newsfork-SeedEngine/1.0", Status: 200},
		"--agent=badbot https://kind-urlset-1.com/":                {Line: 8, Rule: "Disallow: /", Group: "badbot", GroupLines: []int{7}, Agent: "badbot", Status: 200},
		"--job=docs https://kind-urlset-1.com/a":                   {Allowed: true, Group: "*", GroupLines: []int{2}, Agent: "APIIntelBot/1.0 (+https://api-intel.vercel.app/bot)", Status: 200},
		"https://kind-no-robots-1.com/a":                           {Allowed: true, Agent: "Newsfork-SeedEngine/1.0", Status: 404},
		"https://kind-crawl-delay-long-1.com/admin/":               {Line: 4, Rule: "Disallow: /admin/", Group: "*", GroupLines: []int{2}, Agent: "Newsfork-SeedEngine/1.0", Status: 200, CrawlDelay: 60, TooLong: true},
		"https://me:secret@kind-urlset-1.com/a?utm_source=x#there": {Allowed: true, Group: "*", GroupLines: []int{2}, Agent: "Newsfork-SeedEngine/1.0", Status: 200},
	} {
		got := here(t, "try --json --web=demo "+args)
		var a pipeline.RobotsAnswer
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &a), got.stderr)
		code := exitOK
		if !want.Allowed {
			code = exitDisallowed
			assert.Contains(t, got.stderr, "robots.txt disallows the URL (line ", args)
		}
		assert.Equal(t, code, got.code, args)
		assert.NotContains(t, got.stdout, "secret")
		assert.Equal(t, rights.Verdicts{Search: rights.Unsaid, AIInput: rights.Unsaid, AITrain: rights.Unsaid, Archive: rights.Unsaid}, a.Rights.Verdicts, args)
		assert.Equal(t, a.Status != 200, a.Rights.Why != "", args)
		a.URL, a.RobotsURL, a.Sitemaps, a.Rights = "", "", nil, rights.Rights{}
		assert.Equal(t, want, a, args)
	}
}

// What cannot be answered is an error, and never looks like an allowed or a disallowed URL.
func TestRobotsCommandFails(t *testing.T) {
	emptyEnv(t)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"try":                              {exitUsage, "write pipeline try URL"},
		"try example.org":                  {exitUsage, "write it with its scheme"},
		"try ftp://example.org/":           {exitUsage, "write an http or https URL"},
		"try --turns=/ https://a.example/": {exitUsage, "name a file with --turns"},
		"try --job=x https://a.example/":   {exitUsage, "there is no such job"},
		"try --web=demo --host-delay=0s https://kind-robots-500-1.com/":       {exitFailed, "answers with status 500"},
		"try --web=demo https://kind-redirect-private-1.com/":                 {exitFailed, "robots.txt cannot be fetched"},
		"try --web=demo https://kind-no-such-host-1.com/":                     {exitFailed, "robots.txt cannot be fetched"},
		"try https://127.0.0.1/":                                              {exitFailed, "(--allow-private allows it)"},
		"try --web=demo --connect-to=127.0.0.1:1 https://a.example/":          {exitUsage, "give one"},
		"try --web=demo https://kind-urlset-1.com/ https://a.example/ --json": {exitUsage, "write pipeline try URL"},
	} {
		got := here(t, args)
		assert.Equal(t, want.code, got.code, args)
		assert.Contains(t, got.stderr, want.says, args)
		assert.Empty(t, got.stdout, args)
	}
}
