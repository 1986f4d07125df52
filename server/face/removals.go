package face

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

const (
	docsJob = "docs"
	// similarShown is how many similar ids the refusal of a misspelt one names.
	similarShown = 5
	// maxForm is the maximum size of a text of the form for removals, in characters.
	maxForm = 500
)

// removalsPage is the data of the page of requests to remove a source.
type removalsPage struct {
	All      []removal.Entry
	Kind     string // of the form, with Provider
	Provider string
	Kinds    []string // of sources of other jobs than docs
}

// removalRows are about requests to remove what was kept of a source.
type removalRows struct{ *Face }

func (f removalRows) rows() ([]action, []view) {
	const all = "/api/v1/docs/removals"
	var fields []option.Option
	for _, name := range []string{"provider", "site", "publisher", "domain", "from", "note"} {
		fields = append(fields, option.Option{Name: name, Kind: option.Text})
	}
	actions := grouped("removals", "providers",
		action{At: "GET " + all, ID: "listRemovals", Out: "200 Removals The requests.",
			About: "The requests to remove what was kept of a provider, site, publisher or domain, the newest first",
			Do: func(c *call) (any, error) {
				all, err := removal.All(c.Context(), f.Store)
				return map[string]any{"removals": append([]removal.Entry{}, all...)}, err
			}},
		action{At: "POST " + all, ID: "askRemoval", Out: "201 Removal The request.", Fails: "404 NoSource",
			About: "Record a request to remove what was kept of a provider, site, publisher or domain; it must be done within 48 hours",
			Body:  "RemovalRequest", In: fields, Must: true, Example: `{"provider": "acme", "from": "legal@acme.example", "note": "ticket 7"}`,
			Do: f.ask, Form: "/removals", Next: "/removals"},
		action{At: "GET " + all + "/{id}", ID: "showRemoval", About: "A request with its receipt", Out: "200 Removal The request.",
			Fails: "404 NoRemoval", Do: func(c *call) (any, error) {
				e, err := removal.Find(c.Context(), f.Store, c.PathValue("id"))
				if errors.Is(err, removal.ErrNone) {
					err = known.Answer(http.StatusNotFound, "there is no such request; GET /api/v1/docs/removals lists them")
				}
				return e, err
			}},
	)
	return actions, []view{{At: "GET /removals", Template: "removals", Section: "providers", Title: "Removals", Data: f.page},
		asks("GET /removals/ask", "providers", f.confirm)}
}

func (f removalRows) page(c *call) (any, error) {
	page := removalsPage{Kind: c.in.Get("kind"), Provider: c.in.Get("provider")}
	for _, j := range f.Jobs {
		if j.Removal == nil {
			continue
		}
		if page.Provider != "" && j.Removal.Kind == cmp.Or(page.Kind, "provider") {
			if _, err := j.Removal.Named(page.Provider); err != nil {
				return nil, known.Refuse("%s", err)
			}
		}
		if j.Name != docsJob {
			page.Kinds = append(page.Kinds, j.Removal.Kind)
		}
	}
	var err error
	page.All, err = removal.All(c.Context(), f.Store)
	return page, err
}

// confirm asks before a request to remove a source is recorded: minutes later
// everything of it is gone.
func (f removalRows) confirm(c *call) (any, error) {
	job, id, err := f.source(c)
	text := "Its pages, chunks, hand-off and dead letters are removed within minutes, and it is not crawled again. This cannot be undone."
	if job != docsJob {
		text = "Everything that is kept of it is removed within minutes. This cannot be undone. " +
			"Take it out of what is crawled, or the next run finds it again."
	}
	return confirmation{Title: "Remove everything of " + id + "?", Button: "Remove everything", Danger: true, Action: "/removals",
		Back: "/removals", Text: text, Hidden: []hidden{{"kind", c.in.Get("kind")}, {"provider", id}, {"from", c.in.Get("from")},
			{"note", c.in.Get("note")}}}, err
}

// ask records a request to remove a source of a job.
func (f removalRows) ask(c *call) (any, error) {
	job, name, err := f.source(c)
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c.Context())
	if err := f.Guard.Note(ctx, "removal_request", name, c.in.Get("note")); err != nil {
		return nil, err
	}
	req, err := removal.Record(ctx, f.Store, removal.Request{Job: job, Provider: name, By: people.Who(ctx), From: c.in.Get("from"),
		Note: c.in.Get("note")}, f.Now())
	c.head.Set("Location", "/api/v1/docs/removals/"+req.ID)
	return removal.Entry{Request: req}, err
}

// source is the source that a request names by its kind, and its job. A source of which nothing is known is refused.
func (f removalRows) source(c *call) (job, name string, err error) {
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
	var of known.Job
	for _, j := range f.Jobs {
		if j.Removal == nil || given(j.Removal.Kind) == "" {
			continue
		}
		if name != "" {
			return "", "", known.Refuse("%s: write one name in a request", j.Removal.Kind)
		}
		of, name = j, strings.TrimSpace(given(j.Removal.Kind))
	}
	if of.Removal == nil {
		return "", "", known.Refuse("provider: write the id of a provider")
	}
	if name, err = of.Removal.Named(name); err != nil { // a name that none can have
		return "", "", known.Answer(http.StatusNotFound, err.Error())
	}
	return of.Name, name, f.knows(c.Context(), of, name)
}

// knows refuses a source that nobody knows: it has no policy, people keep nothing of it, and its job neither. Where the store or
// the database does not answer, the request is taken: one too many removes nothing.
func (f removalRows) knows(ctx context.Context, j known.Job, name string) error {
	var ids, stored []string
	for _, p := range f.providers {
		if p.Job != j.Name {
			continue
		}
		now, err := p.all(ctx)
		if err != nil {
			return err
		}
		ids = slices.Collect(maps.Keys(now.removed))
		for _, v := range now.views {
			ids = append(ids, v.ID)
		}
	}
	if slices.Contains(ids, name) {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	var kept removal.Removed
	src, err := f.explorer.source(within, j.Name)
	if err == nil {
		kept, err = j.Removal.Find(within, removal.Source{Name: name, Store: src.Store, DB: src.DB})
	}
	if err == nil && kept.Total() == 0 {
		stored, err = j.Removal.Known(within, src.DB)
	}
	switch {
	case errors.Is(err, explore.ErrNothingYet), err == nil && kept.Total() == 0 && !slices.Contains(stored, name):
		text := fmt.Sprintf("%s: nothing is stored of %s", j.Removal.Kind, name)
		if ids = append(ids, stored...); len(ids) > 0 {
			text += "; similar ones are " + strings.Join(similar.Names(name, ids, similarShown), ", ")
		}
		return known.Answer(http.StatusNotFound, text)
	case err != nil:
		f.Log.Warn("removal_not_checked", "provider", name, "error", ledger.Redact(err.Error()))
	}
	return nil
}
