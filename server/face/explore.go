package face

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

const (
	// maxLooks is how many looks at what was found are under way at a time: one may hold a
	// part of the table in memory.
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
	counts  map[string]keptCounts     // by kind and query
}

// kind is one kind of things that a job finds.
type kind struct {
	explore.Kind
	Job known.Job
}

func newExplorer(jobs known.Jobs, open explore.Opener) *explorer {
	e := &explorer{open: open, slots: make(chan struct{}, maxLooks), sources: map[string]explore.Source{}, counts: map[string]keptCounts{}}
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
		var src explore.Source
		if src, err = e.source(within, k.Job.Name); err == nil {
			err = do(within, src)
		}
	case <-within.Done():
		err = within.Err()
	}
	var refused *explore.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Unknown:
		return known.Answer(http.StatusNotFound, refused.Error())
	case errors.As(err, &refused):
		return known.Refuse("%s", refused.Error())
	case errors.Is(err, explore.ErrNone):
		return known.Answer(http.StatusNotFound, explore.ErrNone.Error())
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return known.Answer(http.StatusServiceUnavailable, fmt.Sprintf("it took over %v; choose more narrowly, or try again later", maxLook))
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
func (f *Face) search(ctx context.Context, k kind, q explore.Query) (list foundList, err error) {
	list = foundList{k.Name, explore.List{Items: []explore.Item{}}}
	err = f.explorer.look(ctx, k, func(ctx context.Context, src explore.Source) error {
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
		f.findRun(k, &list.Items[i])
	}
	return list, err
}

// find returns one item.
func (f *Face) find(ctx context.Context, k kind, q explore.Query) (one found, err error) {
	one = found{Kind: k.Name, Job: k.Job.Name}
	err = f.explorer.look(ctx, k, func(ctx context.Context, src explore.Source) (err error) {
		one.Item, err = k.Show(ctx, src, q)
		return err
	})
	if errors.Is(err, explore.ErrNothingYet) {
		err = known.Answer(http.StatusNotFound, explore.ErrNothingYet.Error())
	}
	if err != nil {
		return one, err
	}
	f.findRun(k, &one.Item)
	if one.Failures != "" {
		one.DeadLetters = "/api/v1/dead-letters?" + deadLettersOf(k, one.Item)
	}
	return one, nil
}

// deadLettersOf is the query that chooses the dead letters of an item.
func deadLettersOf(k kind, item explore.Item) string {
	text := []rune(item.Failures)
	return url.Values{"job": {k.Job.Name}, "text": {string(text[:min(len(text), runs.MaxFilterText)])}}.Encode()
}

// findRun fills in the run that was at work at the item's time: one run of a job works at
// a time.
func (f *Face) findRun(k kind, item *explore.Item) {
	if item.RunID != "" || item.At.IsZero() {
		return
	}
	for _, e := range f.Board.Runs() {
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
		if f.Choices != nil && v != "" && !slices.Contains(f.Choices, v) {
			return nil, known.Refuse("%s: use one of %s", f.Name, strings.Join(f.Choices, ", "))
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

// searchFields are the parameters of a search.
func (k kind) searchFields() []explore.Field {
	return append(slices.Clone(k.Fields), explore.Field{Name: explore.After, About: "next of the page before."})
}

const explorePath = "/api/v1/explore"

// exploreRows are about what the jobs found.
type exploreRows struct{ *Face }

func (f exploreRows) rows() ([]action, []view) {
	names, byName := []string{}, map[string]kind{}
	for _, k := range f.explorer.kinds {
		names, byName[k.Name] = append(names, k.Name), k
	}
	actions := []action{{At: "GET " + explorePath, ID: "listKinds", About: "The kinds of things that can be looked at",
		Out: "200 Kinds The kinds.", Do: func(*call) (any, error) { return map[string][]string{"kinds": names}, nil }}}
	views := []view{{At: "GET /explore", Template: "explore", Section: "explore", Title: "Explore", Still: true,
		Data: func(*call) (any, error) { return f.forms(), nil }}}
	for i, k := range f.explorer.kinds {
		name := strings.ToUpper(k.Name[:1]) + strings.ReplaceAll(k.Name[1:], "-", "")
		actions = append(actions,
			looks(explorePath+"/"+k.Name, "find"+name, k.About, "200 FoundList A page of what was found.", k.searchFields(),
				func(ctx context.Context, q explore.Query) (any, error) { return f.search(ctx, k, q) }),
			looks(explorePath+"/"+k.Name+"/item", "show"+name, "One "+k.One+", with all that is stored of it", "200 Found What is stored of it.",
				k.Keys,
				func(ctx context.Context, q explore.Query) (any, error) { return f.find(ctx, k, q) }))
		if k.Count != nil {
			actions = append(actions, looks(explorePath+"/"+k.Name+"/counts", "count"+name, k.Title+" that a search finds, counted",
				"200 FoundCounts The counts; they may be a minute old.", k.Fields, func(ctx context.Context, q explore.Query) (any, error) {
					c, err := f.counts(ctx, k, q)
					if c == nil {
						c = &explore.Counts{At: f.Now(), Note: explore.ErrNothingYet.Error()}
					}
					return c, err
				}))
		}
		views = append(views, view{At: "GET /explore/" + k.Name, Template: "explore", Section: "explore", Title: k.Title, Still: true,
			Data: func(c *call) (any, error) { return f.searchPage(c, i) },
		}, view{At: "GET /explore/" + k.Name + "/item", Template: "found", Section: "explore", Still: true, Data: func(c *call) (any, error) {
			q, err := readQuery(c.in, k.Keys, false)
			if err != nil {
				return nil, err
			}
			one, err := f.find(c.Context(), k, q)
			c.Title = shown(one.Title)
			return foundPage{kindForm{k, q}, one, byName}, err
		}})
	}
	return grouped("explore", "explore", actions...), views
}

// forms are the forms of all kinds.
func (f exploreRows) forms() (page explorePage) {
	for _, k := range f.explorer.kinds {
		page.Kinds = append(page.Kinds, kindForm{k, nil})
	}
	return page
}

// searchPage is the page of the kind at i. Its form is empty at first.
func (f exploreRows) searchPage(c *call, i int) (any, error) {
	v := f.forms()
	v.Kind = &v.Kinds[i]
	fields := v.Kind.searchFields()
	empty := slices.ContainsFunc(fields, func(f explore.Field) bool { return f.Required }) && len(c.in) == 0
	for j := range fields {
		fields[j].Required = fields[j].Required && !empty
	}
	if v.Kind.Count != nil && !slices.ContainsFunc(fields, func(f explore.Field) bool { return f.Name == explore.MeasureField }) {
		fields = append(fields, explore.Field{Name: explore.MeasureField}) // of the picture alone
	}
	q, err := readQuery(c.in, fields, false)
	v.Kind.Query, v.now = q, f.Now()
	if err != nil || empty {
		return v, err
	}
	list, err := f.search(c.Context(), v.Kind.kind, q)
	if err != nil {
		return v, err
	}
	v.List = &list
	v.Counts, err = f.counts(c.Context(), v.Kind.kind, q)
	if v.Uncounted = err != nil && c.Context().Err() == nil; v.Uncounted {
		f.Log.Warn("list_not_counted", "kind", v.Kind.Name, "error", ledger.Redact(err.Error()))
		return v, nil
	}
	return v, err
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
		switch {
		case f.Day:
			o.Kind, o.Pattern = option.Day, ""
		case f.Choices != nil:
			o.Choices, o.Pattern = f.Choices, ""
		}
		if f.Required {
			a.Needs = append(a.Needs, f.Name)
		}
		a.In = append(a.In, o)
	}
	return a
}

// explorePage is the data of the page that searches what the jobs found.
type explorePage struct {
	Kinds []kindForm
	Kind  *kindForm  // of the list; nil: none was chosen
	List  *foundList // nil: nothing was asked for
	// Counts are of the list; nil: there are none.
	Counts    *explore.Counts
	Uncounted bool // counting failed or took too long
	now       time.Time
}

// First reports whether everything of the kind is listed from its beginning.
func (p explorePage) First() bool { return len(p.Kind.Query) == 0 }

// kindForm is a kind with the values of its form.
type kindForm struct {
	kind
	Query explore.Query
}

// foundPage is the data of the page of one item.
type foundPage struct {
	kindForm
	Item  found
	Kinds map[string]kind
}

// Next is the address of the next page of a list.
func (k kindForm) Next(after string) string {
	q := queryOf(k.Query)
	q.Set(explore.After, after)
	return "/explore/" + k.Name + "?" + q.Encode()
}

// Asked is the value of a field of its form.
func (k kindForm) Asked(name string) string { return k.Query[name] }

func queryOf(q explore.Query) url.Values {
	v := url.Values{}
	for name, value := range q {
		v.Set(name, value)
	}
	return v
}

// URL is the page of an item of the kind.
func (k kind) URL(item explore.Item) string {
	return "/explore/" + k.Name + "/item?" + queryOf(item.Key).Encode()
}

// Doc is the meaning of a column.
func (k kind) Doc(items []explore.Item, column string) string {
	if len(items) == 0 {
		return ""
	}
	return items[0].Record.Column(column).Doc
}

// DeadLettersURL is the page of dead letters with those of the item.
func (p foundPage) DeadLettersURL() string {
	if p.Item.Failures == "" {
		return ""
	}
	return "/dead-letters?" + deadLettersOf(p.kind, p.Item.Item)
}

// shown is a text from strangers as a person may see it: characters that are invisible or
// turn the order of a line around are escaped.
func shown(text string) string {
	var b strings.Builder
	_, _ = printable.Writer(&b).Write([]byte(strings.ToValidUTF8(text, "\uFFFD"))) // a strings.Builder never fails
	return b.String()
}

// maxCell is how many letters of a value a table shows.
const maxCell = 200

// cellText is a value in a table.
func cellText(c explore.Cell) string {
	return known.Cut(strings.Join(strings.Fields(valueOf(c).Text), " "), maxCell)
}

// value is a value of a record as a page shows it.
type value struct {
	Text   string
	At     time.Time
	Link   string // of an address at the site
	Lines  []string
	Block  bool // it is long, and has lines of its own
	Number bool
}

func valueOf(c explore.Cell) value {
	switch x := c.Value.(type) {
	case nil:
		return value{Text: "–"}
	case string:
		v := value{Text: shown(x)}
		if c.Name == "url" || strings.HasSuffix(c.Name, "_url") {
			v.Link = webAddress(x)
		}
		v.Block = strings.Contains(x, "\n")
		if x == "" {
			v.Text = "–"
		}
		return v
	case bool:
		return value{Text: map[bool]string{true: "yes", false: "no"}[x]}
	case time.Time:
		if x.IsZero() {
			return value{Text: "–"}
		}
		return value{At: x}
	case []string:
		if len(x) == 0 {
			return value{Text: "–"}
		}
		v := value{Text: shown(strings.Join(x, ", "))}
		for _, line := range x {
			v.Lines = append(v.Lines, shown(line))
		}
		return v
	case json.Marshaler:
		b, err := x.MarshalJSON()
		var indented bytes.Buffer
		if err == nil {
			err = json.Indent(&indented, b, "", "  ")
		}
		if err != nil {
			return value{Text: "it is not JSON"}
		}
		return value{Text: shown(indented.String()), Block: indented.Len() > maxCell}
	}
	return value{Text: fmt.Sprint(c.Value), Number: true}
}

// webAddress is an address that a page may link to, "" for any other text.
func webAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return ""
	}
	return u.String()
}

// Web is the item's page at its site.
func (f found) Web() string { return webAddress(f.URL) }
