package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

const (
	// maxLooks is how many looks at what was found are under way at a time: one may hold a
	// segment of packed results in memory.
	maxLooks = 4
	maxLook  = 30 * time.Second
)

// explorer shows what the jobs found.
type explorer struct {
	kinds []kind
	open  explore.Opener
	slots chan struct{}

	mu      sync.Mutex
	sources map[string]explore.Source // by job
}

// kind is one kind of things that a job finds.
type kind struct {
	explore.Kind
	Job known.Job
}

func newExplorer(jobs known.Jobs, open explore.Opener) *explorer {
	e := &explorer{open: open, slots: make(chan struct{}, maxLooks), sources: map[string]explore.Source{}}
	for _, j := range jobs {
		for _, k := range j.Finds {
			e.kinds = append(e.kinds, kind{k, j})
		}
	}
	return e
}

// source opens where a job keeps what it found. It stays open.
func (e *explorer) source(ctx context.Context, job string) (explore.Source, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if src, ok := e.sources[job]; ok {
		return src, nil
	}
	src, err := e.open(ctx, job)
	if err == nil {
		e.sources[job] = src
	}
	return src, err
}

// close closes the databases.
func (e *explorer) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	for _, src := range e.sources {
		if src.DB != nil {
			err = errors.Join(err, src.DB.Close())
		}
	}
	clear(e.sources)
	return err
}

// look calls do with the source of a kind when a slot is free.
func (e *explorer) look(ctx context.Context, k kind, do func(context.Context, explore.Source) error) error {
	within, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	var err error
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
		err = e.lookNow(within, k, do)
	case <-within.Done():
		err = within.Err()
	}
	var refused *explore.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Unknown:
		return &known.AnswerError{Code: http.StatusNotFound, Message: refused.Error()}
	case errors.As(err, &refused):
		return known.Refuse("%s", refused.Error())
	case errors.Is(err, explore.ErrNone):
		return &known.AnswerError{Code: http.StatusNotFound, Message: explore.ErrNone.Error()}
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return &known.AnswerError{Code: http.StatusServiceUnavailable,
			Message: fmt.Sprintf("it took over %v; choose more narrowly, or try again later", maxLook)}
	}
	return err
}

func (e *explorer) lookNow(ctx context.Context, k kind, do func(context.Context, explore.Source) error) error {
	src, err := e.source(ctx, k.Job.Name)
	if err == nil {
		err = do(ctx, src)
	}
	return err
}

// found is an item as the API shows it.
type found struct {
	Kind string `json:"kind"`
	Job  string `json:"job"`
	explore.Item
	DeadLetters string `json:"dead_letters,omitempty"`
}

// foundList is a page of items as the API shows it.
type foundList struct {
	Kind string `json:"kind"`
	explore.List
}

// search returns a page of items that a query chooses.
func (s *Server) search(ctx context.Context, k kind, q explore.Query) (list foundList, err error) {
	list = foundList{k.Name, explore.List{Items: []explore.Item{}}}
	err = s.explorer.look(ctx, k, func(ctx context.Context, src explore.Source) error {
		got, err := k.Search(ctx, src, q)
		if err == nil {
			list.Items, list.Next, list.Note = append(list.Items, got.Items...), got.Next, got.Note
		}
		return err
	})
	if errors.Is(err, explore.ErrNothingYet) {
		list.Note, err = explore.ErrNothingYet.Error(), nil
	}
	for i := range list.Items {
		s.findRun(k, &list.Items[i])
	}
	return list, err
}

// find returns one item.
func (s *Server) find(ctx context.Context, k kind, q explore.Query) (f found, err error) {
	f = found{Kind: k.Name, Job: k.Job.Name}
	err = s.explorer.look(ctx, k, func(ctx context.Context, src explore.Source) (err error) {
		f.Item, err = k.Show(ctx, src, q)
		return err
	})
	if errors.Is(err, explore.ErrNothingYet) {
		err = &known.AnswerError{Code: http.StatusNotFound, Message: explore.ErrNothingYet.Error()}
	}
	if err != nil {
		return f, err
	}
	s.findRun(k, &f.Item)
	if f.Failures != "" {
		f.DeadLetters = "/api/v1/dead-letters?" + deadLettersOf(k, f.Item)
	}
	return f, nil
}

// deadLettersOf is the query that chooses the dead letters of an item.
func deadLettersOf(k kind, item explore.Item) string {
	text := []rune(item.Failures)
	return url.Values{"job": {k.Job.Name}, "text": {string(text[:min(len(text), runs.MaxFilterText)])}}.Encode()
}

// findRun fills in the run that was at work at the item's time: one run of a job works at
// a time.
func (s *Server) findRun(k kind, item *explore.Item) {
	if item.RunID != "" || item.At.IsZero() {
		return
	}
	for _, e := range s.board.Runs() {
		if e.Run.Job == k.Job.Name && e.Run.WorkedAt(item.At) {
			item.RunID = e.Run.RunID
			return
		}
	}
}

// readQuery reads the parameters of a request. strict refuses what means nothing, which a
// program sends by mistake and a form always.
func readQuery(given url.Values, fields []explore.Field, strict bool) (explore.Query, error) {
	q := explore.Query{}
	for name := range given {
		if strict && !slices.ContainsFunc(fields, func(f explore.Field) bool { return f.Name == name }) {
			return nil, known.Refuse("unknown parameter %q", known.Clip(known.Safe(name)))
		}
	}
	for _, f := range fields {
		v := strings.TrimSpace(given.Get(f.Name))
		if strict && given.Has(f.Name) && v == "" {
			return nil, known.Refuse("%s: it is empty; leave it out", f.Name)
		}
		if utf8.RuneCountInString(v) > maxParameter {
			return nil, known.Refuse("%s: it has over %d characters", f.Name, maxParameter)
		}
		if !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
			return nil, known.Refuse("%s: %s", f.Name, untrusted.ErrUnclean)
		}
		if _, err := time.Parse(time.DateOnly, v); f.Day && v != "" && err != nil {
			return nil, known.Refuse("%s: that is no day; write YYYY-MM-DD", f.Name)
		}
		if f.Required && v == "" {
			return nil, known.Refuse("%s: it is missing", f.Name)
		}
		if v != "" {
			q[f.Name] = v
		}
	}
	return q, nil
}

// maxParameter is the maximum length of a parameter, in characters: as long as an address
// that is stored.
const maxParameter = untrusted.MaxKey

// parameter is what readQuery accepts: no control characters, and more than white space. The
// description names no maximum length, because a header of 16 KiB may end a request before it.
const parameter = "[^\x00-\x1f\x7f-\u009f]*[^\\s\x00-\x1f\x7f-\u009f][^\x00-\x1f\x7f-\u009f]*"

// searchFields are the parameters of a search, itemFields those of one item.
func (k kind) searchFields() []explore.Field {
	return append(slices.Clone(k.Fields), explore.Field{Name: explore.After, About: "next of the page before."})
}

func (k kind) itemFields() []explore.Field { return slices.Concat(k.Keys, k.Asks) }

const explorePath = "/api/v1/explore"

// exploreActions are what can be asked about what the jobs found.
func (s *Server) exploreActions() []action {
	names := []string{}
	rows := []action{{At: "GET " + explorePath, ID: "listKinds", About: "The kinds of things that can be looked at",
		Out: "200 Kinds The kinds.",
		Do:  func(*call) (any, error) { return map[string][]string{"kinds": names}, nil }}}
	for _, k := range s.explorer.kinds {
		names = append(names, k.Name)
		name := strings.ToUpper(k.Name[:1]) + strings.ReplaceAll(k.Name[1:], "-", "")
		rows = append(rows,
			looks(explorePath+"/"+k.Name, "find"+name, k.About, "200 FoundList A page of what was found.", k.searchFields(),
				func(ctx context.Context, q explore.Query) (any, error) { return s.search(ctx, k, q) }),
			looks(explorePath+"/"+k.Name+"/item", "show"+name, "One "+k.One+", with all that is stored of it", "200 Found What is stored of it.",
				k.itemFields(),
				func(ctx context.Context, q explore.Query) (any, error) { return s.find(ctx, k, q) }))
	}
	return grouped("explore", "explore", rows...)
}

// looks is a request for things that were found.
func looks(path, id, about, out string, fields []explore.Field, do func(context.Context, explore.Query) (any, error)) action {
	a := action{At: "GET " + path, ID: id, About: about, Raw: true, Out: out, Fails: "404 NotFound", Do: func(c *call) (any, error) {
		q, err := readQuery(c.in, fields, true)
		if err != nil {
			return nil, err
		}
		return do(c.Context(), q)
	}}
	for _, f := range fields {
		o := option.Option{Name: f.Name, Kind: option.Text, Usage: cmp.Or(f.About, f.Label), Pattern: parameter}
		if f.Day {
			o.Kind, o.Pattern = option.Day, ""
		}
		if f.Required {
			a.Needs = append(a.Needs, f.Name)
		}
		a.In = append(a.In, o)
	}
	return a
}
