package rights

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Decision is a purpose that is reserved, and why.
type Decision struct {
	Purpose Purpose `json:"purpose"`
	Verdict string  `json:"verdict"` // Reserved or Contradictory
	Statement
	SHA256 string `json:"sha256"`     // of the document with the statement
	At     string `json:"fetched_at"` // of the document, RFC 3339 UTC
}

// ReservedFor begins the text of each decision; the purpose follows it.
const ReservedFor = "reserved for "

// Error returns the decision with the line, hash and time that prove it.
func (d *Decision) Error() string {
	said := fmt.Sprintf("%s line %d", d.Source, d.Line)
	if d.Line == 0 {
		said = "the answer for " + d.Source
	}
	if d.Verdict == Contradictory {
		said += ", which another line contradicts"
	}
	return fmt.Sprintf("%s%s by %s: %s (%s, SHA-256 %s)", ReservedFor, d.Purpose, said, d.Raw, d.At, d.SHA256)
}

// soldFor is how long a page that answered 402 is not requested again. What it costs, or that it does, may change.
const soldFor = 14 * 24 * time.Hour

// Sold reports whether a 402 is the reason of the decision, which may be nil, and whether it is so old that the page should be
// requested again.
func (d *Decision) Sold(now time.Time) (sold, again bool) {
	if d == nil || d.Says != saysPayment {
		return false, false
	}
	return true, now.Sub(d.Time()) >= soldFor
}

// Time returns when the document with the statement was fetched; zero: not known.
func (d *Decision) Time() time.Time {
	at, err := time.Parse(time.RFC3339, d.At)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Reserves returns why a purpose may not be served by a page, nil if it may. A contradiction counts as reserved.
func (l *Ledger) Reserves(p Purpose, page string) *Decision {
	if _, reserved := l.counting(p, page); p == "" || reserved == nil {
		return nil
	}
	r := l.Proof(page)
	return r.Decision(p)
}

// Proof is Rights of a page with no more statements than prove the verdicts, and those of the page itself.
func (l *Ledger) Proof(page string) Rights {
	proves := map[*entry]bool{}
	r := Rights{Statements: []Statement{}, Why: l.why, Verdicts: l.verdicts(page)}
	for _, p := range Purposes {
		allowed, reserved := l.counting(p, page)
		proves[allowed], proves[reserved] = true, true
	}
	for i := range l.all {
		s := &l.all[i]
		if !proves[s] && (s.Source != cleanURL(page) || len(r.Statements) >= maxStatements) {
			continue
		}
		r.Statements = append(r.Statements, s.Statement)
		if d := documentOf(l.documents, s.Source); !slices.Contains(r.Documents, d) {
			r.Documents = append(r.Documents, d)
		}
	}
	return r
}

func documentOf(all []Document, source string) Document {
	if i := slices.IndexFunc(all, func(d Document) bool { return d.Source == source }); i >= 0 {
		return all[i]
	}
	return Document{Source: source} // a Proof that lost it
}

func inRobots(source string) bool {
	u, err := url.Parse(source)
	return err == nil && strings.HasSuffix(u.Path, "/robots.txt")
}

// Kept adds the statements of responses that a Proof has, not those of robots.txt.
func (l *Ledger) Kept(r Rights) {
	for _, s := range r.Statements {
		if inRobots(s.Source) {
			continue
		}
		l.all = append(l.all, entry{Statement: s, said: claims(s.Says)})
		if d := documentOf(r.Documents, s.Source); d != (Document{Source: s.Source}) && !slices.Contains(l.documents, d) {
			l.documents = append(l.documents, d)
		}
	}
}

// Page returns the document of a Proof's statements that is no robots.txt, "" for none.
func (r Rights) Page() string {
	for _, s := range r.Statements {
		if !inRobots(s.Source) {
			return s.Source
		}
	}
	return ""
}

// Decision returns why a purpose is reserved, nil if it is not. r is a Proof.
func (r Rights) Decision(p Purpose) *Decision {
	v := r.Verdicts.Of(p)
	if p == "" || v != Reserved && v != Contradictory {
		return nil
	}
	d := &Decision{Purpose: p, Verdict: v}
	if i := slices.IndexFunc(r.Statements, func(s Statement) bool { return slices.Contains(claims(s.Says), claim{p, false}) }); i >= 0 {
		d.Statement = r.Statements[i]
	}
	of := documentOf(r.Documents, d.Source)
	d.SHA256, d.At = of.SHA256, of.At
	return d
}

// Counts returns the counters of a run to which a page or a site with these rights adds.
func (r Rights) Counts() map[string]int64 {
	one := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	v := r.Verdicts
	all := map[string]int64{"rights_stated": one(len(r.Statements) > 0), "rights_contradictory": one(slices.Contains([]string{v.Search, v.AIInput, v.AITrain, v.Archive}, Contradictory)),
		"rights_reserved_search": one(v.Search == Reserved), "rights_reserved_ai_input": one(v.AIInput == Reserved),
		"rights_reserved_ai_train": one(v.AITrain == Reserved), "rights_reserved_archive": one(v.Archive == Reserved)}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}

// Word is the purpose in names of columns and counters.
func (p Purpose) Word() string { return strings.ReplaceAll(string(p), "-", "_") }
