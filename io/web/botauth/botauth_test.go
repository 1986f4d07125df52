package botauth

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const directory = "https://acme.example/.well-known/http-message-signatures-directory"

// pemOf is a private key made of a letter, as the text of a file.
func pemOf(t *testing.T, letters string) (text string) {
	t.Helper()
	for _, l := range letters {
		b, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(l), 32))))
		require.NoError(t, err)
		text += string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}))
	}
	return text
}

// write writes a key file, as one step.
func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path+"~", []byte(text), mode))
	require.NoError(t, os.Chmod(path+"~", mode))
	require.NoError(t, os.Rename(path+"~", path))
	return path
}

func request(t *testing.T, method, at string) *http.Request {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	return &http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{"Accept": {"text/html"}}}
}

// signed signs a request and returns its Signature-Input, "" if it has none. It checks the signature with the public key of a letter,
// over the base that want has for the covered components.
func signed(t *testing.T, s *Signer, r *http.Request, by rune, want ...string) string {
	t.Helper()
	require.NoError(t, s.Sign(r))
	input := r.Header.Get("Signature-Input")
	if input == "" {
		assert.Empty(t, r.Header.Get("Signature")+r.Header.Get("Signature-Agent"))
		return ""
	}
	name, params, _ := strings.Cut(input, "=")
	made := strings.Trim(strings.TrimPrefix(r.Header.Get("Signature"), name+"="), ":")
	sig, err := base64.StdEncoding.DecodeString(made)
	require.NoError(t, err)
	text := strings.Join(append(want, `"signature-agent";key="`+name+`": "`+directory+`"`, `"@signature-params": `+params), "\n")
	public := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(by), 32))).Public().(ed25519.PublicKey)
	assert.True(t, ed25519.Verify(public, []byte(text), sig), "%s\n%s", input, text)
	assert.Equal(t, name+`="`+directory+`"`, r.Header.Get("Signature-Agent"))
	return input
}

func lines(host, method, path, query string) []string {
	return []string{`"@authority": ` + host, `"@method": ` + method, `"@path": ` + path, `"@query": ` + query}
}

// What is signed is what is sent: the host without its scheme's port, the path as it is escaped, the query with its question mark.
func TestSign(t *testing.T) {
	t.Setenv(KeyVariable, pemOf(t, "a"))
	s, err := Open(Config{Directory: directory})
	require.NoError(t, err)
	for _, c := range []struct {
		method, url string
		want        []string
	}{
		{"GET", "https://a.example", lines("a.example", "GET", "/", "?")},
		{"GET", "https://A.example:443/x?b=1&a=%20", lines("a.example", "GET", "/x", "?b=1&a=%20")},
		{"POST", "http://a.example:443/a%2Fb/c%20d?", lines("a.example:443", "POST", "/a%2Fb/c%20d", "?")},
		{"GET", "http://[2001:db8::1]:80/", lines("[2001:db8::1]", "GET", "/", "?")},
		{"GET", "https://a.example/x?q=é", lines("a.example", "GET", "/x", "")[:3]}, // a base has ASCII only
	} {
		input := signed(t, s, request(t, c.method, c.url), 'a', c.want...)
		assert.Contains(t, input, `;tag="web-bot-auth"`, c.url)
	}
	r := request(t, "GET", "https://a.example/")
	first, second := signed(t, s, r, 'a', lines("a.example", "GET", "/", "?")...), signed(t, s, r, 'a', lines("a.example", "GET", "/", "?")...)
	assert.NotEqual(t, first, second, "each has its own nonce")
	assert.Len(t, r.Header.Values("Signature"), 1, "a signature replaces the one of the try before")
}

// A host that asks for a signature gets one, with what it asks for, and no host gets more than one request again for it.
func TestAsked(t *testing.T) {
	t.Setenv(KeyVariable, pemOf(t, "ab"))
	const plain = `sig=("@authority" "@path");tag="web-bot-auth"`
	for _, c := range []struct {
		name, mode string
		status     int
		accept     []string
		again      bool
		input      string // what Signature-Input begins with and then has; "": the next request is not signed
		more       []string
		by         rune
	}{
		{"forbidden", Challenged, 403, []string{plain}, true, "sig=", nil, 'b'},
		{"unauthorized", Challenged, 401, []string{plain}, true, "sig=", nil, 'b'},
		{"a nonce was used too often", Always, 429, []string{`s2=("@authority");nonce="n:1";created;expires;tag="web-bot-auth"`}, true, `s2= nonce="n:1"`, nil, 'b'},
		{"found, and asks for the next", Challenged, 200, []string{plain}, false, "", nil, 'b'},
		{"server error", Challenged, 503, []string{plain}, false, "", nil, 'b'},
		{"refused, and asks for nothing", Challenged, 403, nil, false, "", nil, 'b'},
		{"no list", Challenged, 403, []string{`sig=1`, `;;`}, false, "", nil, 'b'},
		{"for another use", Challenged, 403, []string{`sig=("@method");tag="payment"`}, false, "", nil, 'b'},
		{"with another algorithm", Challenged, 403, []string{`sig=("@method");alg="rsa-pss-sha512"`}, false, "", nil, 'b'},
		{"a header that is not sent", Challenged, 403, []string{`sig=("content-digest")`}, false, "", nil, 'b'},
		{"a parameter that is not known", Challenged, 403, []string{`sig=("@query-param";name="a")`}, false, "", nil, 'b'},
		{"the second one can be met", Challenged, 403, []string{`a=("cookie")`, `b=("accept" "@target-uri")`}, true, "b=",
			[]string{`"accept": text/html`, `"@target-uri": https://a.example/x?y`}, 'b'},
		{"with the older key", Always, 403, []string{`k=();keyid="` + keyID(t, "a") + `"`}, true, `k= keyid="` + keyID(t, "a") + `"`, nil, 'a'},
		{"with a key of others", Always, 403, []string{`k=();keyid="x"`}, false, "sig1=", nil, 'b'},
		{"too long", Challenged, 403, []string{plain + `;nonce="` + strings.Repeat("n", 4000) + `"`}, false, "", nil, 'b'},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(Config{Directory: directory, Mode: c.mode})
			require.NoError(t, err)
			next := func() *http.Request { return request(t, "GET", "https://a.example/x?y") }
			require.Equal(t, c.again, s.Asked(next(), c.status, http.Header{"Accept-Signature": c.accept}, false))
			input := signed(t, s, next(), c.by, append(lines("a.example", "GET", "/x", "?y"), c.more...)...)
			assert.Equal(t, c.input == "", input == "", input)
			for _, has := range strings.Fields(c.input) {
				assert.Contains(t, input, has)
			}
			other := request(t, "GET", "https://b.example/")
			assert.Equal(t, c.mode == Challenged, signed(t, s, other, 'b', lines("b.example", "GET", "/", "?")...) == "", "another host asked for nothing")
			if c.again {
				assert.NotEqual(t, input, signed(t, s, next(), c.by, append(lines("a.example", "GET", "/x", "?y"), c.more...)...), "a nonce is used once")
				assert.False(t, s.Asked(next(), c.status, http.Header{"Accept-Signature": c.accept}, true), "it got what it asked for")
				assert.False(t, s.Asked(next(), 403, http.Header{"Accept-Signature": {`z=("@method");nonce="new"`}}, false), "it refuses the crawler")
			}
		})
	}
}

func keyID(t *testing.T, letter string) string {
	t.Helper()
	all, err := parseKeys([]byte(pemOf(t, letter)))
	require.NoError(t, err)
	return all[0].ID
}

// A signature lasts two minutes. A run that lasts takes the key that is added to the file, and keeps its key while the file is damaged.
func TestLongRun(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "bot.pem"), pemOf(t, "a"), 0o600)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Config{Directory: directory, KeyFile: path, Mode: Always})
		require.NoError(t, err)
		by := func(letter rune, what string) {
			t.Helper()
			input := signed(t, s, request(t, "GET", "https://a.example/"), letter, lines("a.example", "GET", "/", "?")...)
			now := time.Now()
			assert.Contains(t, input, ";created="+unix(now), what)
			assert.Contains(t, input, ";expires="+unix(now.Add(2*time.Minute)), what)
		}
		by('a', "at the start")
		write(t, path, pemOf(t, "ab"), 0o600)
		by('a', "the file is read once a minute")
		time.Sleep(time.Minute)
		by('b', "the newer key, at the end of the file, signs")
		write(t, path, pemOf(t, "ab"), 0o644)
		time.Sleep(time.Hour)
		by('b', "a file that others can read is not read")
		write(t, path, pemOf(t, "c"), 0o600)
		time.Sleep(time.Minute)
		by('c', "the older keys are gone")
	})
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// A key that cannot be used is refused, and no error shows a part of it.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	good := pemOf(t, "a")
	other := "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIGFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh\n-----END PRIVATE KEY-----\n" // X25519
	made := 0
	file := func(text string, mode os.FileMode) Config {
		made++
		return Config{Directory: directory, KeyFile: write(t, filepath.Join(dir, strconv.Itoa(made)), text, mode)}
	}
	for _, c := range []struct {
		name     string
		cfg      Config
		env      map[string]string
		says     string
		unsigned bool
	}{
		{"a file", file(good, 0o600), nil, "", false},
		{"that is read-only", file(good, 0o400), nil, "", false},
		{"that all may read", file(good, 0o644), nil, "chmod 600", false},
		{"that the group may read", file(good, 0o640), nil, "chmod 600", false},
		{"that is not there", Config{Directory: directory, KeyFile: filepath.Join(dir, "none")}, nil, "no such file", false},
		{"that is a directory", Config{Directory: directory, KeyFile: dir}, nil, "chmod 600", false},
		{"that is empty", file("", 0o600), nil, "no private key in PEM", false},
		{"with another kind of key", file(other, 0o600), nil, "PEM block 1 is no Ed25519", false},
		{"with a key twice", file(good+good, 0o600), nil, "PEM block 2 repeats", false},
		{"the environment", Config{Directory: directory}, map[string]string{KeyVariable: good}, "", false},
		{"it is damaged", Config{Directory: directory}, map[string]string{KeyVariable: good[:60]}, KeyVariable + ": there is no private key", false},
		{"it names a file", Config{Directory: directory, KeyFile: "none"}, map[string]string{KeyVariable + "_FILE": file(good, 0o600).KeyFile}, "", false},
		{"that all may read", Config{Directory: directory}, map[string]string{KeyVariable + "_FILE": file(good, 0o604).KeyFile}, "chmod 600", false},
		{"both", Config{Directory: directory}, map[string]string{KeyVariable: good, KeyVariable + "_FILE": "x"}, "both set", false},
		{"without a page", Config{}, map[string]string{KeyVariable: good}, "bot: page", false},
		{"to be signed without a key", Config{Directory: directory, Mode: Challenged}, nil, "needs a key", false},
		{"nothing to sign", Config{Directory: directory}, nil, "", true},
		{"no block", Config{}, nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, v := range c.env {
				t.Setenv(name, v)
			}
			s, err := Open(c.cfg)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				assert.NotContains(t, err.Error(), "MC4C")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.unsigned, s == nil)
		})
	}
}

func TestBot(t *testing.T) {
	const news, docs = "News/1.0", "Docs/1.0 (+https://docs.example/bot)"
	for _, c := range []struct {
		bot              Bot
		news, docs, from string
	}{
		{Bot{}, news, docs, ""},
		{Bot{Contact: "a@b.example"}, news + " (+a@b.example)", docs, "a@b.example"},
		{Bot{Contact: "Acme <a@b.example>"}, news + " (+a@b.example)", docs, "a@b.example"},
		{Bot{Contact: "https://b.example/bot"}, news + " (+https://b.example/bot)", docs, ""},
		{Bot{Page: "https://b.example/bot", Contact: "a@b.example"}, news + " (+https://b.example/bot)", "Docs/1.0 (+https://b.example/bot)", "a@b.example"},
		{Bot{Name: "Acme/2"}, "Acme/2", "Acme/2", ""},
		{Bot{Name: "Acme/2", Page: "https://b.example/bot"}, "Acme/2 (+https://b.example/bot)", "Acme/2 (+https://b.example/bot)", ""},
		{Bot{Name: "Acme/2 (+https://c.example)", Page: "https://b.example/bot"}, "Acme/2 (+https://c.example)", "Acme/2 (+https://c.example)", ""},
	} {
		require.NoError(t, c.bot.Check())
		assert.Equal(t, []string{c.news, c.docs, c.from}, []string{c.bot.UserAgent(news), c.bot.UserAgent(docs), c.bot.Mail()}, "%+v", c.bot)
	}
	page := Bot{Operator: "A", Contact: "bot@a.example"}
	require.NoError(t, page.CheckPage())
	for _, c := range []struct {
		bot  Bot
		says string
	}{
		{Bot{Name: "/1"}, "name: "}, {Bot{Name: "Ä/1"}, "name: "}, {Bot{Name: "A\n/1"}, "name: "}, {Bot{Name: strings.Repeat("a", 301)}, "name: "},
		{Bot{Contact: "me"}, "use a URL or a mail address"}, {Bot{Contact: "a@b.example\r\nX: y"}, "use a URL"}, {Bot{Contact: "ä@b.example"}, "use a URL"},
		{Bot{Page: "http://a.example/"}, "https URL"}, {Bot{Page: "https://u:p@a.example/"}, "https URL"},
		{Bot{Key: "bot.pem"}, "need page"}, {Bot{Sign: Always}, "need page"}, {Bot{Page: "https://a.example/", Sign: "never"}, "use always or challenged"},
		{Bot{Page: "https://a.example/", Key: pemOf(t, "a")}, "name the file"},
		{Bot{Addresses: []string{"somewhere"}}, "no IP address or network"},
		{Bot{Contact: "bot@a.example"}, "operator: say who crawls"}, {Bot{Operator: "A"}, "is neither"},
		{Bot{Operator: "A", Contact: "javascript:x"}, "is neither"}, {Bot{Operator: "A", Contact: "http://a.example/"}, "is neither"},
	} {
		err := c.bot.CheckPage()
		if c.bot.Operator == "" && !strings.Contains(c.says, "operator") {
			err = c.bot.Check()
		}
		require.ErrorContains(t, err, c.says, "%+v", c.bot)
		assert.NotContains(t, err.Error(), "MC4C")
	}
}

// The documents say where the others are. Every key of the directory signs it, for the page's host.
func TestPublish(t *testing.T) {
	at := time.Date(2026, 11, 27, 4, 0, 0, 0, time.UTC)
	b := Bot{Name: "Acme/2", Contact: "bot@a.example", Page: "https://A.example/bot", Operator: "A", Addresses: []string{"192.0.2.7", "2001:db8::1/48"}}
	_, err := b.Directory(at)
	require.ErrorContains(t, err, "there is no key")
	b.Key = write(t, filepath.Join(t.TempDir(), "bot.pem"), pemOf(t, "ab"), 0o600)
	d, err := b.Directory(at)
	require.NoError(t, err)
	assert.Equal(t, []string{"application/http-message-signatures-directory+json"}, d.Header["Content-Type"])
	var set struct{ Keys []map[string]string }
	require.NoError(t, json.Unmarshal(d.Body, &set))
	require.Len(t, set.Keys, 2)
	require.Len(t, d.Header["Signature"], 2)
	for i, letter := range []string{"a", "b"} {
		assert.Equal(t, keyID(t, letter), set.Keys[i]["kid"])
		_, params, _ := strings.Cut(d.Header["Signature-Input"][i], "=")
		assert.Equal(t, `("@authority";req "content-digest");created=1795752000;expires=1796356800;keyid="`+keyID(t, letter)+`";tag="http-message-signatures-directory"`, params)
		text := "\"@authority\";req: a.example\n\"content-digest\": " + d.Header.Get("Content-Digest") + "\n\"@signature-params\": " + params
		_, made, _ := strings.Cut(d.Header["Signature"][i], "=")
		sig, err := base64.StdEncoding.DecodeString(strings.Trim(made, ":"))
		require.NoError(t, err)
		public, err := base64.RawURLEncoding.DecodeString(set.Keys[i]["x"])
		require.NoError(t, err)
		assert.True(t, ed25519.Verify(public, []byte(text), sig))
	}
	card, err := b.card(at)
	require.NoError(t, err)
	assert.JSONEq(t, `{"client_id":"https://A.example/.well-known/signature-agent-card","client_name":"A","client_uri":"https://A.example/bot",
		"contacts":["mailto:bot@a.example"],"jwks_uri":"https://A.example/.well-known/http-message-signatures-directory",
		"web_bot_auth":{"expected-user-agent":"Acme/2 (+https://A.example/bot)","rfc9309-product-token":"Acme","rfc9309-compliance":true,"trigger":"crawler",
		"rate-control":"Crawl-delay in robots.txt; Retry-After","known-urls":["/robots.txt"],"ips_uri":"https://A.example/.well-known/crawler-addresses.json"}}`, string(card.Body))
	list, err := b.addressList(at)
	require.NoError(t, err)
	assert.JSONEq(t, `{"creationTime":"2026-11-27T04:00:00Z","prefixes":[{"ipv4Prefix":"192.0.2.7/32"},{"ipv6Prefix":"2001:db8::/48"}]}`, string(list.Body))
}
