package face

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
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
	r := providerRow{ID: v.ID, Source: v.Origin, Disabled: v.Change.Disabled, Off: v.Off, Version: v.Version.Number, ChangedBy: v.Version.Who,
		Policy: v.Policy}
	if v.Version.Number > 0 {
		r.ChangedAt = &v.Version.At
	}
	return r
}

// newPolicy is what the form for a new provider shows.
const newPolicy = `provider_id:
name:
seed_urls:
  - https://
allowed_path_patterns:
  - /**
tos: unknown
`

// providersPage is the data of the page of providers.
type providersPage struct {
	Providers []providerView
	Removed   []string // ids of those that were added here and removed
	Form      policyForm
	Fixed     bool // policies are changed in files only
}

// policyForm is a form for a policy's text, with what is wrong with it.
type policyForm struct {
	ID      string // "" for a new provider
	Version int    // that was read
	Text    string
	Faults  policyFaults
}

// Rows is how many lines the form shows.
func (f policyForm) Rows() int { return min(max(strings.Count(f.Text, "\n")+2, 12), 40) }

// providerPage is the data of the page of one provider.
type providerPage struct {
	providerView
	Form     policyForm
	Versions []providerVersion
	Crawl    *lastCrawl
	Removals []removal.Entry
	Fixed    bool
}

// lastCrawl is what the newest report says of a provider.
type lastCrawl struct {
	RunID      string `json:"-"`
	Provider   string `json:"provider"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	TotalPages int64  `json:"total_pages"`
}

func (p *docsProviders) rows() ([]action, []view) {
	if p == nil {
		return nil, nil
	}
	const all, one, form = "/api/v1/docs/providers", "/api/v1/docs/providers/{id}", "/providers/{id}"
	const now, none, fails = "200 OneProvider The provider as it is now.", "404 NoProvider", "404 NoProvider, 409 Conflict, 412 Changed"
	why := option.Option{Name: "why", Kind: option.Text}
	reason := []option.Option{*why.Range(0, maxWhy)}
	page := option.Option{Name: "url", Kind: option.Text, Usage: "A page; without it, all pages of the provider."}
	actions := grouped("providers", "providers",
		action{At: "GET " + all, ID: "listProviders", About: "The providers of documentation, with their policies",
			Out: "200 Providers The providers, by id.", Do: p.list},
		action{At: "GET " + one, ID: "showProvider", About: "A provider with the versions of what was kept of it",
			Out: "200 OneProvider The provider.", Fails: none, Do: p.one},
		action{At: "PUT " + one, ID: "defineProvider", About: "Add a provider, or change its policy", Out: now,
			Fails: "409 Conflict, 412 Changed, 428 Unread", Match: true,
			Body: "Policy", Needs: []string{"provider_id", "seed_urls", "allowed_path_patterns"}, Raw: true, Do: p.put,
			Answer:  p.one,
			Example: `{"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/guide/**"]}`},
		action{At: "DELETE " + one, ID: "removeProvider", About: "Remove a provider that was added, or go back to the policy of its file",
			Out: "200 OneProvider|Status The provider of the file, or that it is removed.", Fails: fails, Match: true, Answer: p.removed,
			Form: form + "/remove", Next: form, Confirm: p.confirmRemove,
			Do: p.changes(func(c *call, id string, read int) error { return p.remove(c.Context(), id, read) })},
		action{At: "POST " + one + "/disable", ID: "disableProvider", About: "Do not crawl a provider any more", Out: now, Fails: fails,
			Match: true,
			Body:  "DisableRequest", In: reason, Example: `{"why": "they asked us to stop"}`, Answer: p.one, Form: form + "/disable",
			Next: form,
			Do: p.changes(func(c *call, id string, read int) error {
				return p.disable(c.Context(), id, c.in.Get("why"), true, read)
			})},
		action{At: "POST " + one + "/enable", ID: "enableProvider", About: "Crawl a disabled provider again", Out: now, Fails: fails, Match: true,
			Body: "DisableRequest", In: reason, Example: `{"why": "they asked us to stop"}`, Answer: p.one, Form: form + "/enable",
			Next: form,
			Do:   p.changes(func(c *call, id string, read int) error { return p.disable(c.Context(), id, "", false, read) })},
		action{At: "POST " + one + "/unblock", ID: "unblockProvider", About: "Request pages again that answered 403", Out: now,
			Fails: none + ", 409 Conflict",
			Body:  "UnblockRequest", In: []option.Option{page}, Example: `{"url": "https://docs.acme.example/guide"}`, Do: p.unblock,
			Answer: p.one},
		action{Form: "/providers", Do: p.sent, Redo: p.sentAgain},
		action{Form: form, Do: p.sent, Redo: p.sentAgain},
	)
	return actions, []view{p.listPage(nil), p.page(nil)}
}

func (p *docsProviders) list(c *call) (any, error) {
	views, _, err := p.all(c.Context())
	list := []providerRow{}
	for _, v := range views {
		list = append(list, v.row())
	}
	return map[string]any{"providers": list}, err
}

// one answers with the provider as it is now.
func (p *docsProviders) one(c *call) (any, error) {
	v, err := p.named(c.Context(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	one := oneProvider{providerRow: v.row()}
	one.Versions, err = p.versions(c.Context(), v.ID)
	c.head.Set("ETag", strconv.Quote(strconv.Itoa(v.Version.Number)))
	return one, err
}

// removed answers with the provider of the file, or that there is none any more.
func (p *docsProviders) removed(c *call) (any, error) {
	v, err := p.one(c)
	if errors.Is(err, errNoProvider) {
		return status{"removed"}, nil
	}
	return v, err
}

func (p *docsProviders) versions(ctx context.Context, id string) ([]providerVersion, error) {
	history, err := p.shelf.History(ctx, id, historyShown)
	out := []providerVersion{}
	for _, v := range history {
		c, err := changeOf(v)
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
func (p *docsProviders) put(c *call) (any, error) {
	text, err := p.Text(c.body)
	if err != nil {
		return nil, known.Refuse(`the body is not a policy; write the policy as JSON, such as {"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/**"]}`)
	}
	err = p.define(c.Context(), c.PathValue("id"), text, c.versionRead())
	var faults policyFaults
	if errors.As(err, &faults) {
		err = known.Refuse("%s", faults.byField(text))
	}
	return nil, err
}

// changes is a request that changes a provider and has at most a reason.
func (p *docsProviders) changes(change func(c *call, id string, read int) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if utf8.RuneCountInString(c.in.Get("why")) > maxWhy {
			return nil, known.Refuse("why: write at most %d characters", maxWhy)
		}
		id := c.PathValue("id")
		err := change(c, id, c.versionRead())
		if c.form && err == nil {
			if _, gone := p.named(c.Context(), id); gone != nil {
				c.next = "/providers"
			}
		}
		return nil, err
	}
}

// unblock lets runs request pages of a provider again that answered 403: one, or all.
func (p *docsProviders) unblock(c *call) (any, error) {
	id, page := c.PathValue("id"), c.in.Get("url")
	var err error
	if page != "" && !strings.HasPrefix(page, "http") {
		err = known.Refuse("url: write the URL of a page, or leave it out for all pages of the provider")
	}
	if err == nil {
		_, err = p.named(c.Context(), id)
	}
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
func (p *docsProviders) listPage(form *policyForm) view {
	return view{At: "GET /providers", Template: "providers", Section: "providers", Title: "Providers", Still: form != nil,
		Data: func(c *call) (any, error) {
			views, removed, err := p.all(c.Context())
			page := providersPage{views, slices.Sorted(maps.Keys(removed)), policyForm{Text: newPolicy}, p.dir != ""}
			if form != nil {
				page.Form = *form
			}
			return page, err
		}}
}

// page is that of one provider. form replaces the form that shows its policy.
func (p *docsProviders) page(form *policyForm) view {
	return view{At: "GET /providers/{id}", Template: "provider", Section: "providers", Still: form != nil, Data: func(c *call) (any, error) {
		id := c.PathValue("id")
		one, err := p.named(c.Context(), id)
		if err != nil {
			return nil, err
		}
		c.Title = "Provider " + id
		page := providerPage{providerView: one, Crawl: p.lastCrawl(id), Fixed: p.dir != ""}
		if page.Form.Text, err = p.text(one); err == nil {
			page.Versions, err = p.compared(c.Context(), one.ID)
		}
		if err == nil {
			page.Removals, err = removal.All(c.Context(), p.Store)
		}
		page.Removals = slices.DeleteFunc(page.Removals, func(e removal.Entry) bool { return e.Provider != id })
		page.Form.ID, page.Form.Version = id, one.Version.Number
		if form != nil {
			page.Form = *form
		}
		return page, err
	}}
}

// text is the policy as the text of a file.
func (p *docsProviders) text(v providerView) (string, error) {
	if v.Change.Text != "" {
		return v.Change.Text, nil
	}
	return p.Text(v.Policy)
}

// compared are the versions of a provider, each with its differences from the one
// before.
func (p *docsProviders) compared(ctx context.Context, id string) ([]providerVersion, error) {
	versions, err := p.versions(ctx, id)
	if err != nil {
		return nil, err
	}
	files, err := p.joined(nil)
	if err != nil {
		return nil, err
	}
	var file provider
	if i := slices.IndexFunc(files, func(of provider) bool { return of.ID == id }); i >= 0 {
		file = files[i]
	}
	of := func(text string) provider {
		if def, faults := p.read(text); text != "" && faults == nil {
			return def
		}
		return file
	}
	for i, one := range versions {
		before, all := providerVersion{}, one.Version == 1
		if i+1 < len(versions) {
			before, all = versions[i+1], true
		}
		if all && one.Text != before.Text {
			versions[i].Differences = p.differences(of(before.Text), of(one.Text))
		}
	}
	return versions, nil
}

// lastCrawl is what the newest report with a provider says of it, nil if none has it.
func (p *docsProviders) lastCrawl(id string) *lastCrawl {
	for _, e := range p.Board.Runs() {
		if e.Run.Job != docsJob || !e.Run.State.Over() {
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
func (p *docsProviders) formOf(c *call) *policyForm {
	return &policyForm{ID: c.PathValue("id"), Text: strings.ReplaceAll(c.in.Get("policy"), "\r\n", "\n"), Version: c.versionRead()}
}

// sent adds a provider or changes its policy.
func (p *docsProviders) sent(c *call) (any, error) {
	form := p.formOf(c)
	id := form.ID
	if def, faults := p.read(form.Text); faults == nil && id == "" {
		id = def.ID
		if _, err := p.named(c.Context(), id); err == nil {
			return nil, known.Refuse("provider_id: there is a provider %s already; write another id, or change that one", id)
		}
	}
	c.next = "/providers/" + id
	return nil, p.define(c.Context(), id, form.Text, form.Version)
}

// sentAgain is the form of a text with faults, and what was written stays: no event loads the page again.
func (p *docsProviders) sentAgain(c *call, err error) (page view, code int) {
	form := p.formOf(c)
	var told *known.AnswerError
	switch {
	case errors.As(err, &form.Faults):
		code = http.StatusBadRequest
	case errors.As(err, &told):
		code, form.Faults = told.Code, policyFaults{{Message: known.Safe(told.Message)}}
	}
	if form.ID == "" {
		return p.listPage(form), code
	}
	return p.page(form), code
}

// confirmRemove asks before a provider, or what was changed of it, is removed.
func (p *docsProviders) confirmRemove(c *call) (any, error) {
	v, err := p.named(c.Context(), c.PathValue("id"))
	if err == nil && !v.Kept() {
		err = errProviderInFile
	}
	id := v.ID
	ask := confirmation{Title: "Remove provider " + id + "?", Button: "Remove the provider", Danger: true, Back: "/providers/" + id,
		Text: "It is not crawled any more. Its versions stay, and so does what was crawled of it.", Hidden: []hidden{{"version", strconv.Itoa(v.Version.Number)}}}
	if v.File() {
		ask.Title, ask.Button = "Back to the file’s "+id+"?", "Use the file’s policy"
		ask.Text = "What was changed here, and that it is disabled, is dropped. Its versions stay."
	}
	return ask, err
}
