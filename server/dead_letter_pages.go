package server

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

// deadLettersPage is the data of the page of dead letters.
type deadLettersPage struct {
	deadLetterFilter
	deadLetterList
	Jobs, States []string
	Replayed     string
}

func (p *pages) deadLetterViews() []view {
	return []view{
		{At: "GET /dead-letters", Template: "dead-letters", Section: "dead-letters", Title: "Dead letters", Still: true, Data: p.deadLetters},
		{At: "GET /dead-letters/{job}/{id}", Template: "dead-letter", Section: "dead-letters", Still: true, Data: p.letter},
	}
}

func (p *pages) deadLetters(c *call) (any, error) {
	f, err := readDeadLetterFilter(c.in, p.server.jobs)
	if err != nil {
		return nil, err
	}
	list, err := p.server.findDeadLetters(c.Context(), f.query(perPage))
	return deadLettersPage{f, list, p.server.jobs.Names(), letterStates, c.in.Get("replayed")}, err
}

// letterPage is the data of the page of one dead letter.
type letterPage struct {
	runs.DeadLetter
	Runs    []letterRun   // that failed with this input, the newest first
	Objects []storeObject // what the store has of the input
	More    bool          // the store has more of it
}

// letterRun is a run that failed with the input of a dead letter.
type letterRun struct {
	ID  string
	Log string // the page of its log with the lines that name the input
}

type storeObject struct {
	Key  string
	Size int64
}

// maxObjects is how many objects of an input are shown.
const maxObjects = 20

func (p *pages) letter(c *call) (any, error) {
	d, err := p.server.letter(c.Request)
	if err != nil {
		return nil, err
	}
	v := letterPage{DeadLetter: d}
	runs := append(slices.Clone(d.Earlier), d.RunID)
	slices.Reverse(runs)
	for _, id := range runs {
		at := letterRun{ID: id}
		if text := searchFor(d.Input); text != "" {
			at.Log = "/runs/" + id + "/log?" + url.Values{"q": {text}}.Encode()
		}
		v.Runs = append(v.Runs, at)
	}
	c.Title = "Dead letter: " + known.Words(d.Kind)
	v.Objects, v.More, err = p.server.objectsOf(c.Context(), d.Input)
	return v, err
}

// searchFor is what the lines of a log that are about an input have.
func searchFor(in ledger.Input) string {
	text := cmp.Or(in.DomainID, in.URL, in.Source, in.File, in.Key)
	if u, err := url.Parse(in.URL); err == nil && u.Hostname() != "" {
		text = u.Hostname()
	}
	if len(text) > runs.MaxQueryText {
		return ""
	}
	return text
}

// objectsOf are the objects of the store that belong to an input, at most maxObjects.
func (s *Server) objectsOf(ctx context.Context, in ledger.Input) (all []storeObject, more bool, err error) {
	for _, prefix := range []string{in.Key, in.File} {
		if prefix == "" {
			continue
		}
		for o, err := range s.store.List(ctx, prefix) {
			if err != nil {
				return nil, false, fmt.Errorf("listing %s: %w", prefix, err)
			}
			if len(all) == maxObjects {
				return all, true, nil
			}
			all = append(all, storeObject{o.Key, o.Size})
		}
	}
	return all, false, nil
}

func (s *Server) replayLetter(c *call) (any, error) {
	d, err := s.letter(c.Request)
	if err == nil && !d.Open() {
		err = known.Conflict("a dismissed dead letter is not replayed; reopen it first")
	}
	if err == nil {
		err = s.audited(c.Context(), "dead_letters_replay", d.RunID, d.ID)
	}
	if err == nil {
		err = s.runner.Replay(c.Context(), d.Job, "", []string{d.ID})
	}
	c.next = "/dead-letters?replayed=1&job=" + d.Job
	return nil, err
}

// confirmReplayFound asks before the dead letters that a filter chooses are replayed.
func (s *Server) confirmReplayFound(c *call) (confirmation, error) {
	f, err := readDeadLetterFilter(c.in, s.jobs)
	n := 0
	if err == nil {
		_, n, err = s.toReplay(c.Context(), f)
	}
	if err == nil && n == 0 {
		err = known.Conflict("the filter chooses no open dead letter")
	}
	ask := confirmation{Title: fmt.Sprintf("Replay %s dead letters?", known.FormatCount(int64(n))), Button: "Replay them", Back: f.URL(""),
		Text: "The next run of each of their jobs tries their inputs again. Dismissed ones are left out."}
	for name, v := range f.values() {
		ask.Hidden = append(ask.Hidden, hidden{name, v[0]})
	}
	slices.SortFunc(ask.Hidden, func(a, b hidden) int { return cmp.Compare(a.Name, b.Name) })
	return ask, err
}

// confirmReplay asks before all dead letters of a run are replayed.
func (s *Server) confirmReplay(c *call) (confirmation, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return confirmation{}, err
	}
	return confirmation{Title: "Replay all dead letters of run " + e.Run.RunID + "?", Button: "Replay all",
		Back: "/runs/" + e.Run.RunID + "#dead-letters", Section: "runs",
		Hidden: []hidden{{"all", "true"}},
		Text:   "The next run of " + e.Run.Job + " tries the inputs of all open dead letters of this run again."}, nil
}
