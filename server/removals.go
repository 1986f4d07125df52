package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

const (
	// removalInterval is how often the leader looks for requests to remove a source.
	removalInterval = time.Minute
	// removalRetry is how long it waits before it tries again what could not be done.
	removalRetry = 10 * time.Minute
	docsJob      = "docs"
	// similarShown is how many similar ids the refusal of a misspelt one names.
	similarShown = 5
)

var providerForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,127}$`)

// removals lets the pipeline program do open requests to remove what was kept of a
// source.
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
			if err := runs.RunCommand(ctx, s.runner.Command("removals", "do")); err != nil && ctx.Err() == nil {
				s.log.Error("removal_not_done", "error", ledger.Redact(err.Error()), "todo", "run `pipeline removals do`, which says why")
			}
		})
	}
	return s.alarm.JudgeRemovals(all, now), nil
}

type removalList struct {
	Removals []removal.Entry `json:"removals"`
}

func (s *Server) listRemovals(w http.ResponseWriter, r *http.Request) {
	all, err := removal.All(r.Context(), s.store)
	s.reply(w, r, removalList{append([]removal.Entry{}, all...)}, err)
}

func (s *Server) showRemoval(w http.ResponseWriter, r *http.Request) {
	e, err := removal.Find(r.Context(), s.store, r.PathValue("id"))
	if errors.Is(err, removal.ErrNone) {
		err = &known.AnswerError{Code: http.StatusNotFound, Message: "there is no such request; GET /api/v1/docs/removals lists them"}
	}
	s.reply(w, r, e, err)
}

func (s *Server) askRemoval(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Provider  string `json:"provider"`
		Site      string `json:"site"`
		Publisher string `json:"publisher"`
		Domain    string `json:"domain"`
		From      string `json:"from"`
		Note      string `json:"note"`
	}
	err := decodeBody(r, &given, `{"provider": "acme", "from": "legal@acme.example", "note": "ticket 7"}`)
	var job, name string
	if err == nil {
		of := map[string]string{"provider": given.Provider, "site": given.Site, "publisher": given.Publisher, "domain": given.Domain}
		job, name, err = s.removalOf(r.Context(), func(kind string) string { return of[kind] })
	}
	var req removal.Request
	if err == nil {
		req, err = s.recordRemoval(r.Context(), job, name, given.From, given.Note)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/api/v1/docs/removals/"+req.ID)
	s.answer(w, r, http.StatusCreated, removal.Entry{Request: req})
}

var errNotAProvider = known.Refuse("provider: write the id of a provider")

// removalOf is the source that a request names by its kind, and its job. A source of which nothing is known is refused.
func (s *Server) removalOf(ctx context.Context, given func(kind string) string) (job, name string, err error) {
	id := strings.TrimSpace(given("provider"))
	for _, j := range s.jobs {
		if j.Removal == nil || j.Name == docsJob || given(j.Removal.Kind) == "" {
			continue
		}
		if name != "" || id != "" {
			return "", "", known.Refuse("%s: write one name in a request", j.Removal.Kind)
		}
		if name, err = j.Removal.Named(strings.TrimSpace(given(j.Removal.Kind))); err != nil {
			return "", "", known.Refuse("%s", err)
		}
		job, err = j.Name, s.knowsSource(ctx, j, name)
	}
	if name != "" || err != nil {
		return job, name, err
	}
	if !providerForm.MatchString(id) {
		return "", "", errNotAProvider
	}
	return docsJob, id, s.knowsProvider(ctx, id)
}

// recordRemoval records a request to remove a source of a job.
func (s *Server) recordRemoval(ctx context.Context, job, name, from, note string) (removal.Request, error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.audited(ctx, "removal_request", name, note); err != nil {
		return removal.Request{}, err
	}
	return removal.Record(ctx, s.store, removal.Request{Job: job, Provider: name, By: whoIn(ctx), From: from, Note: note}, s.now())
}

// knowsSource refuses a source of which its job keeps nothing. Where the store or the database does not answer, the request
// is taken: one too many removes nothing.
func (s *Server) knowsSource(ctx context.Context, j known.Job, name string) error {
	within, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	var ids []string
	var kept removal.Removed
	src, err := s.explorer.source(within, j.Name)
	if err == nil {
		kept, err = j.Removal.Find(within, removal.Source{Name: name, Store: src.Store, DB: src.DB})
	}
	if err == nil && kept.Total() == 0 {
		ids, err = j.Removal.Known(within, src.DB)
	}
	switch {
	case errors.Is(err, explore.ErrNothingYet), err == nil && kept.Total() == 0 && !slices.Contains(ids, name):
		text := fmt.Sprintf("%s: nothing is stored of %s", j.Removal.Kind, name)
		if len(ids) > 0 {
			text += "; similar ones are " + strings.Join(similar.Names(name, ids, similarShown), ", ")
		}
		return &known.AnswerError{Code: http.StatusNotFound, Message: text}
	case err != nil:
		s.log.Warn("removal_not_checked", "provider", name, "error", ledger.Redact(err.Error()))
	}
	return nil
}

// knowsProvider refuses a provider that nobody knows: it has no policy, people keep nothing
// of it, and no page of it is stored. Where the database does not answer, the request is
// taken: one too many removes nothing.
func (s *Server) knowsProvider(ctx context.Context, id string) error {
	views, removed, err := s.providers.all(ctx)
	if err != nil {
		return err
	}
	ids := slices.Collect(maps.Keys(removed))
	for _, v := range views {
		ids = append(ids, v.ProviderID)
	}
	if slices.Contains(ids, id) {
		return nil
	}
	i := slices.IndexFunc(s.explorer.kinds, func(k kind) bool { return k.Job.Name == docsJob && k.Name == "pages" })
	if i < 0 {
		return nil
	}
	left, err := s.search(ctx, s.explorer.kinds[i], explore.Query{"provider": id})
	if err != nil {
		s.log.Warn("removal_not_checked", "provider", id, "error", ledger.Redact(err.Error()))
		return nil
	}
	if len(left.Items) > 0 {
		return nil
	}
	return &known.AnswerError{Code: http.StatusNotFound,
		Message: fmt.Sprintf("provider: there is no provider %s, and nothing is stored of one; similar ones are %s", id,
			strings.Join(similar.Names(id, ids, similarShown), ", "))}
}

func (s *Server) removalRoutes() []route {
	return []route{
		{"GET /api/v1/docs/removals", s.listRemovals},
		{"POST /api/v1/docs/removals", s.askRemoval},
		{"GET /api/v1/docs/removals/{id}", s.showRemoval},
	}
}
