package server

import (
	"cmp"
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
	"github.com/newsfork/seed-engine/pipeline/option"
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

// removalActions are what can be asked about removals.
func (s *Server) removalActions() []action {
	const all = "/api/v1/docs/removals"
	var fields []option.Option
	for _, name := range []string{"provider", "site", "publisher", "domain", "from", "note"} {
		fields = append(fields, option.Option{Name: name, Kind: option.Text})
	}
	return grouped("removals", "providers",
		action{At: "GET " + all, ID: "listRemovals", Out: "200 Removals The requests.", Do: s.listRemovals,
			About: "The requests to remove what was kept of a provider, site, publisher or domain, the newest first"},
		action{At: "POST " + all, ID: "askRemoval", Out: "201 Removal The request.", Fails: "404 NoProvider",
			About: "Record a request to remove what was kept of a provider, site, publisher or domain; it must be done within 48 hours",
			Body:  "RemovalRequest", In: fields, Must: true, Example: `{"provider": "acme", "from": "legal@acme.example", "note": "ticket 7"}`,
			Do: s.askRemoval, Form: "/removals", Next: "/removals"},
		action{At: "GET " + all + "/{id}", ID: "showRemoval", About: "A request with its receipt", Out: "200 Removal The request.",
			Fails: "404 NoRemoval", Do: s.showRemoval},
	)
}

func (s *Server) listRemovals(c *call) (any, error) {
	all, err := removal.All(c.Context(), s.store)
	return removalList{append([]removal.Entry{}, all...)}, err
}

func (s *Server) showRemoval(c *call) (any, error) {
	e, err := removal.Find(c.Context(), s.store, c.PathValue("id"))
	if errors.Is(err, removal.ErrNone) {
		err = &known.AnswerError{Code: http.StatusNotFound, Message: "there is no such request; GET /api/v1/docs/removals lists them"}
	}
	return e, err
}

// askRemoval records a request to remove a source of a job.
func (s *Server) askRemoval(c *call) (any, error) {
	job, name, err := s.removalOf(c)
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c.Context())
	if err := s.audited(ctx, "removal_request", name, c.in.Get("note")); err != nil {
		return nil, err
	}
	req, err := removal.Record(ctx, s.store, removal.Request{Job: job, Provider: name, By: whoIn(ctx), From: c.in.Get("from"),
		Note: c.in.Get("note")}, s.now())
	c.head.Set("Location", "/api/v1/docs/removals/"+req.ID)
	return removal.Entry{Request: req}, err
}

var errNotAProvider = known.Refuse("provider: write the id of a provider")

// removalOf is the source that a request names by its kind, and its job. A source of which nothing is known is refused.
func (s *Server) removalOf(c *call) (job, name string, err error) {
	given := c.in.Get
	if c.form {
		for _, name := range []string{"from", "note"} {
			if len([]rune(given(name))) > maxForm {
				return "", "", known.Refuse("%s: write at most %d characters", name, maxForm)
			}
		}
		given = func(kind string) string {
			if kind != cmp.Or(c.in.Get("kind"), "provider") {
				return ""
			}
			return c.in.Get("provider")
		}
	}
	ctx, id := c.Context(), strings.TrimSpace(given("provider"))
	for _, j := range s.jobs {
		if j.Removal == nil || j.Name == docsJob || given(j.Removal.Kind) == "" {
			continue
		}
		if name != "" || id != "" {
			return "", "", known.Refuse("%s: write one name in a request", j.Removal.Kind)
		}
		if name, err = j.Removal.Named(strings.TrimSpace(given(j.Removal.Kind))); err != nil {
			return "", "", &known.AnswerError{Code: http.StatusNotFound, Message: err.Error()}
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
