package judge

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a request: "SECONDS[+DURATION] [METHOD ]HOST/PATH[ STATUS][ pause=SECONDS][ life=N][ anonymous]".
func at(text string) (e Entry) {
	begin := time.Unix(1_800_000_000, 0)
	e = Entry{Method: http.MethodGet, Status: http.StatusOK, Agent: "Mozilla/5.0 (compatible; " + Agent + ")"}
	words := strings.Fields(text)
	start, took, _ := strings.Cut(words[0], "+")
	seconds := func(s string) (d time.Duration) {
		if s != "" {
			d, _ = time.ParseDuration(s + "s") // a wrong one fails its case
		}
		return d
	}
	e.Start = begin.Add(seconds(start))
	e.End = e.Start.Add(seconds(took))
	for _, w := range words[1:] {
		switch key, value, _ := strings.Cut(w, "="); {
		case strings.Contains(w, "/"):
			host, path, _ := strings.Cut(w, "/")
			e.Host, e.Path = host, "/"+path
		case key == "pause":
			e.Pause = seconds(value)
		case key == "life":
			_, _ = fmt.Sscan(value, &e.Life)
		case w == "anonymous":
			e.Agent = "python/3"
		case strings.ToUpper(w) == w && strings.ToLower(w) != w:
			e.Method = w
		default:
			_, _ = fmt.Sscan(w, &e.Status)
		}
	}
	return e
}

func TestJudge(t *testing.T) {
	private := &Rules{Closed: `^/private`}
	open, slow, gone, down := &Rules{}, &Rules{Delay: 2 * time.Second}, &Rules{Status: 404}, &Rules{Status: 503, Closed: `^/`}
	sites := map[string]*Site{"a": {Hidden: `^/hidden`, Pages: []string{"/1"}}, "b": {Server: "s"}, "c": {Server: "s"}, "d": {Server: "s"}}
	for name, c := range map[string]struct {
		rules []*Rules // of the requests for robots.txt, in turn
		log   string   // one request a line
		want  string   // rules broken, with how often, and "again" and "lost"
	}{
		"all well":                       {[]*Rules{open}, "0 a/robots.txt\n1 a/1", ""},
		"nothing fetched":                {[]*Rules{open}, "0 a/robots.txt", "lost"},
		"a page that failed":             {[]*Rules{open}, "0 a/robots.txt\n1 a/1 404", "lost"},
		"disallowed":                     {[]*Rules{private}, "0 a/robots.txt\n1 a/1\n2 a/private/x", "robots 1"},
		"no robots.txt requested":        {nil, "1 a/1\n2 a/2", "unread 2"},
		"before robots.txt was answered": {[]*Rules{open}, "0+2 a/robots.txt\n1 a/1", "unread 1"},
		"robots.txt of another site":     {[]*Rules{open}, "0 b/robots.txt\n1 a/1", "unread 1"},
		"no robots.txt":                  {[]*Rules{gone}, "0 a/robots.txt 404\n1 a/1\n2 a/private", ""},
		"robots.txt fails":               {[]*Rules{down}, "0 a/robots.txt 503\n1 a/1", "unread 1"},
		"it fails later, and holds":      {[]*Rules{private, down}, "0 a/robots.txt\n1 a/1\n5 a/robots.txt 503 life=1\n6 a/2\n7 a/private", "robots 1"},
		"it fails first":                 {[]*Rules{down, open}, "0 a/robots.txt 503\n1 a/robots.txt\n2 a/1", ""},
		"it changes":                     {[]*Rules{open, private}, "0 a/robots.txt\n1 a/private/1\n5 a/robots.txt life=1\n5.5 a/private/2\n7 a/private/3\n8 a/1", "robots 1"},
		"it vanishes":                    {[]*Rules{private, gone}, "0 a/robots.txt\n5 a/robots.txt 404 life=1\n7 a/private/3\n8 a/1", ""},
		"robots.txt twice":               {[]*Rules{open, open, open}, "0 a/robots.txt\n1 a/1\n2 a/robots.txt\n3 a/robots.txt life=1", "again"},
		"a link that is not to follow":   {[]*Rules{open}, "0 a/robots.txt\n1 a/1\n2 a/hidden/1", "x-robots 1"},
		"another user agent":             {[]*Rules{open}, "0 a/robots.txt anonymous\n1 a/1", "agent 1"},
		"another method":                 {[]*Rules{open}, "0 a/robots.txt\n1 HEAD a/2\n2 a/1", "access 1"},
		"within Retry-After":             {[]*Rules{open, open}, "0 a/robots.txt\n1 a/1 429 pause=5\n3 a/2\n4 a/robots.txt life=1\n6 a/1", "back-off 2"},
		"Retry-After is of its site":     {[]*Rules{open, open}, "0 a/robots.txt\n0 b/robots.txt\n1 a/1 503 pause=5\n3 b/2\n7 a/1", ""},
		"in flight before Retry-After":   {[]*Rules{open}, "0 a/robots.txt\n1+1 a/2 429 pause=5\n1.5 a/3\n2.05 a/4\n8 a/1", ""},
		"failed, and at once again":      {[]*Rules{open}, "0 a/robots.txt\n1 a/1 500\n1.5 a/1\n2 a/2 503\n2.5 a/3\n3 a/2", "back-off 1"},
		"faster than Crawl-delay":        {[]*Rules{slow, slow}, "0 a/robots.txt\n0.1 a/1\n1 a/2\n3 a/3\n4.95 a/4\n6 a/5\n7 a/robots.txt life=1", "crawl-delay 2"},
		"a third one at the server": {[]*Rules{open, open, open}, "0 b/robots.txt\n0 c/robots.txt\n0 d/robots.txt\n1+2 b/1\n1.1+2 c/1\n1.2+2 d/1\n4+2 b/2\n4+1 c/2\n5.5+1 d/2",
			"lost overload 1"},
		"one page twice at a time":   {[]*Rules{open}, "0 a/robots.txt\n1+2 a/1\n2+2 a/1", "overload 1 again"},
		"again":                      {[]*Rules{open}, "0 a/robots.txt\n1 a/1\n3 a/1", "again"},
		"on its way at the kill":     {[]*Rules{open}, "0 a/robots.txt\n9.5 a/1\n12 a/1 life=1", ""},
		"there long before the kill": {[]*Rules{open}, "0 a/robots.txt\n5 a/1\n12 a/1 life=1", "again"},
		"without end":                {[]*Rules{open}, "0 a/robots.txt\n1 a/l 302\n2 a/l 302\n3 a/l 302\n4 a/l 302\n5 a/l 302\n6 a/l 302\n7 a/l 302\n8 a/1", "repeated 2"},
		"a page that needs a log-in": {[]*Rules{open}, "0 a/robots.txt\n1 a/2 401\n2 a/2 401\n3 a/3 403\n4 a/1\n9 a/3 200", "access 2"},
		"robots.txt that is refused": {[]*Rules{{Status: 403}, {Status: 403}}, "0 a/robots.txt 403\n1 a/1\n2 a/robots.txt 403", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log []Entry
			for line := range strings.Lines(c.log) {
				e := at(line)
				if e.Path == "/robots.txt" && len(c.rules) > 0 {
					e.Rules, c.rules = c.rules[0], c.rules[1:]
				}
				log = append(log, e)
			}
			v := Judge(sites, log, []time.Time{time.Unix(1_800_000_010, 0)}, nil)
			var got []string
			if !strings.Contains(c.want, "lost") && len(v.Lost) > 0 {
				got = append(got, fmt.Sprint(v.Lost))
			} else if len(v.Lost) > 0 {
				got = append(got, "lost")
			}
			for _, r := range All {
				if n := len(v.Broken[r]); n > 0 {
					got = append(got, fmt.Sprint(r, " ", n))
				}
			}
			if len(v.Again) > 0 {
				got = append(got, "again")
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
		})
	}
	v := Judge(sites, []Entry{at("0 a/2 404")}, nil, map[string]bool{"a/1": true})
	assert.Empty(t, v.Lost, "it has a reason")
}

// A robots.txt changes after a kill if the crawler can have read it before.
func TestVersion(t *testing.T) {
	begin := time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	w := &Web{read: map[string]time.Time{}}
	version := func(host string, start float64) int {
		return w.version(&Entry{Host: host, Path: "/robots.txt", Start: at(start)})
	}
	assert.Equal(t, []int{0, 0}, []int{version("early.test", 1), version("late.test", 4.5)})
	w.kills = []time.Time{at(5)}
	assert.Equal(t, []int{1, 0, 0}, []int{version("early.test", 6), version("late.test", 6), version("new.test", 6)})
	w.kills = append(w.kills, at(9))
	assert.Equal(t, []int{2, 1, 1}, []int{version("early.test", 10), version("late.test", 10), version("new.test", 10)})
	assert.Zero(t, w.version(&Entry{Host: "unread.test", Path: "/p/1", Start: at(11)}))
}
