// Package site judges whether a site in a run is the site that a job knows, before the
// job concludes anything about single pages.
//
// A job feeds each final answer to a Judge with the role of its URL. While the verdict's
// State is not Open, nothing is concluded about single things: nothing is deleted,
// forbidden, gone or done, and what is stored stays. The job's part of the run ends with
// the verdict as its reason, and the next run asks again:
//
//	before, err := worker.Site(ctx, "docs.example.com") // what earlier runs said
//	judge := site.Begin(site.About{Name: "docs.example.com", Seeds: 1, Known: stored, Before: before.Streak(),
//		SeedKey: "seed_urls", ScopeKey: "allowed_path_patterns"})
//	for each answer {
//		judge.Add(site.Answer{Role: site.Known, URL: url, Status: 403, Verdict: answer.Classify(…)})
//		if judge.Stop() {
//			break // the first answers show that the site is not open: send no more requests
//		}
//		hold the conclusion (forbid, gone) if there is one
//	}
//	if judge.Doubtful() {
//		request a seed once more, and Add its answer
//	}
//	verdict := judge.Verdict()
//	if verdict.State == site.Open {
//		apply what was held
//	}
//	err = worker.KeepSite(ctx, "docs.example.com", verdict) // its history, the report and the alert
//
// The package sends no requests and stores nothing. io/ledger keeps the history. No promise: see docs/library.md.
package site

import (
	"slices"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

// State is the state of a site in a run.
type State string

// The states of a site.
const (
	Open    State = "open"    // it shows what it showed
	Blocked State = "blocked" // it refuses: 401, 402, 403, a challenge, a login or a consent page
	Moved   State = "moved"   // its URLs redirect to another host or out of the job's scope
	Closed  State = "closed"  // it is parked, its name is gone, or nothing that was there is there
	Thin    State = "thin"    // it shows much less than it did
	Down    State = "down"    // it fails below HTTP or answers 5xx
)

// role is what a request was for.
type role string

// The roles of requests.
const (
	Robots role = "robots" // robots.txt
	Seed   role = "seed"   // a URL of the job's YAML: a start page, a list, a sitemap or a feed
	Known  role = "known"  // the URL of something stored
	New    role = "new"    // any other
)

// Answer is the final answer to a request, after its retries.
type Answer struct {
	Role    role
	URL     string
	Status  int    // of HTTP; 0 if there was no answer
	Failure string // the web.Kind where there was no answer, such as "dns"
	// To is the target of a redirect that leads to another host or out of the job's scope, if
	// the answer is one.
	To string
	// Verdict says what answered.
	Verdict answer.Verdict
	// Nth is its place among the answers in the order in which they came, where pages are read later and out of order; 0: the newest.
	Nth int64
	// Ends: the job sends no more requests because of this answer. It decides, unless it is a
	// plain refusal after good answers of known URLs.
	Ends bool
}

// OfRobots returns the answer for robots.txt. A wall that no site has before a single page ends the job's part: what the site
// allows is not known. A web page or an error page with status 200 has no rules, and says nothing of the site.
func OfRobots(r answer.Response) Answer {
	r.Want = answer.Robots
	v := answer.Classify(r)
	return Answer{Role: Robots, URL: r.URL, Status: r.Status, Verdict: v, Ends: r.Status/100 == 2 && slices.Contains(wholeSite, v.Kind)}
}

// About is what the job knows of the site.
type About struct {
	Name     string // the host, for texts
	Seeds    int    // how many seeds are requested
	Known    int    // how many things are stored
	Before   Streak // what the runs before said
	SeedKey  string // the key of the YAML file with the seeds, such as seed_urls
	ScopeKey string // the key with the scope, such as allowed_path_patterns; "" without one
}

// Streak is how many runs in a row, up to the last one, found a site in a state.
type Streak struct {
	State State
	Runs  int
}

const (
	// firstKnown is how many of the known URLs are asked before the seeds' answers are believed.
	firstKnown = 5
	// tail is how many refusals in a row, after good answers, raise a doubt.
	tail = 10
	// minKnown is the fewest known URLs by which a site is judged against its seeds.
	minKnown = 3
	// minGone is the fewest things that must be gone for a site to be thin.
	minGone = 4
	// thinRuns is how many runs in a row a site is thin until what it shows is believed.
	thinRuns = 3
)

// thinShare is the share of the known URLs that must be gone for a site to be thin.
const thinShare = 1.0 / 3

// Judge judges a site by its answers. It is not safe for concurrent use.
type Judge struct {
	about   About
	answers map[string]judged // by role and URL; the newest of each
	counts  map[role]tally    // of answers
	shown   [2]int            // of lists: now and before
	bad     int               // refusals and failures since the last good answer, or since a seed was requested once more
	unsure  bool              // something bad came after the last good answer
	badNth  int64             // the newest of them
	again   bool              // a seed was requested once more
	end     judged            // the answer that ended the job's part, if one did
}

// judged is what is kept of an answer.
type judged struct {
	Answer
	class class
}

// Begin begins the judgement of a site in a run.
func Begin(a About) *Judge {
	return &Judge{about: a, answers: map[string]judged{}, counts: map[role]tally{}}
}

// Add adds an answer. Another answer of the same URL replaces the one before.
func (j *Judge) Add(a Answer) {
	c, key := classify(a), string(a.Role)+" "+a.URL
	before, had := j.answers[key]
	j.again = j.again || had && a.Role == Seed
	t := j.counts[a.Role]
	if had {
		t[before.class]--
	}
	t[c]++
	j.counts[a.Role], j.answers[key] = t, judged{a, c}
	if a.Ends {
		j.end = judged{a, c}
	}
	switch {
	case a.Role == Robots || c == other:
	case c == good:
		if a.Nth == 0 || a.Nth > j.badNth {
			j.bad, j.unsure = 0, false
		}
	case c == gone: // any site has broken links, and loses pages
	default:
		j.bad++
		j.unsure, j.badNth = true, max(j.badNth, a.Nth)
	}
	if had && a.Role == Seed {
		j.bad = 0
	}
}

// Listed says how many things a list shows now and showed in the last complete run. A site is thin, whatever the answers
// are, if one of its lists shows much less.
func (j *Judge) Listed(now, before int) {
	if before-now >= minGone && (before-now)*j.shown[1] >= (j.shown[1]-j.shown[0])*before {
		j.shown = [2]int{now, before}
	}
}

// Stop reports whether the answers so far are enough to know that the site is not open, so
// that no more requests should be sent to it. A thin site is read to its end.
func (j *Judge) Stop() bool {
	seeds, known := j.counts[Seed], j.counts[Known]
	if j.end.Ends && j.end.Role == Robots {
		return true
	}
	if seeds.all() < j.about.Seeds || known.all() < min(firstKnown, j.about.Known) {
		return false
	}
	s := j.state()
	return s != Open && s != Thin
}

// Doubtful reports whether a seed must be requested once more before anything is concluded:
// bad answers came after the last good one. Ask at the end, and where Tired is true.
func (j *Judge) Doubtful() bool { return j.unsure && j.state() == Open }

// Tired reports whether so many bad answers came in a row that the site may have changed
// its mind. Ask a seed once more, before the next page.
func (j *Judge) Tired() bool { return j.bad >= tail && j.state() == Open }

// Verdict judges the site by all answers so far.
func (j *Judge) Verdict() Verdict {
	s := j.state()
	v := Verdict{State: s}
	if s == Open {
		return v
	}
	v.Cause, v.Advice = j.words(s)
	v.Evidence = j.evidence()
	return v
}

// tally is how many answers there are of each class.
type tally [failed + 1]int

// all counts the answers that say something.
func (t tally) all() (n int) {
	for _, k := range t {
		n += k
	}
	return n
}

// worst is the most frequent class among those that are not good.
func (t tally) worst() class {
	w, n := good, 0
	for _, c := range []class{refused, elsewhere, parked, nameless, failed, gone} {
		if t[c] > n {
			w, n = c, t[c]
		}
	}
	return w
}

func (j *Judge) state() State {
	seeds, known := j.counts[Seed], j.counts[Known]
	said := known.all() - known[other]
	mostKnown := said >= minKnown && 2*known[good] > said
	switch {
	case j.end.Ends && (known[good] == 0 || slices.Contains(wholeSite, j.end.Verdict.Kind)):
		return stateOf(j.end.class)
	case seeds.all()+known.all() == 0 && j.counts[Robots].worst() != good:
		return stateOf(j.counts[Robots].worst())
	case seeds.worst() == gone && known.all() == 0 && j.about.Known == 0: // nothing was there
		return Open
	case seeds[good] == 0 && seeds.worst() != good && (!mostKnown || j.again && j.unsure):
		return stateOf(seeds.worst())
	case said >= minKnown && known[good] == 0 && seeds.all() == 0:
		return stateOf(known.worst())
	}
	bad := said - known[good] - known[gone]
	if said >= minKnown && 2*bad > said {
		known[gone] = 0
		return stateOf(known.worst())
	}
	if first := j.counts[New]; j.about.Known == 0 && first[refused] >= minKnown && first[refused] > first.all()/2 {
		return Blocked
	}
	return j.thin(said, known[gone])
}

// thin reports Thin where much of what is known is gone, or lists show much less, until
// several runs in a row have said so.
func (j *Judge) thin(said, missing int) State {
	less := missing >= minGone && float64(missing) > thinShare*float64(said)
	less = less || j.shown[1]-j.shown[0] >= minGone && float64(j.shown[1]-j.shown[0]) > thinShare*float64(j.shown[1])
	if !less || j.about.Before.State == Thin && j.about.Before.Runs >= thinRuns-1 {
		return Open
	}
	return Thin
}

// class is what an answer says about the site.
type class int

const (
	good      class = iota
	other           // it says nothing
	refused         // 401, 402, 403, a challenge …
	elsewhere       // a redirect out of the site
	gone            // 404, 410, a soft 404
	parked          // a page of a parking host
	nameless        // its name has no address
	failed          // below HTTP, 429, 5xx, maintenance
)

func stateOf(c class) State {
	switch c {
	case refused:
		return Blocked
	case elsewhere:
		return Moved
	case parked, nameless, gone:
		return Closed
	case failed:
		return Down
	}
	return Open
}

var classes = map[answer.Kind]class{
	answer.Challenge: refused, answer.Consent: refused, answer.Login: refused, answer.Soft404: gone, answer.Maintenance: failed,
	answer.Parked: parked, answer.ErrorPage: failed, answer.Empty: other, answer.OtherType: other,
}

// wholeSite are the walls that no site has before a single page.
var wholeSite = []answer.Kind{answer.Challenge, answer.Consent, answer.Parked, answer.Maintenance}

func classify(a Answer) class {
	wall, isWall := classes[a.Verdict.Kind]
	switch {
	case a.Failure == "dns":
		return nameless
	case a.Status == 0:
		return failed
	case isWall && wall == parked, isWall && wall == refused:
		return wall
	case a.To != "":
		return elsewhere
	case slices.Contains([]int{401, 402, 403, 451}, a.Status):
		return refused
	case a.Status == 404, a.Status == 410:
		return gone
	case a.Status == 429, a.Status >= 500:
		return failed
	case a.Status >= 400:
		return other
	case isWall:
		return wall
	case a.Status == 304, a.Status/100 == 2:
		return good
	}
	return other
}

// Verdict is what a Judge found.
type Verdict struct {
	State    State
	Cause    string   // what happened, in plain words; "" for an open site
	Advice   string   // what a person can do
	Evidence []string // examples of answers
}

// String is the verdict as the reason of a job's part: its cause, and the advice.
func (v Verdict) String() string {
	if v.State == Open {
		return ""
	}
	return v.Cause + ": " + v.Advice
}
