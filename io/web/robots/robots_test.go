package robots_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func TestRule(t *testing.T) {
	f := func(body, agent, target string, line int, allowed bool) {
		t.Helper()
		gotLine, text, got := robots.Parse([]byte(body)).Rule(agent, target)
		assert.True(t, gotLine == line && got == allowed,
			"%q for %q on %q: line %d (%q) allowed %v, want line %d allowed %v", body, agent, target, gotLine, text, got, line, allowed)
	}
	f("", "bot", "/", 0, true)
	f("user-agent: *\ndisallow: /a", "bot", "/a/b", 2, false)
	f("user-agent: *\rdisallow: /a\r\rallow: /a/b", "bot", "http://x.example/a/b", 4, true)
	f("\xef\xbb\xbfUser-Agent: *\r\nDisallow: /\r\n", "bot", "/x", 2, false)
	f("user-agent: *\ndisallow: /a\nallow: /a", "bot", "/a", 3, true)
	f("user-agent: *\ndisallow: /", "bot", "/robots.txt", 0, true)
	f("user-agent: *\ndisallow: /", "bot", "https://x.example/robots.txt", 0, true)
	f("user-agent: bot\ndisallow: /a\nuser-agent: *\ndisallow: /\nuser-agent: BOT\ndisallow: /b", "bot/2.0 (+http://x)", "/b", 6, false)
	f("user-agent: bot\ndisallow: /a\nuser-agent: *\ndisallow: /", "bot", "/b", 0, true)
	f("user-agent: MJ12bot\ndisallow: /", "MJ13bot", "/", 0, true)
	f("user-agent: *\ndisallow: /*.php$", "bot", "/a.php?x", 0, true)
	f("user-agent: *\ndisallow: /*.php$", "bot", "/a.php/b.php", 2, false)
	f("user-agent: *\ndisallow: /한글", "bot", "/%ed%95%9c%ea%b8%80/1", 2, false)
	f("user-agent: *\ndisallow: /a%2Fb", "bot", "/a/b", 0, true)
	f("user-agent: *\ndisallow: /%2a%24", "bot", "/*$x", 2, false)
	f("user-agent: *\ndisallow: /a?q=", "bot", "http://x.example/a?q=1#f", 2, false)
	f("user-agent: *\ndisallow: /", "bot", "http://x.example?q", 2, false)
	f("user-agent: a\nsitemap: http://x.example/s\nuser-agent: b\ndisallow: /", "a", "/", 4, false)
	f("disallow: /", "bot", "/", 0, true)

	// Files as servers really send them.
	const rules = "User-agent: *\nDisallow: /a\n"
	f("\xff\xfe"+wide(rules, 0), "bot", "/a", 2, false)
	f("\xfe\xff"+wide(rules, 1), "bot", "/a", 2, false)
	f(wide(rules, 0), "bot", "/a", 2, false)
	f(wide(rules, 1), "bot", "/a", 2, false)
	f("\u00ef\u00bb\u00bf"+rules, "bot", "/a", 2, false) // a mark that was taken for text
	f("\x00"+rules, "bot", "/a", 2, false)
	f("User-agent:\u00a0*\nDisallow:\u00a0/a\u00a0\n", "bot", "/a", 2, false)
	f("<p>User-agent: *<br />\nDisallow: /a</p><br/>\n", "bot", "/a", 2, false)
	f("User-agent: *\nDisallow: /a<b>c", "bot", "/a", 0, true) // no tag at the end
	f("User-agent *\nDisallow /a:b\n", "bot", "/a:b", 2, false)
	f("User-agent: *\nDisallow /a b:c\n", "bot", "/a", 0, true)

	// Reserved characters are encoded before the comparison.
	f("user-agent: *\ndisallow: /a[1]+b,c", "bot", "/a%5b1%5D%2Bb%2cc", 2, false)
	f("user-agent: *\ndisallow: /a%40b%3Dc", "bot", "/a@b=c", 2, false)
	f("user-agent: *\ndisallow: /a%3Db\nallow: /a=bc", "bot", "/a=bcd", 3, true)
}

// wide is ASCII text in UTF-16, big-endian where big is 1.
func wide(text string, big int) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString([]string{text[i:i+1] + "\x00", "\x00" + text[i:i+1]}[big])
	}
	return b.String()
}

// Where a file is cut off, less is allowed than it says, and never more.
func TestWhole(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"user-agent: *\r\nallow: /x":         "user-agent: *\r\n",
		"user-agent: *\rALLOW : /x":          "user-agent: *\r",
		"sitemap: https://a.exam":            "",
		"user-agent: *\ndisallow: /x":        "user-agent: *\ndisallow: /x",
		"user-agent: *\nallow: /x\ndisallow": "user-agent: *\nallow: /x\ndisallow",
		"user-agent: *\nallow: /x\n":         "user-agent: *\nallow: /x\n",
	} {
		assert.Equal(t, want, robots.Whole(text), "%q", text)
	}
}

// What a caller keeps as text has the same rules.
func TestText(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		assert.Equal(t, want, robots.Text([]byte(body)), "%q", body)
	}
	f("", "")
	f("\xef\xbb\xbfDisallow: /한", "Disallow: /한")
	f("Disallow: /caf\xe9\xff/한\xed\x95", "Disallow: /caf%E9%FF/한%ED%95")
	f("\xff\xfea\x00\x5c\xd5", "a한")
	f("\xfe\xff\x00a\xd5\x5c", "a한")
	latin := robots.Parse([]byte(robots.Text([]byte("user-agent: *\ndisallow: /caf\xe9"))))
	assert.False(t, latin.Allowed("bot", "/caf%e9"), "the text of a file in Latin-1 allows what the file forbids")
}

func TestCrawlDelay(t *testing.T) {
	f := func(value string, want time.Duration, ok bool) {
		t.Helper()
		got, found := robots.Parse([]byte("user-agent: *\ncrawl-delay: " + value)).CrawlDelay("bot")
		assert.True(t, got == want && found == ok, "crawl-delay %q: %v %v, want %v %v", value, got, found, want, ok)
	}
	f("2.5", 2500*time.Millisecond, true)
	f("0", 0, true)
	f("10 # seconds", 10*time.Second, true)
	f("5s", 5*time.Second, true)
	f("-1", 0, false)
	f("", 0, false)
	f("NaN", 0, false)
	f("1.2.3", 0, false)
	f(strings.Repeat("9", 400), 1<<63-1, true)
	f("1,5", 1500*time.Millisecond, true)
	f("+5", 5*time.Second, true)

	first := robots.Parse([]byte("Crawl-delay: 7\nUser-agent: own\nDisallow: /\nUser-agent: *\nDisallow: /b"))
	d, ok := first.CrawlDelay("bot")
	assert.True(t, d == 7*time.Second && ok, "a Crawl-delay above all user agents: %v %v, want 7s", d, ok)
	d, ok = first.CrawlDelay("own")
	assert.False(t, ok, "a Crawl-delay above all user agents holds for one with a group of its own: %v", d)
	if line, _, allowed := first.Rule("bot", "/b"); line != 5 || allowed {
		t.Errorf("the rules below a Crawl-delay above all user agents: line %d allowed %v, want 5 false", line, allowed)
	}
}

func TestSitemaps(t *testing.T) {
	f := robots.Parse([]byte("SITEMAP: https://b.example/2.xml\nUser-agent: *\nsitemap: /rel.xml\nSitemap : http://a.example/1.xml # c\nsitemap: https://b.example/2.xml\nsitemap: ftp://a.example/x\nsitemap: http://[fe80::1%25en0]/x\nsitemap: http://:80/x\nsitemap:\nSitemap https://c.example/3.xml\n"))
	assert.Equal(t, []string{"https://b.example/2.xml", "http://a.example/1.xml", "https://c.example/3.xml"}, f.Sitemaps(), "sitemaps")
	assert.Equal(t, []string{"/rel.xml", "ftp://a.example/x", "http://[fe80::1%25en0]/x", "http://:80/x"}, f.InvalidSitemaps(),
		"invalid sitemaps")
}

// Values that are no absolute URL are resolved against the file's URL, and several values
// of one line are told apart.
func TestSitemapValues(t *testing.T) {
	at, _ := url.Parse("https://www.site.com/robots.txt")
	for value, want := range cases.Table[map[string][]string](t, "sitemaps.yaml") {
		assert.Equal(t, want, robots.ParseAt([]byte("Sitemap: "+value+"\n"), at).Sitemaps(), "%s: sitemaps", value)
	}
	long, _ := url.Parse("https://site.com/" + strings.Repeat("a", 900) + "/robots.txt")
	var many strings.Builder
	for n := range 50_000 {
		fmt.Fprintf(&many, "Sitemap: %d\n", n)
	}
	assert.Equal(t, 1000, len(robots.ParseAt([]byte(many.String()), long).Sitemaps()))
}

// TestLargeFile has the decisive rule far past 500 KiB.
func TestLargeFile(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("user-agent: *\n")
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "disallow: /dir-%d/\n", i)
	}
	b.WriteString("disallow: /last/\n")
	f := robots.Parse(b.Bytes())
	assert.True(t, !f.Allowed("bot", "/last/x") && f.Allowed("bot", "/first/x"), "rules past 1 MiB are not obeyed")
}

func TestGroup(t *testing.T) {
	f := func(body, agent, token string, lines ...int) {
		t.Helper()
		if got, at := robots.Parse([]byte(body)).Group(agent); got != token || !slices.Equal(at, lines) {
			t.Errorf("%q for %q: group %q in lines %v, want %q in %v", body, agent, got, at, token, lines)
		}
	}
	f("", "bot", "")
	f("user-agent: other\ndisallow: /", "bot", "")
	f("user-agent: *\ndisallow: /", "bot", "*", 1)
	f("user-agent: *\ndisallow: /\n\nuser-agent: a\nuser-agent: BOT/2\ndisallow: /a\nuser-agent: bot\nallow: /", "Bot/1.0 (+x)", "bot", 5, 7)
	f("user-agent: *\nallow: /", "", "*", 1)
	// names between commas are a list; in a text they are not, and spaces divide none
	f("user-agent: a, Bot,\ndisallow: /", "bot", "bot", 1)
	f("user-agent: a,bot\nuser-agent: bot\ndisallow: /", "bot", "bot", 1)
	f("user-agent: a, *\ndisallow: /", "bot", "*", 1)
	f("user-agent: ,\ndisallow: /", "bot", "")
	f("user-agent: a bot\ndisallow: /", "bot", "")
	f("user-agent: A/5.0 (KHTML, bot) B\ndisallow: /", "bot", "")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("user-agent: *\ndisallow: /*a*$\ncrawl-delay: 1e3\nsitemap: http://x/"), "bot", "/a%2")
	f.Add([]byte("\xef\xbbuseragent x\rallow /%"), "", "http://")
	f.Fuzz(func(t *testing.T, body []byte, agent, target string) {
		file := robots.Parse(body)
		line, text, allowed := file.Rule(agent, target)
		assert.True(t, line != 0 || (allowed && text == ""), "allowed %v because of %q in line 0", allowed, text)
		if token, lines := file.Group(agent); (token == "") != (len(lines) == 0) || line > 0 && lines == nil {
			t.Errorf("group %q in lines %v, and a rule in line %d", token, lines, line)
		}
		d, ok := file.CrawlDelay(agent)
		assert.True(t, d >= 0 && (ok || d == 0), "crawl delay %v %v", d, ok)
		for _, s := range file.Sitemaps() {
			assert.Contains(t, s, ":", "sitemap")
		}
	})
}

// A Sitemap URL over untrusted.MaxKey bytes is ignored.
func TestLongSitemap(t *testing.T) {
	long := "https://demo.example/" + strings.Repeat("s", 3000)
	f := robots.Parse([]byte("Sitemap: " + long + "\nSitemap: https://demo.example/s.xml\n"))
	got := f.Sitemaps()
	assert.True(t, len(got) == 1 && got[0] == "https://demo.example/s.xml", "Sitemaps() = %.100q", got)
	got = f.InvalidSitemaps()
	assert.True(t, len(got) == 1 && got[0] == long, "InvalidSitemaps() = %.100q", got)
}

// A line of nothing but tags costs what other lines do: read again after each, it cost twenty minutes.
func TestManyTags(t *testing.T) {
	const tags = "<a></b><c d='e'> "
	for _, many := range []string{strings.Repeat(tags, 30_000), strings.Repeat("<", 500_000), strings.Repeat(">", 500_000)} {
		rules := robots.Parse([]byte("user-agent: *\n" + many + "\ndisallow: /x\n" + many + "disallow: /y" + many))
		assert.True(t, !rules.Allowed("bot", "/x") && rules.Allowed("bot", "/y") == !strings.HasPrefix(many, tags),
			"%.20s…: /x %v, /y %v", many, rules.Allowed("bot", "/x"), rules.Allowed("bot", "/y"))
	}
}

// The table of RFC 9309 section 2.2.2, each row in both spellings of the rule and of the URL. A slash divides a path, so
// there its encoded form is another character.
func TestTableOfTheRFC(t *testing.T) {
	f := func(rule, path string, allowed bool) {
		t.Helper()
		for _, text := range []string{"User-agent: *\nDisallow: " + rule, "User-agent: *\nDisallow: /\nAllow: " + rule} {
			want := allowed == strings.HasPrefix(text, "User-agent: *\nDisallow: "+rule)
			assert.Equal(t, want, robots.Parse([]byte(text)).Allowed("anybot", "https://www.example.com"+path), "%q, %s: allowed", text, path)
		}
	}
	for _, same := range [][]string{
		{"/foo/bar?baz=quz"},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https:%2F/foo.bar"},
		{"/foo/bar/\u30c4", "/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"},
		{"/foo/bar/%62%61%7A", "/foo/bar/baz"},
		{"/a?b=c?d", "/a?b=c%3Fd"},
	} {
		for _, rule := range same {
			for _, path := range same {
				f(rule, path, false)
			}
		}
	}
	f("/a%2Fb", "/a/b", true)
	f("/a%2Fb", "/a%2Fb", false)
	f("/a%3Fb", "/a?b", true)
	f("/*baz=https%3A%2F%2F", "/foo?baz=https://x", true) // it may mean the path
	f("/*baz=https%3A%2F%2F", "/foo?baz=https%3A%2F%2Fx", false)
	f("/*?baz=https%3A%2F%2F", "/foo?baz=https://x", false)
	f("/*/x", "/foo?baz=https://x", false)
	f("/*a%2Fb", "/x/a%2Fb?c", false)
}

func TestClosed(t *testing.T) {
	for rules, want := range map[string]int{
		"Disallow: /": 2, "Disallow: /*": 2, "Disallow: *": 2, "Disallow: /*$": 2, "Disallow: *$": 2, "Disallow: /a\nDisallow: /": 3,
		"Disallow: /$": 0, "Disallow:": 0, "Disallow: /a": 0, "Allow: /": 0, "Disallow: /\nAllow: /a": 0, "Allow: /a\nDisallow: /": 0,
	} {
		line, text, closed := robots.Parse([]byte("User-agent: GPTBot\n" + rules)).Closed("GPTBot/1.1")
		assert.True(t, line == want && closed == (want > 0) && closed == (text != ""), "%q: line %d, %q, %v", rules, line, text, closed)
	}
	_, _, closed := robots.Parse([]byte("User-agent: *\nDisallow: /")).Closed("GPTBot")
	assert.False(t, closed, "a group for everybody names nobody")
}
