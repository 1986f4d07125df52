package server

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

const (
	troubleText  = "the server could not do this; its log says why"
	tooLargeText = "the body is larger than 64 KiB"
)

var errNoRun = errors.New("there is no such run; GET /api/v1/runs lists them")

// route is one of the API's. The pages are not described in openapi.json.
type route struct {
	pattern string // of http.ServeMux
	handle  http.HandlerFunc
}

func (s *Server) api() []route {
	all := []route{
		{"GET /api/v1/runs", s.listRuns},
		{"GET /api/v1/runs/{id}", s.showRun},
		{"GET /api/v1/runs/{id}/log", s.runLog},
		{"POST /api/v1/runs/{id}/cancel", s.control(ledger.ActionCancel)},
		{"POST /api/v1/runs/{id}/pause", s.control(ledger.ActionPause)},
		{"POST /api/v1/runs/{id}/resume", s.control(ledger.ActionRun)},
		{"GET /api/v1/runs/{id}/dead-letters", s.deadLetters},
		{"POST /api/v1/runs/{id}/dead-letters/replay", s.replayLetters},
		{"GET /api/v1/dead-letters", s.openLetters},
		{"GET /healthz", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, http.StatusOK, status{"ok"}) }},
		{"GET /readyz", s.ready},
		{"GET /metrics", s.metrics.ServeHTTP},
		{"GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(s.openAPI) // a client that is gone needs no answer
		}},
	}
	for _, j := range s.jobs.started() {
		all = append(all, route{"POST " + j.Path, s.trigger(j)})
	}
	return all
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range slices.Concat(s.api(), s.pages.routes()) {
		mux.HandleFunc(r.pattern, r.handle)
	}
	return mux
}

type status struct {
	Status string `json:"status"`
}

type failure struct {
	Error string `json:"error"`
	RunID string `json:"run_id,omitempty"`
}

type startedRun struct {
	RunID string `json:"run_id"`
}

// answer writes v as JSON.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.log.Error("answer_not_encoded", "path", r.URL.Path, "error", err)
		code, b = http.StatusInternalServerError, []byte(`{"error":"`+troubleText+`"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n')) // a client that is gone needs no answer
}

// refuse tells a program in JSON, and a person on a page, what is wrong.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, message string) {
	if wantsPage(r) && s.pages != nil {
		s.pages.write(w, r, code, "error", message)
		return
	}
	s.answer(w, r, code, failure{Error: message})
}

// fail answers for an error. Only what was written for the sender is told;
// the rest, which may hold paths and keys, goes to the log.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var bad *badRequest
	var active *activeError
	var over *overError
	var large *http.MaxBytesError
	var body *bodyError
	switch {
	case errors.As(err, &bad):
		s.refuse(w, r, http.StatusBadRequest, safe(bad.message))
	case errors.As(err, &active):
		if wantsPage(r) {
			s.refuse(w, r, http.StatusConflict, active.Error())
			return
		}
		s.answer(w, r, http.StatusConflict, failure{active.Error(), active.RunID})
	case errors.As(err, &over):
		if wantsPage(r) {
			s.refuse(w, r, http.StatusConflict, over.Error())
			return
		}
		s.answer(w, r, http.StatusConflict, failure{over.Error(), over.runID})
	case errors.As(err, &large):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLargeText)
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &body):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusRequestTimeout, "the body did not come in time")
	case errors.As(err, &body):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusBadRequest, "the body ended too early")
	case r.Context().Err() != nil: // the one who asked has gone
		s.log.Debug("client_gone", "method", r.Method, "path", r.URL.Path)
		s.refuse(w, r, http.StatusRequestTimeout, "the connection was closed")
	case errors.Is(err, errNotJSON):
		s.refuse(w, r, http.StatusUnsupportedMediaType, errNotJSON.Error())
	case errors.Is(err, errNoLetter):
		s.refuse(w, r, http.StatusNotFound, errNoLetter.Error())
	case errors.Is(err, errNoRun):
		s.refuse(w, r, http.StatusNotFound, errNoRun.Error())
	case errors.Is(err, errNoLog):
		s.refuse(w, r, http.StatusNotFound, errNoLog.Error())
	default:
		s.log.Error("request_failed", "method", r.Method, "path", r.URL.Path, "error", ledger.Redact(err.Error()))
		s.refuse(w, r, http.StatusInternalServerError, troubleText)
	}
}

var errNotJSON = errors.New("send the body as JSON, with the header Content-Type: application/json")

// jsonBody reads a request's body, which is JSON or empty. A program may leave
// its type out, or let it be the one of curl -d: no page of another site can
// send such a request without the browser's marks (Origin, Sec-Fetch-Site),
// and what has them must say that it is JSON, which no form can.
func jsonBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"))
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded" && !browser) {
		return b, nil
	}
	return nil, errNotJSON
}

func (s *Server) trigger(j job) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := jsonBody(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		flags, err := j.flags(body)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		id, err := s.startNow(context.WithoutCancel(r.Context()), j.Name, flags, "http")
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Location", "/api/v1/runs/"+id)
		s.answer(w, r, http.StatusAccepted, startedRun{id})
	}
}

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
		return &overError{e.Run.RunID, "it was told to stop"}
	}
	if err != nil {
		return err
	}
	s.log.Info("run_asked", "run_id", e.Run.RunID, "action", action)
	return s.board.again(ctx, e, s.now())
}

type letter struct {
	ID string `json:"id"`
	ledger.DeadLetter
}

type letterList struct {
	DeadLetters []letter `json:"dead_letters"`
	More        bool     `json:"more"`       // there are more than these
	Unreadable  int      `json:"unreadable"` // objects that are no dead letters
}

// maxLetters of a run are listed: a person reads them.
const maxLetters = 500

func (s *Server) lettersOf(ctx context.Context, run ledger.Run) (letterList, error) {
	if run.Job == "" {
		return letterList{DeadLetters: []letter{}}, nil
	}
	return s.letters(ctx, run.Job, run.RunID)
}

// letters are the open dead letters of a job and a run, of all where empty.
func (s *Server) letters(ctx context.Context, job, runID string) (letterList, error) {
	list := letterList{DeadLetters: []letter{}}
	for d, err := range ledger.ListDeadLetters(ctx, s.store, job, runID) {
		switch {
		case err != nil && ctx.Err() != nil:
			return list, err
		case err != nil:
			s.log.Warn("dead_letter_unreadable", "job", job, "error", ledger.Redact(err.Error()))
			list.Unreadable++
		case len(list.DeadLetters) == maxLetters:
			list.More = true
			return list, nil
		default:
			list.DeadLetters = append(list.DeadLetters, letter{d.ID(), d})
		}
	}
	return list, nil
}

// jobOfLetters is the job that a query names, "" for all of them where it names none.
func (s *Server) jobOfLetters(r *http.Request) (string, error) {
	q := r.URL.Query()
	job := q.Get("job")
	if q.Has("job") && !slices.Contains(s.jobs.names(), job) {
		return "", refuse("job: use %s", strings.Join(s.jobs.names(), ", "))
	}
	return job, nil
}

func (s *Server) openLetters(w http.ResponseWriter, r *http.Request) {
	job, err := s.jobOfLetters(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.letters(r.Context(), job, "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, list)
}

func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request) {
	e, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.lettersOf(r.Context(), e.Run)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, list)
}

type replayed struct {
	RunID    string `json:"run_id"`
	Replayed int    `json:"replayed"`
	Todo     string `json:"todo"`
}

func (s *Server) replayLetters(w http.ResponseWriter, r *http.Request) {
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
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, replayed{e.Run.RunID, n, "start a run of job " + e.Run.Job + ": it does them again"})
}

// replayIDs are the ids that a body names; none means all of the run's.
func replayIDs(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var said map[string]*[]string
	if err := json.Unmarshal(body, &said); err != nil || said == nil {
		return nil, refuse(`the body is no JSON object with ids; write {"ids": ["…"]}, or {} for all`)
	}
	for name, ids := range said {
		switch {
		case name != "ids":
			return nil, refuse("unknown field %q; this takes ids", clip(name))
		case ids == nil || len(*ids) == 0:
			return nil, refuse("ids: name one or more, or leave it out for all")
		}
	}
	if said["ids"] == nil {
		return nil, nil
	}
	for _, id := range *said["ids"] {
		if !idForm.MatchString(id) {
			return nil, refuse("ids: that is no dead letter's id")
		}
	}
	return *said["ids"], nil
}

var errNoLetter = errors.New("this run has no such dead letter; GET its dead-letters lists them")

// replay opens the inputs of a run's dead letters again, all or those named.
func (s *Server) replay(ctx context.Context, e *entry, ids []string) (int, error) {
	if e.Run.Job == "" {
		return 0, errNoRun
	}
	there := map[string]bool{}
	for d, err := range ledger.ListDeadLetters(ctx, s.store, e.Run.Job, e.Run.RunID) {
		if err == nil {
			there[d.ID()] = true
		}
	}
	for _, id := range ids {
		if !there[id] {
			return 0, errNoLetter
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
	return n, s.runner.replay(ctx, e.Run, slices.Compact(ids))
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.board.ready(s.now()) {
		s.answer(w, r, http.StatusOK, status{"ready"})
		return
	}
	s.answer(w, r, http.StatusServiceUnavailable, status{"the store does not answer; see the server's log"})
}
