package face

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// providerRow is a provider in the API.
type providerRow struct {
	ID        string          `json:"id"`
	Source    string          `json:"source"`
	Disabled  bool            `json:"disabled"`
	Off       string          `json:"off,omitempty"` // why it is not crawled whatever its policy says
	Version   int             `json:"version"`
	ChangedAt *time.Time      `json:"changed_at"`
	ChangedBy string          `json:"changed_by,omitempty"`
	Policy    json.RawMessage `json:"policy"`
}

// providerVersion is a version of what was kept of a provider.
type providerVersion struct {
	Version  int       `json:"version"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Action   string    `json:"action"`
	Text     string    `json:"text,omitempty"`
	Disabled bool      `json:"disabled"`
	Why      string    `json:"why,omitempty"`

	Differences []string `json:"-"` // from the version before
}

// oneProvider is a provider with its versions.
type oneProvider struct {
	providerRow
	Versions []providerVersion `json:"versions"`
}

func (v providerView) row() providerRow {
	r := providerRow{ID: v.ID, Source: string(v.Origin), Disabled: v.Change.Disabled, Off: v.Off, Version: v.Version.Number, ChangedBy: v.Version.Who,
		Policy: v.Fields}
	if v.Version.Number > 0 {
		r.ChangedAt = &v.Version.At
	}
	return r
}

// providersPage is the data of the page of providers.
type providersPage struct {
	policyfile.Words
	Providers []providerView
	Removed   []string // ids of those that were added here and removed
	Form      policyForm
	Fixed     bool // policies are changed in files only
	Kinds     []*policyFiles
}

// policyForm is a form for a policy's text, with what is wrong with it.
type policyForm struct {
	ID      string // "" for a new provider
	Version int    // that was read
	Text    string
	Faults  policyFaults
	Refused string // why nothing was changed or tried, though the text is a policy; "": it was not
	Page    string // that is tried
	Tried   string // what the trial printed; "": there was none
}

// Open reports whether the form answers what was sent.
func (f policyForm) Open() bool { return len(f.Faults) > 0 || f.Refused+f.Tried != "" }

// Rows is how many lines the form shows.
func (f policyForm) Rows() int { return min(max(strings.Count(f.Text, "\n")+2, 12), 40) }

// providerPage is the data of the page of one provider.
type providerPage struct {
	policyfile.Words
	providerView
	Form     policyForm
	Versions []providerVersion
	Crawl    *lastCrawl
	Removals []removal.Entry
}

// lastCrawl is what the newest report says of a provider.
type lastCrawl struct {
	RunID      string `json:"-"`
	Provider   string `json:"provider"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	TotalPages int64  `json:"total_pages"`
}

func (p *policyFiles) rows() ([]action, []view) {
	all, form := p.API(), p.path()+"/{id}"
	one := all + "/{id}"
	const now, none, fails = "200 OneSource What it is now.", "404 NoSource", "404 NoSource, 409 Conflict, 412 Changed"
	name := policyfile.Title(p.One)
	why := option.Option{Name: "why", Kind: option.Text}
	reason := []option.Option{*why.Range(0, maxWhy)}
	able := func(verb, about string, do func(c *call, id string, read int) error) action {
		return action{At: "POST " + one + "/" + verb, ID: verb + name, About: about + p.One, Out: now, Fails: fails, Match: true,
			Body: "DisableRequest", In: reason, Example: `{"why": "they asked us to stop"}`, Answer: p.one, Form: form + "/" + verb, Next: form, Do: p.changes(do)}
	}
	actions := []action{
		{At: "GET " + all, ID: "list" + policyfile.Title(p.Many),
			About: policyfile.Title(p.Many) + " with their policies", Out: "200 " + policyfile.Title(p.Many) + " By id.", Do: p.list},
		{At: "GET " + one, ID: "show" + name, About: "A " + p.One + " with the versions of what was kept of it", Out: "200 OneSource It.", Fails: none,
			Do: p.one},
		{At: "PUT " + one, ID: "define" + name, About: "Add a " + p.One + ", or change its policy", Out: now, Fails: "409 Conflict, 412 Changed, 428 Unread",
			Match: true, Body: p.Schema, Needs: p.Needs, Raw: true, Do: p.put, Answer: p.one, Example: p.Example},
		{At: "DELETE " + one, ID: "remove" + name, About: "Remove a " + p.One + " that was added, or go back to the policy of its file",
			Out: "200 OneSource|Status That of the file, or that it is removed.", Fails: fails, Match: true, Answer: p.removed,
			Form: form + "/remove", Next: form, Confirm: p.confirmRemove,
			Do: p.changes(func(c *call, id string, read int) error { return p.remove(c.Context(), id, read) })},
		able("disable", "Do not crawl a ", func(c *call, id string, read int) error {
			return p.disable(c.Context(), id, c.in.Get("why"), true, read)
		}),
		able("enable", "Crawl again a disabled ", func(c *call, id string, read int) error { return p.disable(c.Context(), id, "", false, read) }),
	}
	text := option.Option{Name: "policy", Kind: option.Text, Usage: "The policy as YAML; without it, the one that counts now."}
	tries := option.Option{Name: "url", Kind: option.Text, Usage: "The page."}
	actions = append(actions, action{At: "POST " + one + "/try", ID: "try" + name, Out: "200 Trial What would be read.",
		About: "Read a page by the policy of a " + p.One + ", as robots.txt allows, and save nothing", Fails: none + ", 409 Conflict",
		Body: "TryRequest", In: []option.Option{tries, text}, Needs: []string{"url"}, Example: `{"url": "https://docs.acme.example/guide"}`, Do: p.try})
	if p.Job == docsJob {
		actions = append(actions, action{At: "POST " + one + "/unblock", ID: "unblockProvider", About: "Request pages again that answered 403", Out: now,
			Fails: none + ", 409 Conflict",
			Body:  "UnblockRequest", In: []option.Option{blockedPage}, Example: `{"url": "https://docs.acme.example/guide"}`, Do: p.unblock,
			Answer: p.one})
	}
	for _, at := range []string{p.path(), form} {
		actions = append(actions, action{Form: at, Do: p.sent, Redo: p.sentAgain})
	}
	return grouped(p.Many, "providers", actions...), []view{p.listPage(nil), p.page(nil)}
}

func (p *policyFiles) list(c *call) (any, error) {
	now, err := p.all(c.Context())
	list := []providerRow{}
	for _, v := range now.views {
		list = append(list, v.row())
	}
	return map[string]any{p.Many: list}, err
}

// one answers with the provider as it is now.
func (p *policyFiles) one(c *call) (any, error) {
	v, err := p.named(c.Context(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	one := oneProvider{providerRow: v.row()}
	one.Versions, err = p.versions(c.Context(), v.ID)
	c.head.Set("ETag", strconv.Quote(strconv.Itoa(v.Version.Number)))
	return one, err
}

func isMissing(err error) bool {
	var told *known.AnswerError
	return errors.As(err, &told) && told.Code == http.StatusNotFound
}

// removed answers with the provider of the file, or that there is none any more.
func (p *policyFiles) removed(c *call) (any, error) {
	v, err := p.one(c)
	if isMissing(err) {
		return status{"removed"}, nil
	}
	return v, err
}

func (p *policyFiles) versions(ctx context.Context, id string) ([]providerVersion, error) {
	history, err := p.shelf.History(ctx, id, historyShown)
	out := []providerVersion{}
	for _, v := range history {
		var c policyfile.Change
		err := json.Unmarshal(v.Body, &c)
		if err != nil {
			return nil, err
		}
		out = append(out, providerVersion{v.Number, v.At, v.Who, v.Action, c.Text, c.Disabled, c.Why, nil})
	}
	return out, err
}

// versionRead is the version that the sender has read, by If-Match or If-None-Match. The form for a new provider shows none: it may be one
// that was removed, whose versions continue.
func (c *call) versionRead() int {
	match := c.Header.Get("If-Match")
	switch {
	case c.form:
		match = c.in.Get("version")
	case match == "" && c.Header.Get("If-None-Match") == "*":
		return 0
	}
	if match == "" || match == "*" && !c.form { // any version, as RFC 9110 has it
		return unread
	}
	n, err := strconv.Atoi(strings.Trim(match, `"`))
	if err != nil || n < 0 {
		return noVersion
	}
	return n
}

// put takes a policy as JSON, with the fields of a file.
func (p *policyFiles) put(c *call) (any, error) {
	text, err := p.Text(c.body)
	if err != nil {
		return nil, known.Refuse("the body is not a policy; write the policy as JSON, such as %s", p.Example)
	}
	err = p.define(c.Context(), c.PathValue("id"), text, c.versionRead())
	var faults policyFaults
	if errors.As(err, &faults) {
		err = known.Refuse("%s", faults.byField(text))
	}
	return nil, err
}

// changes is a request that changes a provider and has at most a reason.
func (p *policyFiles) changes(change func(c *call, id string, read int) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if utf8.RuneCountInString(c.in.Get("why")) > maxWhy {
			return nil, known.Refuse("why: write at most %d characters", maxWhy)
		}
		id := c.PathValue("id")
		err := change(c, id, c.versionRead())
		if c.form && err == nil {
			if _, gone := p.named(c.Context(), id); gone != nil {
				c.next = p.path()
			}
		}
		return nil, err
	}
}

var blockedPage = option.Option{Name: "url", Kind: option.Text, Usage: "A page; without it, all pages of the provider.",
	Pattern: `(https?://[^\x00-\x20\x7f]+)?`, Wrong: "write the URL of a page, or leave it out for all pages of the provider"}

// unblock lets runs request pages of a provider again that answered 403: one, or all.
func (p *policyFiles) unblock(c *call) (any, error) {
	id, page := c.PathValue("id"), c.in.Get("url")
	if err := blockedPage.Check(page); err != nil {
		return nil, known.Refuse("url: %s", err)
	}
	_, err := p.named(c.Context(), id)
	if err == nil {
		err = p.Guard.Note(c.Context(), "provider_unblock", id, page)
	}
	if err == nil {
		err = runs.RunCommand(c.Context(), p.Runner.Command("docs", "unblock", id, page))
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 2 {
		err = known.Conflict("no such page is blocked by a 403")
	}
	return nil, err
}

// listPage is the page of all providers. form replaces the form for a new one.
func (p *policyFiles) listPage(form *policyForm) view {
	return view{At: "GET " + p.path(), Template: "providers", Section: "providers", Title: policyfile.Title(p.Many), Still: form != nil,
		Data: func(c *call) (any, error) {
			now, err := p.all(c.Context())
			page := providersPage{p.Words, now.views, slices.Sorted(maps.Keys(now.removed)), policyForm{Text: p.Blank}, now.fixed, p.providers}
			if form != nil {
				page.Form = *form
			}
			return page, err
		}}
}

// page is that of one provider. form replaces the form that shows its policy.
func (p *policyFiles) page(form *policyForm) view {
	return view{At: "GET " + p.path() + "/{id}", Template: "provider", Section: "providers", Still: form != nil, Data: func(c *call) (any, error) {
		id := c.PathValue("id")
		one, err := p.named(c.Context(), id)
		if err != nil {
			return nil, err
		}
		c.Title = policyfile.Title(p.One) + " " + id
		page := providerPage{Words: p.Words, providerView: one, Crawl: p.lastCrawl(id)}
		if page.Form.Text, err = p.text(one); err == nil {
			page.Versions, err = p.compared(c.Context(), one)
		}
		if err == nil {
			page.Removals, err = removal.All(c.Context(), p.Store)
		}
		page.Removals = slices.DeleteFunc(page.Removals, func(e removal.Entry) bool { return e.Provider != id || cmp.Or(e.Job, docsJob) != p.Job })
		page.Form.ID, page.Form.Version = id, one.Version.Number
		if form != nil {
			page.Form = *form
		}
		return page, err
	}}
}

// text is the policy as the text of a file.
func (p *policyFiles) text(v providerView) (string, error) {
	if v.Text != "" || v.Fields == nil {
		return v.Text, nil
	}
	return p.Text(v.Fields)
}

// compared are the versions of a provider, each with its differences from the one
// before.
func (p *policyFiles) compared(ctx context.Context, v providerView) ([]providerVersion, error) {
	versions, err := p.versions(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	of := func(text string) json.RawMessage {
		if def, faults := p.read(text); text != "" && faults == nil {
			return def.Fields
		}
		return v.InFile
	}
	for i, one := range versions {
		before, all := providerVersion{}, one.Version == 1
		if i+1 < len(versions) {
			before, all = versions[i+1], true
		}
		if all && one.Text != before.Text {
			versions[i].Differences = differences(of(before.Text), of(one.Text))
		}
	}
	return versions, nil
}

// lastCrawl is what the newest report with a provider says of it, nil if none has it.
func (p *policyFiles) lastCrawl(id string) *lastCrawl {
	for _, e := range p.Board.Runs() {
		if e.Run.Job != p.Job || !e.Run.State.Over() {
			continue
		}
		for _, row := range ledger.Rows[lastCrawl](e.Report) {
			if row.Provider == id {
				row.RunID = e.Run.RunID
				return &row
			}
		}
	}
	return nil
}

// formOf is the form with what was written.
func (p *policyFiles) formOf(c *call) *policyForm {
	return &policyForm{ID: c.PathValue("id"), Text: strings.ReplaceAll(c.in.Get("policy"), "\r\n", "\n"),
		Version: c.versionRead(), Page: strings.TrimSpace(c.in.Get("page"))}
}

// tried is what a trial printed, for the form that asked for it.
type tried string

func (t tried) Error() string { return string(t) }

// sent adds a policy or changes it, or tries it.
func (p *policyFiles) sent(c *call) (any, error) {
	form := p.formOf(c)
	id := form.ID
	def, faults := p.read(form.Text)
	if c.in.Has("try") {
		if faults != nil {
			return nil, faults
		}
		out, err := p.trial(c.Context(), def, form.Text, form.Page)
		if err == nil {
			err = tried(out)
		}
		return nil, err
	}
	if faults == nil && id == "" {
		id = def.ID
		if _, err := p.named(c.Context(), id); err == nil {
			return nil, known.Refuse("%s: there is a %s %s already; write another, or change that one", p.Key, p.One, id)
		}
	}
	c.next = p.path() + "/" + id
	return nil, p.define(c.Context(), id, form.Text, form.Version)
}

// sentAgain is the form of a text with faults, or of a trial, and what was written stays: no event loads the page again.
func (p *policyFiles) sentAgain(c *call, err error) (page view, code int) {
	form := p.formOf(c)
	var out tried
	var told *known.AnswerError
	switch {
	case errors.As(err, &out):
		code, form.Tried = http.StatusOK, string(out)
	case errors.As(err, &form.Faults):
		code = http.StatusBadRequest
	case errors.As(err, &told):
		code, form.Refused = told.Code, known.Safe(told.Message)
	}
	if form.ID == "" {
		return p.listPage(form), code
	}
	return p.page(form), code
}

// confirmRemove asks before a provider, or what was changed of it, is removed.
func (p *policyFiles) confirmRemove(c *call) (any, error) {
	v, err := p.named(c.Context(), c.PathValue("id"))
	if err == nil && !v.Changed() {
		err = p.errInFile()
	}
	id := v.ID
	ask := confirmation{Title: "Remove " + p.One + " " + id + "?", Button: "Remove the " + p.One, Danger: true, Back: p.path() + "/" + id,
		Text: "It is not crawled any more. Its versions stay, and so does what was crawled of it.", Hidden: []hidden{{"version", strconv.Itoa(v.Version.Number)}}}
	if v.File() {
		ask.Title, ask.Button = "Back to the file’s "+id+"?", "Use the file’s policy"
		ask.Text = "What was changed here, and that it is disabled, is dropped. Its versions stay."
	}
	return ask, err
}

const (
	maxTrial  = 64 << 10 // bytes of what a trial prints
	maxTrying = 40 * time.Second
)

// trial reads a page by a policy's text, with a process of its own, and saves nothing. It returns what the process printed.
func (p *policyFiles) trial(ctx context.Context, by policyfile.Shown, text, page string) (out string, err error) {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" || u.User != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || utf8.RuneCountInString(page) > maxParameter {
		return "", known.Refuse("url: write the URL of a page, such as https://docs.acme.example/guide")
	}
	if err := p.web.Check(page); err != nil {
		return "", known.Refuse("url: %s", err)
	}
	if own, err := url.Parse(by.Addresses[0].URL); err == nil && web.Site(own) != web.Site(u) {
		return "", known.Refuse("url: it is on %s, and the %s %s is on %s; write the URL of a page there", web.Site(u), p.One, by.ID, web.Site(own))
	}
	if !p.trying.TryLock() {
		return "", known.Conflict("another trial is under way; try again in a moment")
	}
	defer p.trying.Unlock()
	if err := p.Guard.Note(ctx, p.One+"_try", by.ID, page); err != nil {
		return "", err
	}
	dir, remove, err := scratch.Dir("seed-engine-try-")
	if err != nil {
		return "", fmt.Errorf("making a folder for a trial: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	file := filepath.Join(dir, "tried.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, maxTrying)
	defer cancel()
	put := strings.NewReplacer("{dir}", dir, "{file}", file, "{page}", page)
	var args []string
	for _, arg := range p.Try {
		args = append(args, put.Replace(arg))
	}
	cmd := p.Runner.Command(args...)
	printed, said := &bounded{left: maxTrial}, &bounded{left: maxTrial}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = printed, said, time.Second
	err = runs.RunCommand(within, cmd)
	var ended *exec.ExitError
	switch {
	case within.Err() != nil && ctx.Err() == nil:
		_, _ = fmt.Fprintf(said, "The trial took over %v, and was ended.\n", maxTrying)
		err = nil
	case errors.As(err, &ended):
		err = nil // what it said tells why
	}
	return untrusted.Text(ledger.Redact(printed.String()+said.String()), maxTrial), err
}

// try reads a page by the policy that is sent, or by the one that counts.
func (p *policyFiles) try(c *call) (any, error) {
	id, text := c.PathValue("id"), c.in.Get("policy")
	if text == "" {
		v, err := p.named(c.Context(), id)
		if err == nil {
			text, err = p.text(v)
		}
		switch {
		case err != nil:
			return nil, err
		case text == "":
			return nil, known.Conflict("the %s %s has no policy to try: %s", p.One, id, v.Locked)
		}
	}
	def, faults := p.read(text)
	if faults != nil {
		return nil, known.Refuse("policy: %s", faults)
	}
	printed, err := p.trial(c.Context(), def, text, c.in.Get("url"))
	return map[string]string{"printed": printed}, err
}

// bounded keeps the beginning of what is written.
type bounded struct {
	strings.Builder
	left int
}

func (b *bounded) Write(text []byte) (int, error) {
	n := min(len(text), b.left)
	b.left -= n
	b.Builder.Write(text[:n])
	return len(text), nil
}
