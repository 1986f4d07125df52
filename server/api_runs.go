package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// runRow is a run in the list.
type runRow struct {
	RunID      string         `json:"run_id"`
	Job        string         `json:"job"`
	Runner     string         `json:"runner"`
	State      string         `json:"state"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt *time.Time     `json:"finished_at"`
	Duration   float64        `json:"duration_s"`
	Error      string         `json:"error,omitempty"`
	Options    map[string]any `json:"options"`
}

// runPage is one run with all that is known of it.
type runPage struct {
	ledger.Report
	State string `json:"state"` // in the list's words
}

func (e *entry) row() runRow {
	r := runRow{RunID: e.Run.RunID, Job: e.Run.Job, Runner: e.Run.Runner, State: e.State(), StartedAt: e.Run.StartedAt, Options: e.Run.Options, Duration: e.Report.Duration, Error: e.Error()}
	if !e.Run.FinishedAt.IsZero() {
		r.FinishedAt = &e.Run.FinishedAt
	}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	return r
}

type runList struct {
	Runs []runRow `json:"runs"`
	Next string   `json:"next,omitempty"` // the before of the next page
}

const defaultLimit, maxLimit = 50, 1000

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit := defaultLimit
	if q.Has("limit") {
		n, err := strconv.Atoi(q.Get("limit"))
		if err != nil || n < 1 || n > maxLimit {
			s.fail(w, r, refuse("limit: use 1 to %d", maxLimit))
			return
		}
		limit = n
	}
	name, before := q.Get("job"), q.Get("before")
	if _, ok := s.jobs.started().named(name); q.Has("job") && !ok {
		s.fail(w, r, refuse("job: use %s", s.jobs.started().or()))
		return
	}
	if q.Has("before") && !idForm.MatchString(before) {
		s.fail(w, r, refuse("before: that is no run's id"))
		return
	}
	list := runList{Runs: []runRow{}}
	for _, e := range s.board.runs() {
		if name != "" && e.Run.Job != name || before != "" && e.Run.RunID >= before {
			continue
		}
		if len(list.Runs) == limit {
			list.Next = list.Runs[limit-1].RunID
			break
		}
		list.Runs = append(list.Runs, e.row())
	}
	s.answer(w, r, http.StatusOK, list)
}

// idForm is how the ledger names runs and dead letters.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// run finds the run that the path names; what cannot be an id is no run.
func (s *Server) run(r *http.Request) (*entry, error) {
	id := r.PathValue("id")
	if !idForm.MatchString(id) {
		return nil, errNoRun
	}
	e, err := s.board.find(r.Context(), id, s.now())
	if errors.Is(err, store.ErrNotExist) {
		return nil, errNoRun
	}
	return e, err
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	e, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	page := runPage{e.Report, e.State()}
	page.Error = e.Error()
	s.answer(w, r, http.StatusOK, page)
}

// Error is why the run failed or was interrupted; the report of a run may have
// been written before its end was.
func (e *entry) Error() string { return cmp.Or(e.Run.Error, e.Report.Error) }

var errNoLog = errors.New("this run has no log: it ended before it said anything, or it is older than logs are kept")

func (s *Server) runLog(w http.ResponseWriter, r *http.Request) {
	e, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	b, err := ledger.ReadLog(r.Context(), s.store, e.Run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLog
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8") // a browser shows it
	_, _ = w.Write(b)                                           // a client that is gone needs no answer
}

type controlled struct {
	RunID  string `json:"run_id"`
	Action string `json:"action"`
}

// control asks a run to do something. Its workers look every two seconds.
func (s *Server) control(action ledger.Action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := s.run(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if err := s.steer(r.Context(), e, action); err != nil {
			s.fail(w, r, err)
			return
		}
		s.answer(w, r, http.StatusAccepted, controlled{e.Run.RunID, string(action)})
	}
}

// overError says that nothing can be asked of a run any more.
type overError struct{ runID, state string }

func (e *overError) Error() string { return "run " + e.runID + " is over (" + e.state + ")" }

func (s *Server) steer(ctx context.Context, e *entry, action ledger.Action) error {
	if !e.Active() {
		return &overError{e.Run.RunID, e.State()}
	}
	err := ledger.WriteControl(ctx, s.store, e.Run.RunID, ledger.Control{Action: action, At: s.now(), By: "server"})
	if errors.Is(err, ledger.ErrCancelled) {
		return &overError{e.Run.RunID, "it was cancelled"}
	}
	if err != nil {
		return err
	}
	s.log.Info("run_asked", "run_id", e.Run.RunID, "action", action)
	return s.board.again(ctx, e, s.now())
}
