package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
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

// runDetail is a run with its report.
type runDetail struct {
	ledger.Report
	State string `json:"state"` // as in runRow
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
	Next string   `json:"next,omitempty"` // the parameter before of the next page
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
	f, err := readRunFilter(q, s.jobs.started())
	if err = cmp.Or(refuseEmpty(q, "job", "state", "from", "to", "text", "before"), err); err != nil {
		s.fail(w, r, err)
		return
	}
	list := runList{Runs: []runRow{}}
	found, more := f.page(s.board.runs(), limit)
	for _, e := range found {
		list.Runs = append(list.Runs, e.row())
	}
	if more {
		list.Next = found[limit-1].Run.RunID
	}
	s.answer(w, r, http.StatusOK, list)
}

// run finds the run that the path names.
func (s *Server) run(r *http.Request) (*entry, error) {
	id := r.PathValue("id")
	if !ledger.IsName(id) {
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
	page := runDetail{e.Report, e.State()}
	page.Error = e.Error()
	if page.Workers, err = ledger.ReadWorkers(r.Context(), s.store, e.Run.RunID); err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, page)
}

// Error is why the run failed or was interrupted. Either the run or its report may
// lack it.
func (e *entry) Error() string { return cmp.Or(e.Run.Error, e.Report.Error) }

var errNoLog = errors.New("this run has no log: it ended before it logged anything, or its log was removed because of its age")

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
	w.Header().Set("Content-Type", "text/plain; charset=utf-8") // so that a browser shows it
	_, _ = w.Write(b)                                           // a client that is gone needs no answer
}

type controlResponse struct {
	RunID  string `json:"run_id"`
	Action string `json:"action"`
}

// control pauses, resumes or cancels a run. Its workers read the control object
// every two seconds.
func (s *Server) control(action ledger.Action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := s.run(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if err := s.setControl(r.Context(), e, action); err != nil {
			s.fail(w, r, err)
			return
		}
		s.answer(w, r, http.StatusAccepted, controlResponse{e.Run.RunID, string(action)})
	}
}

// overError says that a run is over and cannot be controlled.
type overError struct{ runID, state string }

func (e *overError) Error() string { return "run " + e.runID + " is over (" + e.state + ")" }

func (s *Server) setControl(ctx context.Context, e *entry, action ledger.Action) error {
	if !e.Active() {
		return &overError{e.Run.RunID, e.State()}
	}
	name := map[ledger.Action]string{ledger.ActionRun: "run_resume", ledger.ActionPause: "run_pause", ledger.ActionCancel: "run_cancel"}[action]
	if err := s.audited(ctx, name, e.Run.RunID, ""); err != nil {
		return err
	}
	err := ledger.WriteControl(ctx, s.store, e.Run.RunID, ledger.Control{Action: action, At: s.now(), By: "server"})
	if errors.Is(err, ledger.ErrCancelled) {
		return &overError{e.Run.RunID, "it was cancelled"}
	}
	if err != nil {
		return err
	}
	s.log.Info("run_asked", "run_id", e.Run.RunID, "action", action)
	return s.board.refreshRun(ctx, e, s.now())
}
