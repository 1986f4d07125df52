package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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
	More        bool         `json:"more"`       // there are more
	Unreadable  int          `json:"unreadable"` // objects that cannot be read as dead letters
}

// maxDeadLetters is how many dead letters are listed.
const maxDeadLetters = 500

func (s *Server) deadLettersOf(ctx context.Context, run ledger.Run) (deadLetterList, error) {
	if run.Job == "" {
		return deadLetterList{DeadLetters: []deadLetter{}}, nil
	}
	return s.findDeadLetters(ctx, run.Job, run.RunID)
}

// findDeadLetters returns the open dead letters of a job and a run; empty means all.
func (s *Server) findDeadLetters(ctx context.Context, job, runID string) (deadLetterList, error) {
	list := deadLetterList{DeadLetters: []deadLetter{}}
	for d, err := range ledger.ListDeadLetters(ctx, s.store, job, runID) {
		switch {
		case err != nil && ctx.Err() != nil:
			return list, err
		case err != nil:
			s.log.Warn("dead_letter_unreadable", "job", job, "error", ledger.Redact(err.Error()))
			list.Unreadable++
		case len(list.DeadLetters) == maxDeadLetters:
			list.More = true
			return list, nil
		default:
			list.DeadLetters = append(list.DeadLetters, deadLetter{d.ID(), d})
		}
	}
	return list, nil
}

// deadLetterJob is the job that a query names, "" for all jobs.
func (s *Server) deadLetterJob(r *http.Request) (string, error) {
	q := r.URL.Query()
	job := q.Get("job")
	if q.Has("job") && !slices.Contains(s.jobs.names(), job) {
		return "", refuse("job: use %s", strings.Join(s.jobs.names(), ", "))
	}
	return job, nil
}

func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request) {
	job, err := s.deadLetterJob(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.findDeadLetters(r.Context(), job, "")
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
	list, err := s.deadLettersOf(r.Context(), e.Run)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, list)
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
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, replayResponse{e.Run.RunID, n, "start a run of job " + e.Run.Job + ": it tries them again"})
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
		if !idPattern.MatchString(id) {
			return nil, refuse("ids: that is not a dead letter's id")
		}
	}
	return *given["ids"], nil
}

var errNoDeadLetter = errors.New("this run has no such dead letter; GET its dead-letters lists them")

// replay lets the next run try the inputs of a run's dead letters again: of those
// named, or of all.
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
	return n, s.runner.replay(ctx, e.Run, slices.Compact(ids))
}
