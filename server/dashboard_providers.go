package server

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// maxForm is the maximum size of a text of the form for removals, in characters.
const maxForm = 500

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
	Faults  []policyFault
}

// Rows is how many lines the form shows.
func (f policyForm) Rows() int { return min(max(strings.Count(f.Text, "\n")+2, 12), 40) }

// policyFault is what is wrong with a policy.
type policyFault struct {
	Line    int // 0: none in particular
	Message string
}

// providerPage is the data of the page of one provider.
type providerPage struct {
	providerView
	Form     policyForm
	Versions []versionView
	Crawl    *lastCrawl
	Removals []removal.Entry
	TermsOld string
	Fixed    bool
}

// versionView is a version with what it changed.
type versionView struct {
	providerVersion
	Differences []string
}

// lastCrawl is what the newest report says of a provider.
type lastCrawl struct {
	RunID      string `json:"-"`
	Provider   string `json:"provider"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	TotalPages int64  `json:"total_pages"`
	Terms      *struct {
		URL       string     `json:"url"`
		Reason    string     `json:"reason"`
		CheckedAt time.Time  `json:"checked_at"`
		ReadAt    *time.Time `json:"read_at"`
		ChangedAt *time.Time `json:"changed_at"`
	} `json:"terms"`
	TermsChanged string `json:"terms_changed"`
}

// From says where the policy comes from, in words.
func (v providerView) From() string {
	switch {
	case v.Origin == policy.Store:
		return "added here"
	case v.Origin == policy.StoreOverFile:
		return "changed here"
	case v.Named:
		return "file"
	}
	return "shipped"
}

// State says whether the provider is crawled, in one word, which is also the name of a
// style.
func (v providerView) State() string {
	switch {
	case v.Change.Disabled:
		return "disabled"
	case v.Purged:
		return "removed"
	case v.Off != "":
		return "unreadable"
	case v.Terms == policy.Prohibited:
		return "prohibited"
	case v.Channel == policy.Context7:
		return "context7"
	}
	return "crawled"
}

// Why says more about State.
func (v providerView) Why() string {
	switch {
	case v.Off != "":
		return v.Off
	case v.Terms == policy.Prohibited:
		return "its terms of service prohibit it"
	case v.Channel == policy.Context7:
		return "crawled unless Context7 has it, or with --fallback"
	}
	return ""
}

// Kept reports whether something of the provider is kept in the store.
func (v providerView) Kept() bool { return v.Change != policy.Change{} }

func (p *pages) providerViews() []view {
	return []view{p.providersView(nil), p.providerView(nil),
		{At: "GET /removals", Template: "removals", Section: "providers", Title: "Removals", Data: p.removals},
		asks("GET /removals/ask", "providers", p.confirmRemoval),
	}
}

// policyRoutes are the forms for a policy. One with faults comes back.
func (p *pages) policyRoutes() []route {
	return []route{{"POST /providers", p.definePolicy}, {"POST /providers/{id}", p.definePolicy}}
}

// providersView is the page of all providers. form replaces the form for a new one.
func (p *pages) providersView(form *policyForm) view {
	return view{At: "GET /providers", Template: "providers", Section: "providers", Title: "Providers", Still: form != nil,
		Data: func(c *call) (any, error) {
			views, removed, err := p.server.providers.all(c.Context())
			page := providersPage{views, slices.Sorted(maps.Keys(removed)), policyForm{Text: newPolicy}, p.server.providers.dir != ""}
			if form != nil {
				page.Form = *form
			}
			return page, err
		}}
}

// providerView is the page of one provider. form replaces the form that shows its policy.
func (p *pages) providerView(form *policyForm) view {
	return view{At: "GET /providers/{id}", Template: "provider", Section: "providers", Still: form != nil, Data: func(c *call) (any, error) {
		s, id := p.server, c.PathValue("id")
		one, err := s.providers.named(c.Context(), id)
		if err != nil {
			return nil, err
		}
		c.Title = "Provider " + id
		page := providerPage{providerView: one, Crawl: s.lastCrawl(id), TermsOld: one.TermsOld(s.now()), Fixed: s.providers.dir != ""}
		if page.Form.Text, err = one.text(); err == nil {
			page.Versions, err = s.versionViews(c.Context(), one)
		}
		if err == nil {
			page.Removals, err = removal.All(c.Context(), s.store)
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
func (v providerView) text() (string, error) {
	if v.Change.Text != "" {
		return v.Change.Text, nil
	}
	b, err := v.JSON()
	if err != nil {
		return "", err
	}
	return policy.YAML(b)
}

// versionViews are the versions of a provider, each with its differences from the one
// before.
func (s *Server) versionViews(ctx context.Context, v providerView) ([]versionView, error) {
	versions, err := s.providerVersions(ctx, v.ProviderID)
	if err != nil {
		return nil, err
	}
	file, err := s.providers.file(v.ProviderID)
	if err != nil {
		return nil, err
	}
	of := func(text string) policy.Policy {
		if p, err := policy.Parse("policy", []byte(text), s.now()); text != "" && err == nil {
			return p
		}
		return file
	}
	var out []versionView
	for i, one := range versions {
		view := versionView{providerVersion: one}
		before := providerVersion{}
		if i+1 < len(versions) {
			before = versions[i+1]
		}
		if one.Text != before.Text && (i+1 < len(versions) || one.Version == 1) {
			view.Differences = policyDifferences(of(before.Text), of(one.Text))
		}
		out = append(out, view)
	}
	return out, nil
}

// lastCrawl is what the newest report with a provider says of it, nil if none has it.
func (s *Server) lastCrawl(id string) *lastCrawl {
	for _, e := range s.board.Runs() {
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

// faultLine is a fault as policy.Parse writes it.
var faultLine = regexp.MustCompile(`^policy:\s*(?:line )?(\d+): (.*)$`)

// policyFaults are what is wrong with a policy's text, with the lines.
func policyFaults(text string, now time.Time) (faults []policyFault) {
	_, err := policy.Parse("policy", []byte(text), now)
	if err == nil {
		return nil
	}
	for message := range strings.SplitSeq(err.Error(), "\n") {
		f := policyFault{Message: strings.TrimPrefix(message, "policy: ")}
		if m := faultLine.FindStringSubmatch(message); m != nil {
			f.Line, _ = strconv.Atoi(m[1]) // digits
			f.Message = m[2]
		}
		faults = append(faults, f)
	}
	return faults
}

// definePolicy adds a provider or changes its policy. A text with faults comes back with them, and what was written stays: no event loads
// the page again.
func (p *pages) definePolicy(w http.ResponseWriter, r *http.Request) {
	s := p.server
	c, err := action{}.take(w, r, true)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	id, code := c.PathValue("id"), http.StatusBadRequest
	form := &policyForm{ID: id, Text: strings.ReplaceAll(c.in.Get("policy"), "\r\n", "\n"), Version: c.versionRead()}
	form.Faults = policyFaults(form.Text, s.now())
	if form.Faults == nil && id == "" {
		def, _ := policy.Parse("policy", []byte(form.Text), s.now()) // it has no faults
		id = def.ProviderID
		if _, err := s.providers.named(c.Context(), id); err == nil {
			form.Faults = []policyFault{{Message: "provider_id: there is a provider " + id + " already; write another id, or change that one"}}
		}
	}
	if form.Faults == nil {
		err := s.providers.define(c.Context(), id, form.Text, form.Version)
		message, status, ok := known.Told(err)
		switch {
		case err == nil:
			http.Redirect(w, r, "/providers/"+id, http.StatusSeeOther)
			return
		case !ok:
			s.fail(w, r, err)
			return
		}
		code, form.Faults = status, []policyFault{{Message: message}}
	}
	if form.ID == "" {
		p.show(p.providersView(form), code)(w, r)
		return
	}
	p.show(p.providerView(form), code)(w, r)
}

// confirmRemoveProvider asks before a provider, or what was changed of it, is removed.
func (s *Server) confirmRemoveProvider(c *call) (confirmation, error) {
	v, err := s.providers.named(c.Context(), c.PathValue("id"))
	if err == nil && !v.Kept() {
		err = errProviderInFile
	}
	id := v.ProviderID
	ask := confirmation{Title: "Remove provider " + id + "?", Button: "Remove the provider", Danger: true, Back: "/providers/" + id,
		Text: "It is not crawled any more. Its versions stay, and so does what was crawled of it.", Hidden: []hidden{{"version", strconv.Itoa(v.Version.Number)}}}
	if v.File {
		ask.Title, ask.Button = "Back to the file’s "+id+"?", "Use the file’s policy"
		ask.Text = "What was changed here, and that it is disabled, is dropped. Its versions stay."
	}
	return ask, err
}

// removalsPage is the data of the page of requests to remove a source.
type removalsPage struct {
	All      []removal.Entry
	Provider string   // of the form
	Kinds    []string // of sources of other jobs
}

// removalKinds are the kinds of sources of other jobs than docs.
func (s *Server) removalKinds() (kinds []string) {
	for _, j := range s.jobs {
		if j.Removal != nil && j.Name != docsJob {
			kinds = append(kinds, j.Removal.Kind)
		}
	}
	return kinds
}

func (p *pages) removals(c *call) (any, error) {
	provider := c.in.Get("provider")
	if provider != "" && !providerForm.MatchString(provider) {
		return nil, errNotAProvider
	}
	all, err := removal.All(c.Context(), p.server.store)
	return removalsPage{all, provider, p.server.removalKinds()}, err
}

// confirmRemoval asks before a request to remove a source is recorded: minutes later
// everything of it is gone.
func (p *pages) confirmRemoval(c *call) (confirmation, error) {
	job, id, err := p.server.removalOf(c)
	text := "Its pages, chunks, hand-off and dead letters are removed within minutes, and it is not crawled again. This cannot be undone."
	if job != docsJob {
		text = "Everything that is kept of it is removed within minutes. This cannot be undone. Take it out of what is crawled, or the next run finds it again."
	}
	return confirmation{Title: "Remove everything of " + id + "?", Button: "Remove everything", Danger: true, Action: "/removals", Back: "/removals", Text: text,
		Hidden: []hidden{{"kind", c.in.Get("kind")}, {"provider", id}, {"from", c.in.Get("from")}, {"note", c.in.Get("note")}}}, err
}
