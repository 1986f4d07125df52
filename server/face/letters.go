package face

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
	"github.com/newsfork/seed-engine/server/people"
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

// ofRun returns the open dead letters of a run. They are written after its start, so older ones need not be read.
func (f letterRows) ofRun(ctx context.Context, run ledger.Run) (deadLetterList, error) {
	if run.Job == "" {
		return deadLetterList{DeadLetters: []runs.DeadLetter{}}, nil
	}
	return f.find(ctx, ledger.DeadLetterQuery{Job: run.Job, RunID: run.RunID, State: ledger.OpenLetters, Since: run.StartedAt,
		Limit: maxDeadLetters})
}

// find returns one page of the dead letters that a query chooses.
func (f letterRows) find(ctx context.Context, q ledger.DeadLetterQuery) (deadLetterList, error) {
	list := deadLetterList{DeadLetters: []runs.DeadLetter{}}
	page, err := ledger.SearchDeadLetters(ctx, f.Store, q)
	if errors.Is(err, ledger.ErrPlace) {
		return list, known.Refuse("after: " + badPlace)
	}
	if err != nil {
		return list, err
	}
	for _, err := range page.Unreadable {
		f.unreadable(q.Job, err)
	}
	for _, d := range page.DeadLetters {
		list.DeadLetters = append(list.DeadLetters, runs.DeadLetter{ID: d.ID(), DeadLetter: d})
	}
	list.More, list.Next, list.Searched, list.Unreadable = page.Next != "", page.Next, page.Searched, len(page.Unreadable)
	return list, nil
}

func (f letterRows) unreadable(job string, err error) {
	f.Log.Warn("dead_letter_unreadable", "job", job, "error", ledger.Redact(err.Error()))
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

// given are the parameters that have this filter, without the place.
func (f deadLetterFilter) given() url.Values {
	if f.State == ledger.OpenLetters {
		f.State = ""
	}
	return runs.Given("job", f.Job, "kind", f.Kind, "run", f.Run, "state", f.State, "from", f.From, "to", f.To, "text", f.Text)
}

// Chosen reports whether the filter leaves out any dead letter.
func (f deadLetterFilter) Chosen() bool { return len(f.given()) > 0 }

// URL is the page with the filter's dead letters after a place; "" means the newest.
func (f deadLetterFilter) URL(after string) string {
	q := f.given()
	if after != "" {
		q.Set("after", after)
	}
	return "/dead-letters?" + q.Encode()
}

// ReplayURL is the page that asks before the filter's dead letters are replayed.
func (f deadLetterFilter) ReplayURL() string { return "/dead-letters/replay?" + f.given().Encode() }

// letterRows are about dead letters.
type letterRows struct{ *Face }

func (f letterRows) rows() ([]action, []view) {
	const ofRun, one, form = "/api/v1/runs/{id}/dead-letters", "/api/v1/dead-letters/{job}/{id}", "/dead-letters/{job}/{id}"
	const noRun, none, now = "404 NoRun", "404 NoDeadLetter", "200 DeadLetter The dead letter as it is now."
	note := option.Option{Name: "note", Kind: option.Text, Usage: "Why nothing will be done about it."}
	actions := grouped("runs", "dead-letters",
		action{At: "GET " + ofRun, ID: "listDeadLetters", About: "The open dead letters of a run, 500 at most",
			Out: "200 DeadLetters The dead letters.", Fails: noRun,
			Do: f.Face.ofRun(func(c *call, e *runs.Entry) (any, error) { return f.ofRun(c.Context(), e.Run) })},
		action{At: "POST " + ofRun + "/replay", ID: "replayDeadLetters",
			About: "Let the job's next run try the inputs of dead letters again, all or those named",
			Body:  "ReplayRequest", Raw: true, Example: "{}", Out: "200 Replayed The next run will try their inputs again.", Fails: noRun,
			Do: f.Face.ofRun(f.replayOfRun), Form: "/runs/{id}/dead-letters/replay", Confirm: f.Face.ofRun(f.confirmReplayOfRun)},
		action{At: "GET /api/v1/dead-letters", ID: "listOpenDeadLetters", In: listFields(f.Jobs), Out: "200 DeadLetters The dead letters.",
			About: "Dead letters, open ones unless state says so, those written last first, 500 at most; next leads to the others",
			Do: f.chosen(func(c *call, filter deadLetterFilter) (any, error) {
				return f.find(c.Context(), filter.query(maxDeadLetters))
			})},
		action{At: "POST /api/v1/dead-letters/replay", ID: "replayDeadLettersFound",
			Out:   "200 ReplayedFound The next runs will try their inputs again.",
			About: "Let the next runs try the inputs of all open dead letters that a filter chooses again, 10,000 at most",
			Body:  "DeadLetterFilter", In: deadLetterFields(f.Jobs), Loose: true, Example: `{"job": "seed", "kind": "store_failed"}`,
			Fails: "409 Conflict", Do: f.chosen(f.replayChosen), Form: "/dead-letters/replay", Confirm: f.chosen(f.confirmReplayChosen)},
		action{At: "GET " + one, ID: "showDeadLetter", About: "One dead letter", Out: "200 DeadLetter The dead letter.", Fails: none,
			Do: f.letter(func(_ *call, d runs.DeadLetter) (any, error) { return d, nil })},
		action{At: "POST " + one + "/dismiss", ID: "dismissDeadLetter",
			About: "Record that nothing will be done about a dead letter; a new failure of the same input opens it again",
			Body:  "DismissRequest", In: []option.Option{*note.Range(1, ledger.MaxNote)}, Needs: []string{"note"}, Loose: true,
			Example: `{"note": "The page is a picture."}`,
			Out:     now, Fails: none, Do: f.letter(f.dismiss), Form: form + "/dismiss", Next: form},
		action{At: "POST " + one + "/reopen", ID: "reopenDeadLetter", About: "Take a dismissal back", Out: now, Fails: none + ", 409 Conflict",
			Do: f.letter(f.reopen), Form: form + "/reopen", Next: form},
		action{Form: form + "/replay", Do: f.letter(f.replay)},
	)
	return actions, []view{
		{At: "GET /dead-letters", Template: "dead-letters", Section: "dead-letters", Title: "Dead letters", Still: true,
			Data: f.chosen(func(c *call, filter deadLetterFilter) (any, error) {
				list, err := f.find(c.Context(), filter.query(perPage))
				return deadLettersPage{filter, list, f.Jobs.Names(), letterStates, c.in.Get("replayed")}, err
			})},
		{At: "GET " + form, Template: "dead-letter", Section: "dead-letters", Still: true, Data: f.letter(f.page)},
	}
}

// chosen does something with the dead letters that a filter chooses.
func (f letterRows) chosen(do func(*call, deadLetterFilter) (any, error)) doing {
	return func(c *call) (any, error) {
		filter, err := readDeadLetterFilter(c.in, f.Jobs)
		if err != nil {
			return nil, err
		}
		return do(c, filter)
	}
}

type replayResponse struct {
	RunID    string `json:"run_id"`
	Replayed int    `json:"replayed"`
	Todo     string `json:"todo"`
}

func (f letterRows) replayOfRun(c *call, e *runs.Entry) (any, error) {
	ids, err := c.in["id"], error(nil)
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
	n, err := f.replayIn(c.Context(), e, ids)
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

// replayIn lets the next run try the inputs of a run's dead letters again: of those
// named, or of all.
func (f letterRows) replayIn(ctx context.Context, e *runs.Entry, ids []string) (int, error) {
	if e.Run.Job == "" {
		return 0, errNoRun
	}
	there := map[string]bool{}
	for d, err := range ledger.AllDeadLetters(ctx, f.Store, ledger.DeadLetterQuery{Job: e.Run.Job, RunID: e.Run.RunID,
		State: ledger.OpenLetters}) {
		if err == nil {
			there[d.ID()] = true
		}
	}
	for _, id := range ids {
		if !there[id] {
			return 0, known.Answer(http.StatusNotFound, "this run has no such dead letter that is open; GET its dead-letters lists them")
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
	if err := f.Guard.Note(ctx, "dead_letters_replay", e.Run.RunID, strings.Join(ids, " ")); err != nil {
		return 0, err
	}
	return n, f.Runner.Replay(ctx, e.Run.Job, e.Run.RunID, slices.Compact(ids))
}

var errNoLetter = known.Answer(http.StatusNotFound,
	"there is no such dead letter; it may be resolved. GET /api/v1/dead-letters lists them")

// letter does something with the dead letter that the path names.
func (f letterRows) letter(do func(*call, runs.DeadLetter) (any, error)) doing {
	return func(c *call) (any, error) {
		job, id := c.PathValue("job"), c.PathValue("id")
		if !slices.Contains(f.Jobs.Names(), job) || !ledger.IsName(id) {
			return nil, errNoLetter
		}
		d, err := ledger.Get(c.Context(), f.Store, job, id)
		if errors.Is(err, store.ErrNotExist) {
			err = errNoLetter
		}
		if err != nil {
			return nil, err
		}
		return do(c, runs.DeadLetter{ID: id, DeadLetter: d})
	}
}

// dismiss counts a dead letter out of the open ones.
func (f letterRows) dismiss(c *call, d runs.DeadLetter) (any, error) {
	note := strings.TrimSpace(c.in.Get("note"))
	if note == "" || len(note) > ledger.MaxNote {
		return nil, known.Refuse("note: say in 1 to %d bytes why nothing will be done about it", ledger.MaxNote)
	}
	return f.setDismissed(c, d, "dead_letter_dismiss", note, &ledger.Dismissal{At: f.Now(), By: people.Who(c.Context()), Note: note})
}

// reopen takes a dismissal back.
func (f letterRows) reopen(c *call, d runs.DeadLetter) (any, error) {
	if d.Open() {
		return nil, known.Conflict("this dead letter is open")
	}
	return f.setDismissed(c, d, "dead_letter_reopen", "", nil)
}

func (f letterRows) setDismissed(c *call, d runs.DeadLetter, action, note string, why *ledger.Dismissal) (any, error) {
	if err := f.Guard.Note(c.Context(), action, d.Job+"/"+d.ID, note); err != nil {
		return nil, err
	}
	now, err := ledger.Dismiss(c.Context(), f.Store, d.Job, d.ID, why)
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
func (f letterRows) toReplay(ctx context.Context, filter deadLetterFilter) (ids map[string][]string, n int, err error) {
	if filter.State != ledger.OpenLetters {
		return nil, 0, known.Refuse("state: a dismissed dead letter is not replayed; reopen it first")
	}
	ids = map[string][]string{}
	for d, err := range ledger.AllDeadLetters(ctx, f.Store, filter.query(0)) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, err
			}
			f.unreadable(filter.Job, err)
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

// replayChosen lets the next runs try the inputs of all dead letters that a filter chooses.
func (f letterRows) replayChosen(c *call, filter deadLetterFilter) (any, error) {
	if err := known.Checked(c.in, deadLetterFields(f.Jobs), !c.form); err != nil {
		return nil, err
	}
	ids, n, err := f.toReplay(c.Context(), filter)
	c.next = fmt.Sprintf("%s&replayed=%d", filter.URL(""), n)
	if err != nil || n == 0 {
		return replayed{Jobs: []string{}}, err
	}
	jobs := slices.Sorted(maps.Keys(ids))
	if err := f.Guard.Note(c.Context(), "dead_letters_replay", strings.Join(jobs, " "),
		fmt.Sprintf("%d, chosen by %s", n, filter.given().Encode())); err != nil {
		return nil, err
	}
	for _, job := range jobs {
		for some := range slices.Chunk(ids[job], replayArgs) {
			if err := f.Runner.Replay(c.Context(), job, "", some); err != nil {
				return nil, err
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

// deadLettersPage is the data of the page of dead letters.
type deadLettersPage struct {
	deadLetterFilter
	deadLetterList
	Jobs, States []string
	Replayed     string
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

func (f letterRows) page(c *call, d runs.DeadLetter) (any, error) {
	v := letterPage{DeadLetter: d}
	for _, id := range slices.Backward(append(slices.Clone(d.Earlier), d.RunID)) {
		at := letterRun{ID: id}
		if text := searchFor(d.Input); text != "" {
			at.Log = "/runs/" + id + "/log?" + url.Values{"q": {text}}.Encode()
		}
		v.Runs = append(v.Runs, at)
	}
	c.Title = "Dead letter: " + known.Words(d.Kind)
	var err error
	v.Objects, v.More, err = f.objectsOf(c.Context(), d.Input)
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
func (f letterRows) objectsOf(ctx context.Context, in ledger.Input) (all []storeObject, more bool, err error) {
	for _, prefix := range []string{in.Key, in.File} {
		if prefix == "" {
			continue
		}
		for o, err := range f.Store.List(ctx, prefix) {
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

// replay lets the next run try the input of one dead letter again.
func (f letterRows) replay(c *call, d runs.DeadLetter) (any, error) {
	if !d.Open() {
		return nil, known.Conflict("a dismissed dead letter is not replayed; reopen it first")
	}
	c.next = "/dead-letters?replayed=1&job=" + d.Job
	if err := f.Guard.Note(c.Context(), "dead_letters_replay", d.RunID, d.ID); err != nil {
		return nil, err
	}
	return nil, f.Runner.Replay(c.Context(), d.Job, "", []string{d.ID})
}

// confirmReplayChosen asks before the dead letters that a filter chooses are replayed.
func (f letterRows) confirmReplayChosen(c *call, filter deadLetterFilter) (any, error) {
	_, n, err := f.toReplay(c.Context(), filter)
	if err == nil && n == 0 {
		err = known.Conflict("the filter chooses no open dead letter")
	}
	ask := confirmation{Title: fmt.Sprintf("Replay %s dead letters?", ledger.FormatCount(int64(n))), Button: "Replay them",
		Back: filter.URL(""), Text: "The next run of each of their jobs tries their inputs again. Dismissed ones are left out."}
	given := filter.given()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		ask.Hidden = append(ask.Hidden, hidden{name, given.Get(name)})
	}
	return ask, err
}

// confirmReplayOfRun asks before all dead letters of a run are replayed.
func (f letterRows) confirmReplayOfRun(_ *call, e *runs.Entry) (any, error) {
	return confirmation{Title: "Replay all dead letters of run " + e.Run.RunID + "?", Button: "Replay all",
		Back: "/runs/" + e.Run.RunID + "#dead-letters", Section: "runs",
		Hidden: []hidden{{"all", "true"}},
		Text:   "The next run of " + e.Run.Job + " tries the inputs of all open dead letters of this run again."}, nil
}
