package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
)

type deadLetter struct {
	ID string `json:"id"`
	ledger.DeadLetter
}

type deadLetterList struct {
	DeadLetters []deadLetter `json:"dead_letters"`
	More        bool         `json:"more"`           // there can be more
	Next        string       `json:"next,omitempty"` // the parameter after of the next page
	Searched    int          `json:"searched"`       // how many were read for this page
	Unreadable  int          `json:"unreadable"`     // of these, objects that cannot be read as dead letters
}

// maxDeadLetters is how many dead letters are listed.
const maxDeadLetters = 500

func (s *Server) deadLettersOf(ctx context.Context, run ledger.Run) (deadLetterList, error) {
	if run.Job == "" {
		return deadLetterList{DeadLetters: []deadLetter{}}, nil
	}
	// A run's dead letters are written after its start, so older ones need not be read.
	return s.findDeadLetters(ctx, ledger.DeadLetterQuery{Job: run.Job, RunID: run.RunID, State: ledger.OpenLetters, Since: run.StartedAt, Limit: maxDeadLetters})
}

// findDeadLetters returns one page of the dead letters that a query chooses.
func (s *Server) findDeadLetters(ctx context.Context, q ledger.DeadLetterQuery) (deadLetterList, error) {
	list := deadLetterList{DeadLetters: []deadLetter{}}
	page, err := ledger.SearchDeadLetters(ctx, s.store, q)
	if errors.Is(err, ledger.ErrPlace) {
		return list, refuse("after: take next of the page before")
	}
	if err != nil {
		return list, err
	}
	for _, err := range page.Unreadable {
		s.log.Warn("dead_letter_unreadable", "job", q.Job, "error", ledger.Redact(err.Error()))
	}
	for _, d := range page.DeadLetters {
		list.DeadLetters = append(list.DeadLetters, deadLetter{d.ID(), d})
	}
	list.More, list.Next, list.Searched, list.Unreadable = page.Next != "", page.Next, page.Searched, len(page.Unreadable)
	return list, nil
}

// deadLetterFilter chooses the dead letters of a list, of a page and of the API. All of
// it is in the URL.
type deadLetterFilter struct {
	Job, Kind, Run, Text string
	State                string // open, dismissed or all
	dayRange
	After string
}

// letterStates are the states that a filter chooses.
var letterStates = []string{ledger.OpenLetters, ledger.DismissedLetters, "all"}

// kindPattern matches the kinds of dead letters.
var kindPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

func readDeadLetterFilter(q url.Values, known jobList) (f deadLetterFilter, err error) {
	f = deadLetterFilter{Job: q.Get("job"), Kind: q.Get("kind"), Run: q.Get("run"), State: cmp.Or(q.Get("state"), ledger.OpenLetters), After: q.Get("after")}
	if !slices.Contains(letterStates, f.State) {
		return f, refuse("state: use open, dismissed or all")
	}
	if f.Job != "" && !slices.Contains(known.names(), f.Job) {
		return f, refuse("job: use %s", strings.Join(known.names(), ", "))
	}
	if f.Kind != "" && !kindPattern.MatchString(f.Kind) {
		return f, refuse("kind: write a kind like bad_file")
	}
	if f.Run != "" && !ledger.IsName(f.Run) {
		return f, refuse("run: that is not a run's id")
	}
	if f.dayRange, err = readDays(q); err != nil {
		return f, err
	}
	f.Text, err = searchText(q)
	return f, err
}

func (f deadLetterFilter) query(limit int) ledger.DeadLetterQuery {
	q := ledger.DeadLetterQuery{Job: f.Job, Kind: f.Kind, RunID: f.Run, From: f.from, To: f.to, Text: f.Text, After: f.After, Limit: limit}
	if f.State != "all" {
		q.State = f.State
	}
	return q
}

// Chosen reports whether the filter leaves out any dead letter.
func (f deadLetterFilter) Chosen() bool {
	return f.State != ledger.OpenLetters || f.Job+f.Kind+f.Run+f.From+f.To+f.Text != ""
}

// URL is the page with the filter's dead letters after a place; "" means the newest.
func (f deadLetterFilter) URL(after string) string {
	f.After = after
	return "/dead-letters?" + f.values().Encode()
}

// ReplayURL is the page that asks before the filter's dead letters are replayed.
func (f deadLetterFilter) ReplayURL() string {
	f.After = ""
	return "/dead-letters/replay?" + f.values().Encode()
}

// values are the parameters that have this filter.
func (f deadLetterFilter) values() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{"job": f.Job, "kind": f.Kind, "run": f.Run, "from": f.From, "to": f.To, "text": f.Text, "after": f.After} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.State != ledger.OpenLetters {
		q.Set("state", f.State)
	}
	return q
}

func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f, err := readDeadLetterFilter(q, s.jobs)
	if err = cmp.Or(refuseEmpty(q, "job", "kind", "run", "from", "to", "text", "state", "after"), err); err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.findDeadLetters(r.Context(), f.query(maxDeadLetters))
	s.reply(w, r, list, err)
}

func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request) {
	e, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.deadLettersOf(r.Context(), e.Run)
	s.reply(w, r, list, err)
}

type replayResponse struct {
	RunID    string `json:"run_id"`
	Replayed int    `json:"replayed"`
	Todo     string `json:"todo"`
}

func (s *Server) replayDeadLetters(w http.ResponseWriter, r *http.Request) {
	e, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := jsonBody(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ids, err := replayIDs(body)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	n, err := s.replay(r.Context(), e, ids)
	s.reply(w, r, replayResponse{e.Run.RunID, n, "start a run of job " + e.Run.Job + ": it tries them again"}, err)
}

// replayIDs are the ids that a body names; none means all of the run.
func replayIDs(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var given map[string]*[]string
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, refuse(`the body is not a JSON object with ids; write {"ids": ["…"]}, or {} for all`)
	}
	for name, ids := range given {
		switch {
		case name != "ids":
			return nil, refuse("unknown field %q; the only field is ids", clip(name))
		case ids == nil || len(*ids) == 0:
			return nil, refuse("ids: name one or more, or leave it out for all")
		}
	}
	if given["ids"] == nil {
		return nil, nil
	}
	for _, id := range *given["ids"] {
		if !ledger.IsName(id) {
			return nil, refuse("ids: that is not a dead letter's id")
		}
	}
	return *given["ids"], nil
}

var errNoDeadLetter = errors.New("this run has no such dead letter that is open; GET its dead-letters lists them")

// replay lets the next run try the inputs of a run's dead letters again: of those
// named, or of all.
func (s *Server) replay(ctx context.Context, e *entry, ids []string) (int, error) {
	if e.Run.Job == "" {
		return 0, errNoRun
	}
	there := map[string]bool{}
	for d, err := range ledger.AllDeadLetters(ctx, s.store, ledger.DeadLetterQuery{Job: e.Run.Job, RunID: e.Run.RunID, State: ledger.OpenLetters}) {
		if err == nil {
			there[d.ID()] = true
		}
	}
	for _, id := range ids {
		if !there[id] {
			return 0, errNoDeadLetter
		}
	}
	n := len(ids)
	if n == 0 {
		n = len(there)
	}
	if n == 0 {
		return 0, nil
	}
	slices.Sort(ids)
	if err := s.audited(ctx, "dead_letters_replay", e.Run.RunID, strings.Join(ids, " ")); err != nil {
		return 0, err
	}
	return n, s.runner.replay(ctx, e.Run.Job, e.Run.RunID, slices.Compact(ids))
}
