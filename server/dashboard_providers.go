package server

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
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

func (p *pages) providerRoutes() []route {
	s := p.server
	return []route{
		{"GET /providers", p.providers},
		{"POST /providers", p.defineProvider},
		{"GET /providers/{id}", p.provider},
		{"POST /providers/{id}", p.defineProvider},
		{"POST /providers/{id}/disable", p.changeProvider(func(r *http.Request, id string, read int) error {
			return s.providers.disable(r.Context(), id, r.PostForm.Get("why"), true, read)
		})},
		{"POST /providers/{id}/enable", p.changeProvider(func(r *http.Request, id string, read int) error {
			return s.providers.disable(r.Context(), id, "", false, read)
		})},
		{"GET /providers/{id}/remove", p.confirmRemoveProvider},
		{"POST /providers/{id}/remove", p.changeProvider(func(r *http.Request, id string, read int) error {
			return s.providers.remove(r.Context(), id, read)
		})},
		{"GET /removals", p.removals},
		{"GET /removals/ask", p.confirmRemoval},
		{"POST /removals", p.askRemoval},
	}
}

func (p *pages) providers(w http.ResponseWriter, r *http.Request) {
	p.sendProviders(w, r, http.StatusOK, policyForm{Text: newPolicy})
}

func (p *pages) sendProviders(w http.ResponseWriter, r *http.Request, code int, form policyForm) {
	views, removed, err := p.server.providers.all(r.Context())
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	v := p.view(r, "Providers", "providers", providersPage{views, slices.Sorted(maps.Keys(removed)), form, p.server.providers.dir != ""})
	p.sendForm(w, r, code, "providers", v, form)
}

// sendForm sends a page with a form. One with faults is not loaded again at an event: what
// was written would stay, and what is wrong with it would go.
func (p *pages) sendForm(w http.ResponseWriter, r *http.Request, code int, name string, v view, form policyForm) {
	v.Live = v.Live && form.Faults == nil
	b, err := p.render(name, v)
	if err == nil && code != http.StatusOK {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(code)
	}
	p.send(w, r, b, err)
}

func (p *pages) provider(w http.ResponseWriter, r *http.Request) {
	p.sendProvider(w, r, http.StatusOK, nil)
}

// sendProvider sends the page of one provider; form replaces the form that shows its policy.
func (p *pages) sendProvider(w http.ResponseWriter, r *http.Request, code int, form *policyForm) {
	s, id := p.server, r.PathValue("id")
	one, err := s.providers.named(r.Context(), id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	page := providerPage{providerView: one, Crawl: s.lastCrawl(id), TermsOld: one.TermsOld(s.now()), Fixed: s.providers.dir != ""}
	if page.Form.Text, err = one.text(); err == nil {
		page.Versions, err = s.versionViews(r, one)
	}
	if err == nil {
		page.Removals, err = removal.All(r.Context(), s.store)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	page.Removals = slices.DeleteFunc(page.Removals, func(e removal.Entry) bool { return e.Provider != id })
	page.Form.ID, page.Form.Version = id, one.Version.Number
	if form != nil {
		page.Form = *form
	}
	p.sendForm(w, r, code, "provider", p.view(r, "Provider "+id, "providers", page), page.Form)
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
func (s *Server) versionViews(r *http.Request, v providerView) ([]versionView, error) {
	versions, err := s.providerVersions(r, v.ProviderID)
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
	for _, e := range s.board.runs() {
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

// defineProvider adds a provider or changes its policy. A text with faults comes back with
// them.
func (p *pages) defineProvider(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	id := r.PathValue("id")
	form := policyForm{ID: id, Text: strings.ReplaceAll(r.PostForm.Get("policy"), "\r\n", "\n"), Version: formVersion(r)}
	code := http.StatusBadRequest
	form.Faults = policyFaults(form.Text, p.server.now())
	if form.Faults == nil {
		if id == "" {
			def, _ := policy.Parse("policy", []byte(form.Text), p.server.now()) // it has no faults
			id = def.ProviderID
			if _, err := p.server.providers.named(r.Context(), id); err == nil {
				form.Faults = []policyFault{{Message: "provider_id: there is a provider " + id + " already; write another id, or change that one"}}
			}
		}
		if form.Faults == nil {
			err := p.server.providers.define(r.Context(), id, form.Text, form.Version)
			if err == nil {
				http.Redirect(w, r, "/providers/"+id, http.StatusSeeOther)
				return
			}
			message, status, ok := told(err)
			if !ok {
				p.server.fail(w, r, err)
				return
			}
			code, form.Faults = status, []policyFault{{Message: message}}
		}
	}
	if form.ID == "" {
		p.sendProviders(w, r, code, form)
		return
	}
	p.sendProvider(w, r, code, &form)
}

// formVersion is the version that a form shows. The form for a new provider shows none: it
// may be one that was removed, whose versions continue.
func formVersion(r *http.Request) int {
	text := r.PostForm.Get("version")
	if text == "" {
		return unread
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return noVersion
	}
	return n
}

// changeProvider is a form that changes a provider, and shows its version.
func (p *pages) changeProvider(change func(r *http.Request, id string, read int) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		err := r.ParseForm()
		if err != nil {
			err = formError(err)
		} else if why := r.PostForm.Get("why"); len([]rune(why)) > maxWhy {
			err = refuse("why: write at most %d characters", maxWhy)
		} else {
			err = change(r, id, formVersion(r))
		}
		to := "/providers/" + id
		if _, gone := p.server.providers.named(r.Context(), id); gone != nil {
			to = "/providers"
		}
		p.done(w, r, to, err)
	}
}

// confirmRemoveProvider asks before a provider, or what was changed of it, is removed.
func (p *pages) confirmRemoveProvider(w http.ResponseWriter, r *http.Request) {
	v, err := p.server.providers.named(r.Context(), r.PathValue("id"))
	if err == nil && !v.Kept() {
		err = errProviderInFile
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	id := v.ProviderID
	c := confirmation{Title: "Remove provider " + id + "?", Button: "Remove the provider", Danger: true, Action: "/providers/" + id + "/remove", Back: "/providers/" + id,
		Text: "It is not crawled any more. Its versions stay, and so does what was crawled of it.", Hidden: []hidden{{"version", strconv.Itoa(v.Version.Number)}}}
	if v.File {
		c.Title, c.Button, c.Text = "Back to the file’s "+id+"?", "Use the file’s policy", "What was changed here, and that it is disabled, is dropped. Its versions stay."
	}
	p.confirm(w, r, "providers", c)
}

// removalsPage is the data of the page of requests to remove a provider.
type removalsPage struct {
	All      []removal.Entry
	Provider string // of the form
}

func (p *pages) removals(w http.ResponseWriter, r *http.Request) {
	all, err := removal.All(r.Context(), p.server.store)
	provider := r.URL.Query().Get("provider")
	if err == nil && provider != "" && !providerForm.MatchString(provider) {
		err = errNotAProvider
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	b, err := p.render("removals", p.view(r, "Removals", "providers", removalsPage{all, provider}))
	p.send(w, r, b, err)
}

// confirmRemoval asks before a request to remove a provider is recorded: minutes later
// everything of it is gone.
func (p *pages) confirmRemoval(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	id, err := p.removalAsked(r, q)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	p.confirm(w, r, "providers", confirmation{Title: "Remove everything of " + id + "?", Button: "Remove everything", Danger: true, Action: "/removals", Back: "/removals",
		Text:   "Its pages, chunks, hand-off and dead letters are removed within minutes, and it is not crawled again. This cannot be undone.",
		Hidden: []hidden{{"provider", id}, {"from", q.Get("from")}, {"note", q.Get("note")}}})
}

// removalAsked checks the values of the form for a removal, and returns the provider.
func (p *pages) removalAsked(r *http.Request, form url.Values) (string, error) {
	id := strings.TrimSpace(form.Get("provider"))
	if !providerForm.MatchString(id) {
		return "", errNotAProvider
	}
	for _, name := range []string{"from", "note"} {
		if len([]rune(form.Get(name))) > maxForm {
			return "", refuse("%s: write at most %d characters", name, maxForm)
		}
	}
	return id, p.server.knowsProvider(r.Context(), id)
}

func (p *pages) askRemoval(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	var id string
	if err != nil {
		err = formError(err)
	} else if id, err = p.removalAsked(r, r.PostForm); err == nil {
		_, err = p.server.recordRemoval(r.Context(), id, r.PostForm.Get("from"), r.PostForm.Get("note"))
	}
	p.done(w, r, "/removals", err)
}
