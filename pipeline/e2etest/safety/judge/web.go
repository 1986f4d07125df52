package judge

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one request as the web saw it.
type Entry struct {
	Start, End time.Time // headers read; just before the response is sent
	Host, Path string    // without the port; with the query
	Method     string
	Agent      string
	Status     int
	Pause      time.Duration // that the response asks for by Retry-After, from End
	Rules      *Rules        // that the response contains, or shows to be out of reach
	Life       int           // how often the crawler was killed before
}

// Rules are one version of a site's robots.txt.
type Rules struct {
	Status int // 0: 200
	Text   string
	Closed string        // regular expression of the paths that Text closes to Agent, "" for none
	Delay  time.Duration // Crawl-delay
	At     string        // where a redirect of robots.txt leads, "" for none
}

// Site is one host of the web. Its front page links to all other pages.
type Site struct {
	Rules   []Rules                           // one after the other, see version; the last one stays
	Pages   []string                          // that a crawler must have at the end
	Links   []string                          // more links of the front page
	Under   map[string][]string               // links of other pages
	Special map[string]func(times int) Answer // by path; times: requests before this one
	Storms  []int                             // page requests after which the site is overloaded for Pause
	Storm   int                               // status during that time: 429 with seconds, or 503 with a date
	Hidden  string                            // regular expression of paths to which only pages with X-Robots-Tag: nofollow lead
	Server  string                            // that several sites share, "" for the site's own
	Slow    time.Duration                     // what a response takes
}

// Answer is a response other than a plain page.
type Answer struct {
	Status   int
	Location string // on this web: http://HOST/PATH or a path
	Header   [2]string
}

// Pause is how long a storm lasts.
const Pause = 4 * time.Second

// Web serves sites at one loopback address and logs each request.
type Web struct {
	Sites map[string]*Site
	Addr  string

	server *http.Server
	mu     sync.Mutex
	log    []Entry
	kills  []time.Time
	times  map[string]int       // requests by URL
	pages  map[string]int       // page requests by host
	until  map[string]time.Time // end of the storm by host
	read   map[string]time.Time // first response for robots.txt by host
}

// Serve starts a web.
func Serve(sites map[string]*Site) (*Web, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the simulated web: %w", err)
	}
	w := &Web{Sites: sites, Addr: ln.Addr().String(), times: map[string]int{}, pages: map[string]int{}, until: map[string]time.Time{},
		read: map[string]time.Time{}}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(ln) }() // ends with Close
	return w, nil
}

// Close ends the web.
func (w *Web) Close() error { return w.server.Close() }

// URL returns the address of a path of a host.
func (w *Web) URL(host, path string) string {
	_, port, _ := net.SplitHostPort(w.Addr) // it is a listener's
	return "http://" + host + ":" + port + path
}

// Plain returns HOST/PATH of an address of this web.
func (w *Web) Plain(url string) string {
	_, port, _ := net.SplitHostPort(w.Addr)
	return strings.Replace(strings.TrimPrefix(url, "http://"), ":"+port, "", 1)
}

// Killed says that the crawler was killed and will be started again.
func (w *Web) Killed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills = append(w.kills, time.Now())
}

// Log returns the requests so far, by their start, and the times of the kills.
func (w *Web) Log() ([]Entry, []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := slices.Clone(w.log)
	slices.SortStableFunc(log, func(a, b Entry) int { return a.Start.Compare(b.Start) })
	return log, slices.Clone(w.kills)
}

// ServeHTTP answers one request. A response is logged before it is sent, so a crawler cannot
// act on it earlier.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	e := Entry{Start: time.Now(), Host: host, Path: r.URL.RequestURI(), Method: r.Method, Agent: r.UserAgent()}
	site := w.Sites[host]
	if site == nil {
		http.Error(rw, "no such host", http.StatusNotFound)
		return
	}
	time.Sleep(site.Slow)
	body := w.answer(&e, site, rw.Header())
	rw.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(rw, body) // a killed crawler does not read it
	}
}

func (w *Web) answer(e *Entry, site *Site, h http.Header) (body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Life = len(w.kills)
	url := e.Host + e.Path
	times := w.times[url]
	w.times[url]++
	rules := &site.Rules[min(w.version(e), len(site.Rules)-1)]
	defer func() {
		e.End = time.Now()
		w.log = append(w.log, *e)
	}()
	h.Set("Content-Type", "text/html; charset=utf-8")
	e.Status = http.StatusOK
	switch {
	case e.Path == "/robots.txt" && rules.At != "":
		e.Status = http.StatusFound
		h.Set("Location", rules.At)
		return ""
	case e.Path == "/robots.txt" || rules.At != "" && e.Path == rules.At:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		e.Rules = rules
		e.Status = max(rules.Status, http.StatusOK)
		return rules.Text
	case w.storm(e, site, h):
		return "<p>Too much."
	}
	if special := site.Special[e.Path]; special != nil {
		a := special(times)
		e.Status = max(a.Status, http.StatusOK)
		if a.Header[0] != "" {
			h.Set(a.Header[0], a.Header[1])
		}
		if a.Location != "" {
			if rest, ok := strings.CutPrefix(a.Location, "http://"); ok {
				to, path, _ := strings.Cut(rest, "/")
				a.Location = w.URL(to, "/"+path)
			}
			h.Set("Location", a.Location)
		}
	}
	links := site.Under[e.Path]
	if e.Path == "/" {
		links = slices.Concat(site.Pages, site.Links)
	}
	h.Set("Cache-Control", "max-age=86400")
	return page(e.Host, e.Path, links)
}

// version is how often the robots.txt of a request's site has changed: with each kill that comes more than a second after
// the crawler was first sent it. A crawler that was killed earlier may not have read it.
func (w *Web) version(e *Entry) (n int) {
	if _, asked := w.read[e.Host]; !asked && e.Path == "/robots.txt" {
		w.read[e.Host] = e.Start
	}
	for _, at := range w.kills {
		if first, asked := w.read[e.Host]; asked && at.Sub(first) > grace {
			n++
		}
	}
	return n
}

// storm answers while a site is overloaded.
func (w *Web) storm(e *Entry, site *Site, h http.Header) bool {
	now := time.Now()
	if slices.Contains(site.Storms, w.pages[e.Host]) && now.After(w.until[e.Host]) {
		w.until[e.Host] = now.Add(Pause)
		w.pages[e.Host]++ // so that the same storm does not come again
	}
	left := w.until[e.Host].Sub(now)
	if left <= 0 {
		w.pages[e.Host]++
		return false
	}
	e.Status, e.Pause = site.Storm, left
	if site.Storm == http.StatusTooManyRequests {
		h.Set("Retry-After", fmt.Sprint(int(math.Ceil(left.Seconds()))))
	} else { // a date has no fractions of a second
		h.Set("Retry-After", w.until[e.Host].Add(time.Second).UTC().Format(http.TimeFormat))
	}
	return true
}

func page(host, path string, links []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html><html lang=\"en\"><head><title>%s%s</title></head><body><main><h1>About %[2]s of %[1]s</h1>", host, path)
	for i := range 6 {
		fmt.Fprintf(&b, "<p>Paragraph %d describes %s of %s: how it is called, which values it takes and which errors it returns in case %[1]d.</p>", i+1, path, host)
	}
	b.WriteString("<ul>")
	for _, l := range links {
		fmt.Fprintf(&b, "<li><a href=\"%s\">More about %[1]s</a></li>", l)
	}
	b.WriteString("</ul></main></body></html>\n")
	return b.String()
}

// Agent is the user agent that a crawler must send, and Token its product token.
const (
	Agent = "SafetyBot/1.0 (+https://bot.example/)"
	Token = "safetybot"
)

// Standard returns the sites of the bench. The small form leaves out those on which a crawler
// waits longest.
func Standard(small bool) map[string]*Site {
	p := []string{"/p/1", "/p/2", "/p/3", "/p/4"}
	open := []Rules{{Text: "User-agent: *\nDisallow:\n"}}
	private := Rules{Text: "User-agent: *\nDisallow: /private\n", Closed: `^/private`}
	closed := []string{"/private/1", "/private/2"}
	redirect := func(to string) func(int) Answer {
		return func(int) Answer { return Answer{Status: http.StatusFound, Location: to} }
	}
	status := func(s int) func(int) Answer { return func(int) Answer { return Answer{Status: s} } }
	sites := map[string]*Site{
		"plain.test":   {Rules: open, Pages: p},
		"private.test": {Rules: []Rules{private}, Pages: p, Links: closed},
		"delay.test":   {Rules: []Rules{{Text: "User-agent: *\nCrawl-delay: 2\nDisallow: /private\n", Closed: `^/private`, Delay: 2 * time.Second}}, Pages: p, Links: closed},
		"busy.test":    {Rules: open, Pages: p, Storms: []int{2, 5}, Storm: http.StatusTooManyRequests},
		"away.test":    {Rules: open, Pages: p, Storms: []int{3}, Storm: http.StatusServiceUnavailable},
		"agent.test": {Rules: []Rules{{Text: "User-agent: *\nDisallow: /p/\n\nUser-agent: SafetyBot\nDisallow: /bots/\n", Closed: `^/bots/`}},
			Pages: p, Links: []string{"/bots/1", "/bots/2"}},
		"pattern.test": {Rules: []Rules{{Text: "User-agent: *\nDisallow: /files/\nAllow: /files/open\nDisallow: /*.cgi$\nDisallow: /*?sort=\n",
			Closed: `^/files/[^o]|\.cgi$|\?sort=`}}, Pages: []string{"/p/1", "/files/open/1", "/files/open/2"},
			Links: []string{"/files/closed/1", "/files/closed/2", "/run.cgi", "/p/1?sort=up"}},
		"redirect.test": {Rules: []Rules{private}, Pages: []string{"/p/1", "/to/1"}, Links: []string{"/over", "/inside", "/loop/1", "/moved"},
			Special: map[string]func(int) Answer{"/over": redirect("http://private.test/private/9"), "/inside": redirect("/private/9"),
				"/loop/1": redirect("/loop/2"), "/loop/2": redirect("/loop/1"), "/moved": redirect("/to/1")}},
		"missing.test":   {Rules: []Rules{{Status: http.StatusNotFound}}, Pages: p},
		"refused.test":   {Rules: []Rules{{Status: http.StatusForbidden}}, Pages: p},
		"broken.test":    {Rules: []Rules{{Status: http.StatusServiceUnavailable, Closed: `^/`}}, Links: p},
		"elsewhere.test": {Rules: []Rules{{Text: private.Text, Closed: private.Closed, At: "/rules.txt"}}, Pages: p, Links: closed},
		"changes.test":   {Rules: []Rules{open[0], private}, Pages: p, Links: closed},
		"vanishes.test":  {Rules: []Rules{private, {Status: http.StatusNotFound}}, Pages: p, Links: closed},
		"breaks.test":    {Rules: []Rules{private, {Status: http.StatusServiceUnavailable, Closed: `^/`}}, Pages: p, Links: closed},
		"tag.test": {Rules: open, Pages: p, Links: []string{"/tagged"}, Under: map[string][]string{"/tagged": {"/hidden/1", "/hidden/2"}}, Hidden: `^/hidden/`,
			Special: map[string]func(int) Answer{"/tagged": func(int) Answer { return Answer{Header: [2]string{"X-Robots-Tag", "nofollow"}} }}},
		"login.test": {Rules: open, Pages: p, Links: []string{"/members", "/paid"},
			Special: map[string]func(int) Answer{"/members": status(http.StatusUnauthorized), "/paid": status(http.StatusForbidden)}},
	}
	if !small {
		sites["fails.test"] = &Site{Rules: open, Pages: p, Special: map[string]func(int) Answer{"/p/2": func(times int) Answer {
			if times == 0 {
				return Answer{Status: http.StatusInternalServerError}
			}
			return Answer{}
		}}}
		for _, n := range []string{"one", "two", "three", "four", "five", "six"} {
			sites[n+".shared.test"] = &Site{Rules: open, Pages: p, Server: "shared", Slow: 300 * time.Millisecond}
		}
	}
	return sites
}

// matches reports whether a path is in a set of paths; "" is the empty set.
func matches(set, path string) bool { return set != "" && regexp.MustCompile(set).MatchString(path) }
