// Package permit keeps the ledger of rights of a crawl, and decides what a purpose lets it fetch and hand on.
// robots.txt decides before a request, a response about its own document. A contradiction counts as reserved.
// No promise: see docs/library.md.
package permit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
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

// Answer is what a job received.
type Answer struct {
	URL    string // after redirects
	Status int
	Header http.Header
	Body   []byte // as received
	HTML   []byte // Body in UTF-8 if it is HTML, else nil
	At     time.Time
}

// Read returns what is said about the use of what is at an address: by robots.txt (nil: nothing is known of it), by the answers
// that known keeps, and by these answers. Something that has several pages is reserved for the gate's purpose if one of them is.
func (g *Gate) Read(r *polite.Rules, known rights.Rights, at string, answers ...Answer) rights.Rights {
	l := g.Ledger(r)
	l.Kept(known)
	places := []string{at}
	for _, a := range answers {
		l.Answer(a.URL, a.Status, a.Header, a.Body, a.At)
		l.HTML(a.HTML)
		places = append(places, a.URL)
	}
	first := cmp.Or(known.Page(), at)
	proof := l.Proof(first)
	if g.Purpose == "" || proof.Decision(g.Purpose) != nil {
		return proof
	}
	for _, place := range places {
		if place == first {
			continue
		}
		if of := l.Proof(place); of.Decision(g.Purpose) != nil {
			return of
		}
	}
	return proof
}

// Columns are the values of the columns rights, rights_search, rights_ai_input, rights_ai_train and rights_archive.
func Columns(r rights.Rights) ([]any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding rights: %w", err)
	}
	v := r.Verdicts
	return []any{untrusted.Text(string(text), 0), v.Search, v.AIInput, v.AITrain, v.Archive}, nil
}

// Stored reads the column rights, which is empty where a version without rights wrote the row.
func Stored(text string) (r rights.Rights, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}

// Fields are the fields of a search by the verdicts.
func Fields() (all []explore.Field) {
	for _, p := range rights.Purposes {
		all = append(all, explore.Field{Name: "rights_" + p.Word(), Label: "Rights: " + string(p),
			Choices: []string{rights.Allowed, rights.Reserved, rights.Unsaid, rights.Contradictory}})
	}
	return all
}

// By are the columns that Fields choose by, those of a table or, with "", of the only one.
func By(table string) (all []explore.By) {
	for _, p := range rights.Purposes {
		all = append(all, explore.By{Field: "rights_" + p.Word(), Column: table + "rights_" + p.Word()})
	}
	return all
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
