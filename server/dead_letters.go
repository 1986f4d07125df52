package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

type deadLetterList struct {
	DeadLetters []runs.DeadLetter `json:"dead_letters"`
	More        bool              `json:"more"`           // there can be more
	Next        string            `json:"next,omitempty"` // the parameter after of the next page
	Searched    int               `json:"searched"`       // how many were read for this page
	Unreadable  int               `json:"unreadable"`     // of these, objects that cannot be read as dead letters
}

// maxDeadLetters is how many dead letters are listed.
const maxDeadLetters = 500

func (s *Server) deadLettersOf(ctx context.Context, run ledger.Run) (deadLetterList, error) {
	if run.Job == "" {
		return deadLetterList{DeadLetters: []runs.DeadLetter{}}, nil
	}
	// A run's dead letters are written after its start, so older ones need not be read.
	return s.findDeadLetters(ctx, ledger.DeadLetterQuery{Job: run.Job, RunID: run.RunID, State: ledger.OpenLetters, Since: run.StartedAt,
		Limit: maxDeadLetters})
}

// findDeadLetters returns one page of the dead letters that a query chooses.
func (s *Server) findDeadLetters(ctx context.Context, q ledger.DeadLetterQuery) (deadLetterList, error) {
	list := deadLetterList{DeadLetters: []runs.DeadLetter{}}
	page, err := ledger.SearchDeadLetters(ctx, s.store, q)
	if errors.Is(err, ledger.ErrPlace) {
		return list, known.Refuse("after: " + badPlace)
	}
	if err != nil {
		return list, err
	}
	for _, err := range page.Unreadable {
		s.log.Warn("dead_letter_unreadable", "job", q.Job, "error", ledger.Redact(err.Error()))
	}
	for _, d := range page.DeadLetters {
		list.DeadLetters = append(list.DeadLetters, runs.DeadLetter{ID: d.ID(), DeadLetter: d})
	}
	list.More, list.Next, list.Searched, list.Unreadable = page.Next != "", page.Next, page.Searched, len(page.Unreadable)
	return list, nil
}

// deadLetterFilter chooses the dead letters of a list, of a page and of the API. All of
// it is in the URL.
type deadLetterFilter struct {
	Job, Kind, Run, Text string
	State                string // open, dismissed or all
	runs.DayRange
	After string
}

// letterStates are the states that a filter chooses.
var letterStates = []string{ledger.OpenLetters, ledger.DismissedLetters, "all"}

func deadLetterFields(jobs known.Jobs) []option.Option {
	return append([]option.Option{
		{Name: "job", Kind: option.Text, Choices: jobs.Names(), Usage: "Only of this job.", Wrong: "use " + strings.Join(jobs.Names(), ", ")},
		{Name: "kind", Kind: option.Text, Pattern: "[a-z][a-z0-9_]{0,63}", Wrong: "write a kind like bad_file"},
		runs.NameField("run", "Only with failures in this run.", "that is not a run's id"),
	}, runs.FilterFields("Only with a last failure", "the id, the stage, the input, the error or the note")...)
}

// listFields are the parameters of a list: which dead letters, and from which place.
func listFields(jobs known.Jobs) []option.Option {
	return append(deadLetterFields(jobs),
		option.Option{Name: "state", Kind: option.Text, Choices: letterStates, Usage: "Open ones by default."},
		option.Option{Name: "after", Kind: option.Text, Pattern: `[0-8]?[0-9]{1,18}[.].+`, Usage: "next of the page before.", Wrong: badPlace})
}

const badPlace = "take next of the page before"

func readDeadLetterFilter(q url.Values, jobs known.Jobs) (f deadLetterFilter, err error) {
	f = deadLetterFilter{Job: q.Get("job"), Kind: q.Get("kind"), Run: q.Get("run"), Text: runs.FilterText(q),
		State: cmp.Or(q.Get("state"), ledger.OpenLetters), After: q.Get("after")}
	f.Read(q)
	return f, known.Checked(q, listFields(jobs), false)
}

func (f deadLetterFilter) query(limit int) ledger.DeadLetterQuery {
	q := ledger.DeadLetterQuery{Job: f.Job, Kind: f.Kind, RunID: f.Run, From: f.Begin, To: f.End, Text: f.Text, After: f.After, Limit: limit}
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
	for name, v := range map[string]string{"job": f.Job, "kind": f.Kind, "run": f.Run, "from": f.From, "to": f.To, "text": f.Text,
		"after": f.After} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.State != ledger.OpenLetters {
		q.Set("state", f.State)
	}
	return q
}

// deadLetterActions are what can be asked about dead letters.
func (s *Server) deadLetterActions() []action {
	const ofRun, one, form = "/api/v1/runs/{id}/dead-letters", "/api/v1/dead-letters/{job}/{id}", "/dead-letters/{job}/{id}"
	const noRun, none, now = "404 NoRun", "404 NoDeadLetter", "200 DeadLetter The dead letter as it is now."
	note := option.Option{Name: "note", Kind: option.Text, Usage: "Why nothing will be done about it."}
	return grouped("runs", "dead-letters",
		action{At: "GET " + ofRun, ID: "listDeadLetters", About: "The open dead letters of a run, 500 at most",
			Out: "200 DeadLetters The dead letters.", Fails: noRun, Do: s.deadLetters},
		action{At: "POST " + ofRun + "/replay", ID: "replayDeadLetters",
			About: "Let the job's next run try the inputs of dead letters again, all or those named",
			Body:  "ReplayRequest", Raw: true, Example: "{}", Out: "200 Replayed The next run will try their inputs again.", Fails: noRun,
			Do:   s.replayDeadLetters,
			Form: "/runs/{id}/dead-letters/replay", Confirm: s.confirmReplay},
		action{At: "GET /api/v1/dead-letters", ID: "listOpenDeadLetters", In: listFields(s.jobs), Out: "200 DeadLetters The dead letters.",
			Do:    s.listDeadLetters,
			About: "Dead letters, open ones unless state says so, those written last first, 500 at most; next leads to the others"},
		action{At: "POST /api/v1/dead-letters/replay", ID: "replayDeadLettersFound",
			Out:   "200 ReplayedFound The next runs will try their inputs again.",
			About: "Let the next runs try the inputs of all open dead letters that a filter chooses again, 10,000 at most",
			Body:  "DeadLetterFilter", In: deadLetterFields(s.jobs), Loose: true, Example: `{"job": "seed", "kind": "store_failed"}`,
			Fails: "409 Conflict", Do: s.replayDeadLettersFound,
			Form: "/dead-letters/replay", Confirm: s.confirmReplayFound},
		action{At: "GET " + one, ID: "showDeadLetter", About: "One dead letter", Out: "200 DeadLetter The dead letter.", Fails: none,
			Do: s.showDeadLetter},
		action{At: "POST " + one + "/dismiss", ID: "dismissDeadLetter",
			About: "Record that nothing will be done about a dead letter; a new failure of the same input opens it again",
			Body:  "DismissRequest", In: []option.Option{*note.Range(1, ledger.MaxNote)}, Needs: []string{"note"}, Loose: true,
			Example: `{"note": "The page is a picture."}`,
			Out:     now, Fails: none, Do: s.dismissDeadLetter, Form: form + "/dismiss", Next: form},
		action{At: "POST " + one + "/reopen", ID: "reopenDeadLetter", About: "Take a dismissal back", Out: now, Fails: none + ", 409 Conflict",
			Do:   s.reopenDeadLetter,
			Form: form + "/reopen", Next: form},
		action{Form: form + "/replay", Do: s.replayLetter},
	)
}

func (s *Server) listDeadLetters(c *call) (any, error) {
	f, err := readDeadLetterFilter(c.in, s.jobs)
	if err != nil {
		return nil, err
	}
	return s.findDeadLetters(c.Context(), f.query(maxDeadLetters))
}

func (s *Server) deadLetters(c *call) (any, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return nil, err
	}
	return s.deadLettersOf(c.Context(), e.Run)
}

type replayResponse struct {
	RunID    string `json:"run_id"`
	Replayed int    `json:"replayed"`
	Todo     string `json:"todo"`
}

func (s *Server) replayDeadLetters(c *call) (any, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return nil, err
	}
	ids := c.in["id"]
	switch {
	case !c.form:
		ids, err = replayIDs(c.body)
	case slices.ContainsFunc(ids, func(id string) bool { return !ledger.IsName(id) }):
		err = known.Refuse("that is not a dead letter's id")
	case len(ids) == 0 && c.in.Get("all") == "":
		err = known.Refuse("choose one dead letter or more, or replay all")
	}
	if err != nil {
		return nil, err
	}
	n, err := s.replay(c.Context(), e, ids)
	c.next = fmt.Sprintf("/runs/%s?replayed=%d#dead-letters", e.Run.RunID, n)
	return replayResponse{e.Run.RunID, n, "start a run of job " + e.Run.Job + ": it tries them again"}, err
}

// replayIDs are the ids that a body names; none means all of the run.
func replayIDs(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var given map[string]*[]string
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, known.Refuse(`the body is not a JSON object with ids; write {"ids": ["…"]}, or {} for all`)
	}
	for name, ids := range given {
		switch {
		case name != "ids":
			return nil, known.Refuse("unknown field %q; the only field is ids", known.Clip(name))
		case ids == nil || len(*ids) == 0:
			return nil, known.Refuse("ids: name one or more, or leave it out for all")
		}
	}
	if given["ids"] == nil {
		return nil, nil
	}
	for _, id := range *given["ids"] {
		if !ledger.IsName(id) {
			return nil, known.Refuse("ids: that is not a dead letter's id")
		}
	}
	return *given["ids"], nil
}

var errNoDeadLetter = &known.AnswerError{Code: http.StatusNotFound,
	Message: "this run has no such dead letter that is open; GET its dead-letters lists them"}

// replay lets the next run try the inputs of a run's dead letters again: of those
// named, or of all.
func (s *Server) replay(ctx context.Context, e *runs.Entry, ids []string) (int, error) {
	if e.Run.Job == "" {
		return 0, errNoRun
	}
	there := map[string]bool{}
	for d, err := range ledger.AllDeadLetters(ctx, s.store, ledger.DeadLetterQuery{Job: e.Run.Job, RunID: e.Run.RunID,
		State: ledger.OpenLetters}) {
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
	return n, s.runner.Replay(ctx, e.Run.Job, e.Run.RunID, slices.Compact(ids))
}

var errNoLetter = &known.AnswerError{Code: http.StatusNotFound,
	Message: "there is no such dead letter; it may be resolved. GET /api/v1/dead-letters lists them"}

// letter reads the dead letter that a path names.
func (s *Server) letter(r *http.Request) (runs.DeadLetter, error) {
	job, id := r.PathValue("job"), r.PathValue("id")
	if !slices.Contains(s.jobs.Names(), job) || !ledger.IsName(id) {
		return runs.DeadLetter{}, errNoLetter
	}
	d, err := ledger.Get(r.Context(), s.store, job, id)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLetter
	}
	return runs.DeadLetter{ID: id, DeadLetter: d}, err
}

func (s *Server) showDeadLetter(c *call) (any, error) { return s.letter(c.Request) }

func (s *Server) dismissDeadLetter(c *call) (any, error) {
	d, err := s.letter(c.Request)
	if err != nil {
		return nil, err
	}
	return s.dismiss(c.Context(), d, c.in.Get("note"))
}

func (s *Server) reopenDeadLetter(c *call) (any, error) {
	d, err := s.letter(c.Request)
	if err != nil {
		return nil, err
	}
	return s.reopen(c.Context(), d)
}

// dismiss counts a dead letter out of the open ones.
func (s *Server) dismiss(ctx context.Context, d runs.DeadLetter, note string) (runs.DeadLetter, error) {
	note = strings.TrimSpace(note)
	if note == "" || len(note) > ledger.MaxNote {
		return d, known.Refuse("note: say in 1 to %d bytes why nothing will be done about it", ledger.MaxNote)
	}
	return s.setDismissed(ctx, d, "dead_letter_dismiss", &ledger.Dismissal{At: s.now(), By: whoIn(ctx), Note: note})
}

// reopen takes a dismissal back.
func (s *Server) reopen(ctx context.Context, d runs.DeadLetter) (runs.DeadLetter, error) {
	if d.Open() {
		return d, known.Conflict("this dead letter is open")
	}
	return s.setDismissed(ctx, d, "dead_letter_reopen", nil)
}

func (s *Server) setDismissed(ctx context.Context, d runs.DeadLetter, action string, why *ledger.Dismissal) (runs.DeadLetter, error) {
	note := ""
	if why != nil {
		note = why.Note
	}
	if err := s.audited(ctx, action, d.Job+"/"+d.ID, note); err != nil {
		return d, err
	}
	now, err := ledger.Dismiss(ctx, s.store, d.Job, d.ID, why)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLetter
	}
	return runs.DeadLetter{ID: d.ID, DeadLetter: now}, err
}

const (
	// maxReplay is how many dead letters of several runs are replayed at a time.
	maxReplay = 10_000
	// replayArgs is how many ids one call of the pipeline program gets.
	replayArgs = 1000
)

// toReplay are the ids of the open dead letters that a filter chooses, by job.
func (s *Server) toReplay(ctx context.Context, f deadLetterFilter) (ids map[string][]string, n int, err error) {
	if f.State != ledger.OpenLetters {
		return nil, 0, known.Refuse("state: a dismissed dead letter is not replayed; reopen it first")
	}
	ids = map[string][]string{}
	for d, err := range ledger.AllDeadLetters(ctx, s.store, f.query(0)) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, err
			}
			s.log.Warn("dead_letter_unreadable", "job", f.Job, "error", ledger.Redact(err.Error()))
			continue
		}
		if n++; n > maxReplay {
			return nil, 0, known.Conflict("the filter chooses more than %d dead letters; choose fewer, or use `pipeline dead-letters replay`",
				maxReplay)
		}
		ids[d.Job] = append(ids[d.Job], d.ID())
	}
	return ids, n, nil
}

// replayFound lets the next runs try the inputs of all dead letters that a filter
// chooses.
func (s *Server) replayFound(ctx context.Context, f deadLetterFilter) (replayed, error) {
	ids, n, err := s.toReplay(ctx, f)
	if err != nil || n == 0 {
		return replayed{Jobs: []string{}}, err
	}
	jobs := slices.Sorted(maps.Keys(ids))
	if err := s.audited(ctx, "dead_letters_replay", strings.Join(jobs, " "),
		fmt.Sprintf("%d, chosen by %s", n, f.values().Encode())); err != nil {
		return replayed{}, err
	}
	for _, job := range jobs {
		for some := range slices.Chunk(ids[job], replayArgs) {
			if err := s.runner.Replay(ctx, job, "", some); err != nil {
				return replayed{}, err
			}
		}
	}
	return replayed{n, jobs, "start a run of each of these jobs: it tries them again"}, nil
}

// replayed is the answer to a replay over several runs.
type replayed struct {
	Replayed int      `json:"replayed"`
	Jobs     []string `json:"jobs"`
	Todo     string   `json:"todo,omitempty"`
}

func (s *Server) replayDeadLettersFound(c *call) (any, error) {
	f, err := readDeadLetterFilter(c.in, s.jobs)
	if err = cmp.Or(known.Checked(c.in, deadLetterFields(s.jobs), !c.form), err); err != nil {
		return nil, err
	}
	done, err := s.replayFound(c.Context(), f)
	c.next = fmt.Sprintf("%s&replayed=%d", f.URL(""), done.Replayed)
	return done, err
}
