package face

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
)

const (
	// maxProviders is how many providers can be added to those of the files.
	maxProviders = 1000
	// historyShown is how many of a provider's newest versions are shown.
	historyShown = 50
	// maxWhy is the maximum length of the reason for disabling a provider, in characters.
	maxWhy = 500
	// maxPurgedLook is how long a list of providers waits for the jobs' database.
	maxPurgedLook = 5 * time.Second
)

// docsProviders are the providers of the docs job: their policies from files, and what people
// keep of them in the store, in versions.
type docsProviders struct {
	*Face
	option.Policies
	shelf *kept.Shelf
	dir   string     // of --policies, "" for the shipped policies
	web   web.Config // what runs may request
}

// newProviders reads the providers of a store, nil if no job has any.
func (f *Face) newProviders() *docsProviders {
	j, _ := f.Jobs.Named(docsJob)
	if j.Policies == nil {
		return nil
	}
	p := &docsProviders{Face: f, Policies: j.Policies, shelf: kept.On(f.Store, j.Policies.Kept())}
	for _, line := range f.Runner.Environ {
		switch name, value, _ := strings.Cut(line, "="); name {
		case "SEED_POLICIES":
			p.dir = value
		case "SEED_ALLOW_PRIVATE":
			p.web.AllowPrivate = value == "true"
		case "SEED_CONNECT_TO":
			p.web.ConnectTo = value
		}
	}
	return p
}

// provider is what the job says of a provider.
type provider struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Origin   string          `json:"origin"` // file, store or store_over_file
	Off      string          `json:"off"`    // why it is not crawled whatever its policy says
	Usual    string          `json:"state"`
	Because  string          `json:"why"`
	SeedURLs []string        `json:"seed_urls"`
	Terms    string          `json:"terms"`
	ReadOn   string          `json:"read_on"`
	TermsURL string          `json:"terms_url"`
	TermsOld string          `json:"terms_old"`
	Policy   json.RawMessage `json:"policy"`
}

// change is what people keep of a provider. An empty one means that nothing is kept any more.
type change struct {
	Text     string `json:"policy,omitempty"` // the policy as YAML; "" for the file's
	Disabled bool   `json:"disabled,omitempty"`
	Why      string `json:"why,omitempty"` // it is disabled
}

func changeOf(v kept.Version) (c change, err error) {
	if err := json.Unmarshal(v.Body, &c); err != nil {
		return c, fmt.Errorf("reading version %d of a provider: %w", v.Number, err)
	}
	return c, nil
}

// providerView is a provider as it is now, with the version of what is kept of it.
type providerView struct {
	provider
	Change  change
	Version kept.Version // Number is 0 where nothing was ever kept
	Named   bool         // the user named the files
	Purged  bool         // everything of it was removed, and it is not crawled again
}

// From says where the policy comes from, in words.
func (v providerView) From() string {
	switch {
	case v.Origin == "store":
		return "added here"
	case v.Origin == "store_over_file":
		return "changed here"
	case v.Named:
		return "file"
	}
	return "shipped"
}

// File reports whether a file defines it too.
func (v providerView) File() bool { return v.Origin != "store" }

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
	}
	return v.Usual
}

// Why says more about State.
func (v providerView) Why() string { return cmp.Or(v.Off, v.Because) }

// Kept reports whether something of the provider is kept in the store.
func (v providerView) Kept() bool { return v.Change != change{} }

// purged are the providers of which everything was removed. Without an answer of the
// database there are none: their list needs no database.
func (f *Face) purged(ctx context.Context) map[string]bool {
	within, cancel := context.WithTimeout(ctx, maxPurgedLook)
	defer cancel()
	src, err := f.explorer.source(within, docsJob)
	if err == nil && src.DB == nil {
		return nil
	}
	var out map[string]bool
	if err == nil {
		out, err = removal.Purged(within, src.DB)
	}
	var refused *explore.RefusedError
	if err != nil && !errors.Is(err, explore.ErrNothingYet) && !errors.As(err, &refused) {
		f.Log.Warn("purged_unread", "error", ledger.Redact(err.Error()))
	}
	return out
}

// joined are the providers by id, with these changes.
func (p *docsProviders) joined(changes map[string]json.RawMessage) (all []provider, err error) {
	b, err := p.Providers(p.dir, changes, p.Now())
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	return all, err
}

// all are the providers by id, and what is kept of those that were removed.
func (p *docsProviders) all(ctx context.Context) (views []providerView, removed map[string]kept.Version, err error) {
	newest, err := p.shelf.Newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	changes := map[string]json.RawMessage{}
	for id, v := range newest {
		changes[id] = v.Body
	}
	all, err := p.joined(changes)
	if err != nil {
		return nil, nil, err
	}
	purged := p.purged(ctx)
	for _, now := range all {
		v := providerView{provider: now, Version: newest[now.ID], Named: p.dir != "", Purged: purged[now.ID]}
		if v.Purged && v.Off == "" {
			v.Off = "everything of it was removed; `pipeline --job=docs --enable-provider=" + v.ID + "` lets it be crawled again"
		}
		if v.Version.Number > 0 {
			if v.Change, err = changeOf(v.Version); err != nil {
				return nil, nil, err
			}
		}
		views = append(views, v)
		delete(newest, now.ID)
	}
	return views, newest, nil
}

var errNoProvider = known.Answer(http.StatusNotFound, "there is no such provider; GET /api/v1/docs/providers lists them")

// named returns one provider.
func (p *docsProviders) named(ctx context.Context, id string) (providerView, error) {
	views, _, err := p.all(ctx)
	if err != nil {
		return providerView{}, err
	}
	for _, v := range views {
		if v.ID == id {
			return v, nil
		}
	}
	return providerView{}, errNoProvider
}

// unread is the version of a writer who has not said which one he has read.
const unread = -1

// noVersion is one that is no version's name: it is never the newest.
const noVersion = -2

var errProviderChanged = known.Answer(http.StatusPreconditionFailed,
	"the provider has been changed since you read it; read it again, and make your change to what it is now")

// edit changes what is kept of a provider. read is the version that the writer has read:
// 0 where nothing was kept, unread where he did not say. what gets the provider, nil if
// there is none, and returns what to keep.
func (p *docsProviders) edit(ctx context.Context, id string, read int, action string, what func(now *providerView) (change, string, error)) error {
	ctx = context.WithoutCancel(ctx)
	views, removed, err := p.all(ctx)
	if err != nil {
		return err
	}
	var now *providerView
	for i := range views {
		if views[i].ID == id {
			now = &views[i]
		}
	}
	version := removed[id].Number
	if now != nil {
		version = now.Version.Number
	}
	next, detail, err := what(now)
	switch {
	case err != nil:
		return err
	case read == unread && now != nil && action == "provider_edit":
		return known.Answer(http.StatusPreconditionRequired, fmt.Sprintf(
			"the provider exists already; read it, and send the version that you have read, as the header If-Match: %q", fmt.Sprint(version)))
	case read != unread && read != version:
		return errProviderChanged
	case now == nil && len(views) >= maxProviders:
		return known.Conflict("there are %d providers already; remove some", len(views))
	}
	if now == nil {
		action = "provider_add"
	}
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encoding the provider %s: %w", id, err)
	}
	if err := p.Guard.Note(ctx, action, id, detail); err != nil {
		return err
	}
	_, err = p.shelf.Add(ctx, id, version, kept.Version{At: p.Now(), Who: people.Who(ctx), Action: action, Body: body})
	if errors.Is(err, kept.ErrChanged) {
		return errProviderChanged
	}
	p.Board.Change() // the form that starts runs offers it
	return err
}

// define adds a provider or changes its policy, which is written as in a file.
func (p *docsProviders) define(ctx context.Context, id, text string, read int) error {
	if p.dir != "" {
		return known.Conflict("the runs of this server take the policies from the directory of --policies; change the files there. A provider can still be disabled here")
	}
	def, faults := p.read(text)
	if faults != nil {
		return faults
	}
	if def.ID != id {
		return known.Refuse("provider_id: the policy names %s, but the request is for %s; a provider's id never changes, so write the same one",
			def.ID, id)
	}
	for field, address := range map[string]string{"seed_urls": def.SeedURLs[0], "tos_url": def.TermsURL} { // all but the terms are on one host
		if address == "" {
			continue
		}
		if err := p.web.Check(address); err != nil {
			return known.Refuse("%s: %s", field, err)
		}
	}
	return p.edit(ctx, id, read, "provider_edit", func(now *providerView) (change, string, error) {
		next := change{Text: text}
		if now == nil {
			return next, "seeds " + strings.Join(def.SeedURLs, " "), nil
		}
		next.Disabled, next.Why = now.Change.Disabled, now.Change.Why
		return next, strings.Join(p.differences(now.provider, def), "; "), nil
	})
}

// disable stops the crawls of a provider, or lets them begin again.
func (p *docsProviders) disable(ctx context.Context, id, why string, yes bool, read int) error {
	why = strings.Join(strings.Fields(why), " ")
	action := map[bool]string{true: "provider_disable", false: "provider_enable"}[yes]
	return p.edit(ctx, id, read, action, func(now *providerView) (change, string, error) {
		if now == nil {
			return change{}, "", errNoProvider
		}
		next := now.Change
		next.Disabled, next.Why = yes, why
		return next, why, nil
	})
}

var errProviderInFile = known.Conflict("this provider is in a file; remove it there, or disable it here")

// remove removes a provider that was added, or the change of one of a file.
func (p *docsProviders) remove(ctx context.Context, id string, read int) error {
	return p.edit(ctx, id, read, "provider_remove", func(now *providerView) (change, string, error) {
		switch {
		case now == nil:
			return change{}, "", errNoProvider
		case now.Change == change{}:
			return change{}, "", errProviderInFile
		case now.File():
			return change{}, "back to the file's", nil
		}
		return change{}, "", nil
	})
}

// differences names the fields of two policies that differ, with their values.
func (p *docsProviders) differences(from, to provider) (out []string) {
	fields := func(p provider) (out map[string]json.RawMessage) {
		if p.Policy == nil || json.Unmarshal(p.Policy, &out) != nil {
			return nil // there is none
		}
		return out
	}
	before, after := fields(from), fields(to)
	for _, name := range p.Fields() {
		if was, is := string(before[name]), string(after[name]); was != is {
			out = append(out, name+": "+cmp.Or(was, "–")+" → "+cmp.Or(is, "–"))
		}
	}
	if out == nil {
		return []string{"nothing changed but the text"}
	}
	return out
}

// policyFaults are what is wrong with a policy's text.
type policyFaults []policyFault

// policyFault is one of them.
type policyFault struct {
	Line    int  // 0: none in particular
	OfText  bool // it is about the text's form, such as a value of another type, and names no field
	Message string
}

func (f policyFaults) Error() string { return f.byField("") }

// faultLine is a fault as the job writes it.
var faultLine = regexp.MustCompile(`^policy:\s*(line )?(\d+): (.*)$`)

// read reads the text of a policy.
func (p *docsProviders) read(text string) (def provider, faults policyFaults) {
	b, err := p.Read(text, p.Now())
	if err == nil {
		err = json.Unmarshal(b, &def)
	}
	if err == nil {
		return def, nil
	}
	for message := range strings.SplitSeq(err.Error(), "\n") {
		f := policyFault{Message: strings.TrimPrefix(message, "policy: ")}
		if m := faultLine.FindStringSubmatch(message); m != nil {
			f.OfText, f.Message = m[1] != "", m[3]
			f.Line, _ = strconv.Atoi(m[2]) // digits
		}
		faults = append(faults, f)
	}
	return def, faults
}

// byField writes the faults of a text that the sender has not written: with fields in place of lines.
func (f policyFaults) byField(text string) string {
	lines, out := strings.Split(text, "\n"), []string{}
	for _, fault := range f {
		for i := min(fault.Line, len(lines)) - 1; i >= 0 && fault.OfText; i-- {
			field, _, ok := strings.Cut(lines[i], ":")
			if ok && !strings.HasPrefix(field, " ") && !strings.HasPrefix(field, "-") {
				fault.Message = field + ": " + fault.Message
				break
			}
		}
		out = append(out, fault.Message)
	}
	return strings.Join(out, "; ")
}
