// Package permit keeps the ledger of rights of a crawl, and decides what a purpose lets it fetch and hand on.
// robots.txt decides before a request, a response about its own document. A contradiction counts as reserved.
// No promise: see docs/library.md.
package permit

import (
	"net/url"
	"regexp"
	"sync"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// Gate has the ledgers of a crawl. It is safe for concurrent use once its fields are set.
type Gate struct {
	Purpose rights.Purpose // "": everything is recorded and nothing refused

	mu   sync.Mutex
	read map[string]*rights.Ledger // by robots.txt and its time
}

// comments in a robots.txt may name people, so they are not kept.
var comments = regexp.MustCompile(`#[^\r\n]*`)

// WithoutComments returns a robots.txt without its comments; lines keep their numbers.
func WithoutComments(text string) string { return comments.ReplaceAllString(text, "") }

// Apply makes a policy refuse what robots.txt reserves for the gate's purpose.
func (g *Gate) Apply(p *polite.Policy) {
	if g.Purpose == "" {
		return
	}
	p.Robots.Reserves = func(a polite.RobotsAnswer, agent string) func(*url.URL) error {
		l := g.robots(a, agent)
		return func(u *url.URL) error {
			if d := l.Reserves(g.Purpose, u.String()); d != nil {
				return d
			}
			return nil
		}
	}
}

// robots returns what an answer for robots.txt says.
func (g *Gate) robots(a polite.RobotsAnswer, agent string) *rights.Ledger {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := a.URL + " " + agent + " " + a.FetchedAt.String()
	if g.read == nil {
		g.read = map[string]*rights.Ledger{}
	}
	l := g.read[key]
	if l == nil {
		l = &rights.Ledger{Agent: agent}
		of := answer.Response{Status: a.Status, Header: a.Header, Body: a.Body, URL: a.URL, Final: a.FinalURL, Want: answer.Robots}
		kind := answer.Classify(of).Kind
		of.Body = []byte(WithoutComments(a.Text()))
		l.Requested(of, kind, false, a.FetchedAt, a.SHA256)
		g.read[key] = l
	}
	return l
}

// Ledger returns a ledger that begins with what robots.txt says; nil: nothing is known of it.
func (g *Gate) Ledger(r *polite.Rules) *rights.Ledger {
	if r == nil {
		return &rights.Ledger{}
	}
	return g.robots(r.RobotsAnswer, r.Agent).Clone()
}

// Sum returns the sum of two sets of counts. before stays as it is.
func Sum(before, more map[string]int64) map[string]int64 {
	t := ledger.Tally{}
	t.Add(ledger.Tally{Counts: before})
	t.Add(ledger.Tally{Counts: more})
	return t.Counts
}
