package face

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
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
	shelf *kept.Shelf
	dir   string     // of --policies, "" for the shipped policies
	web   web.Config // what runs may request
	now   func() time.Time
	note  func(ctx context.Context, action, target, detail string) error // writes into the audit
	// purged names those of which everything was removed, which is in the jobs' database.
	purged func(ctx context.Context) map[string]bool
}

// newProviders reads the providers of a store. environ is that of the runs.
func (f *Face) newProviders(environ []string) *docsProviders {
	p := &docsProviders{shelf: kept.On(f.Store, policy.Kept()), now: f.Now, note: f.Guard.Note, purged: f.purged}
	for _, line := range environ {
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

// providerView is a provider as it is now, with the version of what is kept of it.
type providerView struct {
	policy.Provider
	Change  policy.Change
	Version kept.Version // Number is 0 where nothing was ever kept
	File    bool         // a file defines it too
	Named   bool         // the user named the files
	Purged  bool         // everything of it was removed, and it is not crawled again
}

// files reads the policies of the files.
func (p *docsProviders) files() ([]policy.Policy, error) {
	var at fs.FS = policies.Files
	if p.dir != "" {
		at = os.DirFS(p.dir)
	}
	return policy.Load(at, p.now())
}

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

// file is the policy that a file has of a provider, an empty one if none has.
func (p *docsProviders) file(id string) (policy.Policy, error) {
	files, err := p.files()
	for _, f := range files {
		if f.ProviderID == id {
			return f, nil
		}
	}
	return policy.Policy{}, err
}

// all are the providers by id, and what is kept of those that were removed.
func (p *docsProviders) all(ctx context.Context) (views []providerView, removed map[string]kept.Version, err error) {
	files, err := p.files()
	if err != nil {
		return nil, nil, err
	}
	newest, err := p.shelf.Newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	changes := map[string]policy.Change{}
	for id, v := range newest {
		var c policy.Change
		if err := json.Unmarshal(v.Body, &c); err != nil {
			return nil, nil, fmt.Errorf("reading version %d of provider %s: %w", v.Number, id, err)
		}
		changes[id] = c
	}
	purged := p.purged(ctx)
	for _, now := range policy.Providers(files, changes, p.dir != "", p.now()) {
		id := now.ProviderID
		if purged[id] && now.Off == "" {
			now.Off = "everything of it was removed; `pipeline --job=docs --enable-provider=" + id + "` lets it be crawled again"
		}
		views = append(views, providerView{Provider: now, Change: changes[id], Version: newest[id], Named: p.dir != "", Purged: purged[id],
			File: slices.ContainsFunc(files, func(f policy.Policy) bool { return f.ProviderID == id })})
		delete(newest, id)
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
		if v.ProviderID == id {
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
// 0 where nothing was kept, unread where he did not say. change gets the provider, nil if
// there is none, and returns what to keep.
func (p *docsProviders) edit(ctx context.Context, id string, read int, action string, change func(now *providerView) (policy.Change, string, error)) error {
	ctx = context.WithoutCancel(ctx)
	views, removed, err := p.all(ctx)
	if err != nil {
		return err
	}
	var now *providerView
	for i := range views {
		if views[i].ProviderID == id {
			now = &views[i]
		}
	}
	version := removed[id].Number
	if now != nil {
		version = now.Version.Number
	}
	next, detail, err := change(now)
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
	if err := p.note(ctx, action, id, detail); err != nil {
		return err
	}
	_, err = p.shelf.Add(ctx, id, version, kept.Version{At: p.now(), Who: people.Who(ctx), Action: action, Body: body})
	if errors.Is(err, kept.ErrChanged) {
		return errProviderChanged
	}
	return err
}

// define adds a provider or changes its policy, which is written as in a file.
func (p *docsProviders) define(ctx context.Context, id, text string, read int) error {
	if p.dir != "" {
		return known.Conflict("the runs of this server take the policies from the directory of --policies; change the files there. A provider can still be disabled here")
	}
	def, err := policy.Parse("policy", []byte(text), p.now())
	if err != nil {
		return known.Refuse("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if def.ProviderID != id {
		return known.Refuse("provider_id: the policy names %s, but the request is for %s; a provider's id never changes, so write the same one",
			def.ProviderID, id)
	}
	for field, address := range map[string]string{"seed_urls": def.SeedURLs[0], "tos_url": def.TermsURL} { // all but the terms are on one host
		if address == "" {
			continue
		}
		if err := p.web.Check(address); err != nil {
			return known.Refuse("%s: %s", field, err)
		}
	}
	return p.edit(ctx, id, read, "provider_edit", func(now *providerView) (policy.Change, string, error) {
		next := policy.Change{Text: text}
		if now == nil {
			return next, "seeds " + strings.Join(def.SeedURLs, " "), nil
		}
		next.Disabled, next.Why = now.Change.Disabled, now.Change.Why
		return next, strings.Join(policyDifferences(now.Policy, def), "; "), nil
	})
}

// disable stops the crawls of a provider, or lets them begin again.
func (p *docsProviders) disable(ctx context.Context, id, why string, yes bool, read int) error {
	why = strings.Join(strings.Fields(why), " ")
	action := map[bool]string{true: "provider_disable", false: "provider_enable"}[yes]
	return p.edit(ctx, id, read, action, func(now *providerView) (policy.Change, string, error) {
		if now == nil {
			return policy.Change{}, "", errNoProvider
		}
		next := now.Change
		next.Disabled, next.Why = yes, why
		return next, why, nil
	})
}

var errProviderInFile = known.Conflict("this provider is in a file; remove it there, or disable it here")

// remove removes a provider that was added, or the change of one of a file.
func (p *docsProviders) remove(ctx context.Context, id string, read int) error {
	return p.edit(ctx, id, read, "provider_remove", func(now *providerView) (policy.Change, string, error) {
		switch {
		case now == nil:
			return policy.Change{}, "", errNoProvider
		case now.Change == policy.Change{}:
			return policy.Change{}, "", errProviderInFile
		case now.File:
			return policy.Change{}, "back to the file's", nil
		}
		return policy.Change{}, "", nil
	})
}

// policyDifferences names the fields that differ, with their values.
func policyDifferences(from, to policy.Policy) (out []string) {
	before, after := policyFields(from), policyFields(to)
	for _, name := range policy.Fields() {
		if was, is := string(before[name]), string(after[name]); was != is {
			out = append(out, name+": "+cmp.Or(was, "–")+" → "+cmp.Or(is, "–"))
		}
	}
	if out == nil {
		return []string{"nothing changed but the text"}
	}
	return out
}

// policyFields are the values of a policy's fields, under the names of its file.
func policyFields(p policy.Policy) map[string]json.RawMessage {
	text, err := p.JSON()
	var out map[string]json.RawMessage
	if err = errors.Join(err, json.Unmarshal(text, &out)); err != nil {
		return nil // a policy that could not be read
	}
	return out
}
