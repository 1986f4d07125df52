package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
)

const (
	// removalInterval is how often the leader looks for requests to remove a provider.
	removalInterval = time.Minute
	// removalRetry is how long it waits before it tries again what could not be done.
	removalRetry = 10 * time.Minute
	removalRule  = "removal"
	docsJob      = "docs"
)

var providerForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,127}$`)

// removals lets the pipeline program do open requests to remove what was kept of a
// provider.
type removals struct {
	lookAt  time.Time
	retryAt time.Time
	working atomic.Bool
}

// tickRemovals starts the program for open requests, and raises an alert for one that is
// not done a day before it must be. Only the leader calls it.
func (s *Server) tickRemovals(ctx context.Context, now time.Time) (changed bool, err error) {
	r := &s.removals
	if now.Before(r.lookAt) {
		return false, nil
	}
	r.lookAt = now.Add(removalInterval)
	all, err := removal.All(ctx, s.store)
	if err != nil {
		return false, err
	}
	open := false
	for _, e := range all {
		open = open || e.Open()
	}
	if open && !now.Before(r.retryAt) && r.working.CompareAndSwap(false, true) {
		r.retryAt = now.Add(removalRetry)
		s.background.Go(func() {
			defer r.working.Store(false)
			if err := runCommand(ctx, s.runner.command("removals", "do")); err != nil && ctx.Err() == nil {
				s.log.Error("removal_not_done", "error", ledger.Redact(err.Error()), "todo", "run `pipeline removals do`, which says why")
			}
		})
	}
	return s.alarm.judgeRemovals(all, now), nil
}

// judgeRemovals raises an alert for each provider with a request that is late, and ends it
// with its receipt.
func (a *alarm) judgeRemovals(all []removal.Entry, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	judged := map[string]finding{}
	for _, e := range all { // the newest first, so that the oldest that is late remains
		f := finding{breach{Job: e.Job, Rule: removalRule, Provider: e.Provider, Text: "what was kept of it is removed"}, e.Late(now)}
		if f.broken {
			f.Text = fmt.Sprintf("everything of it must be removed until %s, and is not: stop the run that crawls it, and run `pipeline removals do`", e.Due.UTC().Format("2006-01-02 15:04 UTC"))
		}
		if f.broken || !judged[e.Provider].broken {
			judged[e.Provider] = f
		}
	}
	for _, f := range judged {
		changed = a.apply(f, true, now) || changed
	}
	return changed
}

type removalList struct {
	Removals []removal.Entry `json:"removals"`
}

func (s *Server) listRemovals(w http.ResponseWriter, r *http.Request) {
	all, err := removal.All(r.Context(), s.store)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, removalList{append([]removal.Entry{}, all...)})
}

func (s *Server) showRemoval(w http.ResponseWriter, r *http.Request) {
	e, err := removal.Find(r.Context(), s.store, r.PathValue("id"))
	if errors.Is(err, removal.ErrNone) {
		err = &answerError{http.StatusNotFound, "there is no such request; GET /api/v1/docs/removals lists them"}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, e)
}

func (s *Server) askRemoval(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Provider string `json:"provider"`
		From     string `json:"from"`
		Note     string `json:"note"`
	}
	err := decodeBody(r, &given, `{"provider": "acme", "from": "legal@acme.example", "note": "ticket 7"}`)
	if err == nil && !providerForm.MatchString(given.Provider) {
		err = refuse("provider: write the id of a provider")
	}
	ctx := context.WithoutCancel(r.Context())
	if err == nil {
		err = s.audited(ctx, "removal_request", given.Provider, given.Note)
	}
	var req removal.Request
	if err == nil {
		req, err = removal.Record(ctx, s.store, removal.Request{Job: docsJob, Provider: given.Provider, By: whoIn(ctx), From: given.From, Note: given.Note}, s.now())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/api/v1/docs/removals/"+req.ID)
	s.answer(w, r, http.StatusCreated, removal.Entry{Request: req})
}

func (s *Server) removalRoutes() []route {
	return []route{
		{"GET /api/v1/docs/removals", s.listRemovals},
		{"POST /api/v1/docs/removals", s.askRemoval},
		{"GET /api/v1/docs/removals/{id}", s.showRemoval},
	}
}
