package face

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
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

// policyFiles are the providers, sites or publishers of a job: their policies from files, and what people keep of them in the store, in
// versions.
type policyFiles struct {
	*Face
	option.Policies
	policyfile.Words
	shelf  *kept.Shelf
	trying sync.Mutex // one trial at a time
	web    web.Config // what runs may request
}

// newProviders are the policies that jobs have.
func (f *Face) newProviders() (all []*policyFiles) {
	for _, j := range f.Jobs {
		if j.Policies == nil {
			continue
		}
		words := j.Policies.Called()
		p := &policyFiles{Face: f, Policies: j.Policies, Words: words, shelf: kept.On(f.Store, words.Kept())}
		p.web.AllowPrivate, p.web.ConnectTo = f.Runner.Option("allow-private") == "true", f.Runner.Option("connect-to")
		all = append(all, p)
	}
	return all
}

// path is that of its pages.
func (p *policyFiles) path() string { return "/" + p.Many }

// providerView is a policy as it is now, with the version of what is kept of it.
type providerView struct {
	policyfile.Shown
	Change  policyfile.Change
	Version kept.Version // Number is 0 where nothing was ever kept
	Fixed   bool         // the user named the files
	Purged  bool         // everything of it was removed, and it is not crawled again
}

// From says where the policy comes from, in words.
func (v providerView) From() string {
	switch {
	case v.Origin == policyfile.Store:
		return "added here"
	case v.Origin == policyfile.StoreOverFile:
		return "changed here"
	case v.Fixed && v.Fields != nil:
		return "file"
	}
	return "shipped"
}

// File reports whether a file defines it too.
func (v providerView) File() bool { return v.Origin != policyfile.Store }

// Is says whether it is crawled, in one word, which is also the name of a style.
func (v providerView) Is() string {
	switch {
	case v.Change.Disabled:
		return "disabled"
	case v.Purged:
		return "removed"
	case v.Off != "":
		return "unreadable"
	}
	return v.State
}

// Because says more about Is.
func (v providerView) Because() string { return cmp.Or(v.Off, v.Why) }

// Changed reports whether something of it is kept in the store.
func (v providerView) Changed() bool { return v.Change != policyfile.Change{} }

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

// policies are the policies of a kind.
type policies struct {
	views   []providerView          // by id
	removed map[string]kept.Version // what is kept of those that were removed
	fixed   bool                    // the user named the files: they are not changed here
}

// all are the policies by id, and what is kept of those that were removed.
func (p *policyFiles) all(ctx context.Context) (out policies, err error) {
	if out.removed, err = p.shelf.Newest(ctx); err != nil {
		return out, err
	}
	changes, err := kept.Bodies[policyfile.Change](out.removed)
	if err != nil {
		return out, err
	}
	all, fixed, err := p.All(p.Runner.Option, changes, p.Now())
	if err != nil {
		return out, err
	}
	out.fixed = fixed
	var purged map[string]bool
	if p.Job == docsJob {
		purged = p.purged(ctx)
	}
	for _, now := range all {
		if fixed && now.Locked == "" {
			now.Locked = p.inFiles()
		}
		v := providerView{Shown: now, Change: changes[now.ID], Version: out.removed[now.ID], Fixed: fixed, Purged: purged[now.ID]}
		if v.Purged && v.Off == "" {
			v.Off = "everything of it was removed; `pipeline --job=docs --enable-provider=" + v.ID + "` lets it be crawled again"
		}
		out.views = append(out.views, v)
		delete(out.removed, now.ID)
	}
	return out, nil
}

// errNone is the answer to a request for one that is not there.
func (p *policyFiles) errNone() error {
	return known.Answer(http.StatusNotFound, fmt.Sprintf("there is no such %s; GET %s lists them", p.One, p.API()))
}

// inFiles says where the policies are changed if the user named the files.
func (p *policyFiles) inFiles() string {
	return fmt.Sprintf("the runs of this server take the %s from the directory of --%s; change the files there", p.Many, p.Flag)
}

// named returns one provider.
func (p *policyFiles) named(ctx context.Context, id string) (providerView, error) {
	now, err := p.all(ctx)
	if err != nil {
		return providerView{}, err
	}
	for _, v := range now.views {
		if v.ID == id {
			return v, nil
		}
	}
	return providerView{}, p.errNone()
}

// unread is the version of a writer who has not said which one he has read.
const unread = -1

// noVersion is one that is no version's name: it is never the newest.
const noVersion = -2

func (p *policyFiles) errChanged() error {
	return known.Answer(http.StatusPreconditionFailed, "the "+p.One+" has been changed since you read it; read it again, and make your change to what it is now")
}

// edit changes what is kept of a provider. read is the version that the writer has read:
// 0 where nothing was kept, unread where he did not say. what gets the provider, nil if
// there is none, and returns what to keep.
func (p *policyFiles) edit(ctx context.Context, id string, read int, action string,
	what func(now *providerView) (policyfile.Change, string, error)) error {
	ctx = context.WithoutCancel(ctx)
	all, err := p.all(ctx)
	if err != nil {
		return err
	}
	var now *providerView
	for i := range all.views {
		if all.views[i].ID == id {
			now = &all.views[i]
		}
	}
	version := all.removed[id].Number
	if now != nil {
		version = now.Version.Number
	}
	next, detail, err := what(now)
	edits := action == p.One+"_edit"
	switch {
	case err != nil:
		return err
	case edits && now != nil && now.Locked != "":
		return known.Conflict("the %s %s cannot be changed here: %s. It can still be disabled", p.One, id, now.Locked)
	case edits && all.fixed:
		return known.Conflict("no %s can be added here: %s", p.One, p.inFiles())
	case read == unread && now != nil && edits:
		return known.Answer(http.StatusPreconditionRequired, fmt.Sprintf(
			"the %s exists already; read it, and send the version that you have read, as the header If-Match: %q", p.One, fmt.Sprint(version)))
	case read != unread && read != version:
		return p.errChanged()
	case now == nil && len(all.views) >= maxProviders:
		return known.Conflict("there are %d %s already; remove some", len(all.views), p.Many)
	}
	if now == nil {
		action = p.One + "_add"
	}
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encoding the %s %s: %w", p.One, id, err)
	}
	if err := p.Guard.Note(ctx, action, id, detail); err != nil {
		return err
	}
	_, err = p.shelf.Add(ctx, id, version, kept.Version{At: p.Now(), Who: people.Who(ctx), Action: action, Body: body})
	if errors.Is(err, kept.ErrChanged) {
		return p.errChanged()
	}
	p.Board.Change() // the form that starts runs offers it
	return err
}

// define adds a provider or changes its policy, which is written as in a file.
func (p *policyFiles) define(ctx context.Context, id, text string, read int) error {
	def, faults := p.read(text)
	if faults != nil {
		return faults
	}
	if def.ID != id {
		return known.Refuse("%s: the policy names %s, but the request is for %s; a %s's %s never changes, so write the same one", p.Key,
			def.ID, id, p.One, strings.TrimPrefix(p.Key, p.One+"_"))
	}
	for _, a := range def.Addresses {
		if err := p.web.Check(a.URL); err != nil {
			return known.Refuse("%s: %s", a.Field, err)
		}
	}
	return p.edit(ctx, id, read, p.One+"_edit", func(now *providerView) (policyfile.Change, string, error) {
		next := policyfile.Change{Text: text}
		if now == nil {
			seeds := "seeds"
			for _, a := range def.Addresses {
				seeds += " " + a.URL
			}
			return next, seeds, nil
		}
		next.Disabled, next.Why = now.Change.Disabled, now.Change.Why
		return next, strings.Join(differences(now.Fields, def.Fields), "; "), nil
	})
}

// disable stops the crawls of a provider, or lets them begin again.
func (p *policyFiles) disable(ctx context.Context, id, why string, yes bool, read int) error {
	why = strings.Join(strings.Fields(why), " ")
	action := p.One + map[bool]string{true: "_disable", false: "_enable"}[yes]
	return p.edit(ctx, id, read, action, func(now *providerView) (policyfile.Change, string, error) {
		if now == nil {
			return policyfile.Change{}, "", p.errNone()
		}
		next := now.Change
		next.Disabled, next.Why = yes, why
		return next, why, nil
	})
}

func (p *policyFiles) errInFile() error {
	return known.Conflict("this %s is in a file; remove it there, or disable it here", p.One)
}

// remove removes a provider that was added, or the change of one of a file.
func (p *policyFiles) remove(ctx context.Context, id string, read int) error {
	return p.edit(ctx, id, read, p.One+"_remove", func(now *providerView) (policyfile.Change, string, error) {
		switch {
		case now == nil:
			return policyfile.Change{}, "", p.errNone()
		case !now.Changed():
			return policyfile.Change{}, "", p.errInFile()
		case now.File():
			return policyfile.Change{}, "back to the file's", nil
		}
		return policyfile.Change{}, "", nil
	})
}

// differences names the fields of two policies that differ, with their values.
func differences(from, to json.RawMessage) (out []string) {
	gone, before := leaves("", from)
	names, after := leaves("", to)
	for _, name := range slices.Concat(names, slices.DeleteFunc(gone, func(name string) bool { return after[name] != "" })) {
		if was, is := before[name], after[name]; was != is {
			out = append(out, name+": "+cmp.Or(was, "–")+" → "+cmp.Or(is, "–"))
		}
	}
	if out == nil {
		return []string{"nothing changed but the text"}
	}
	return out
}

// leaves are the fields of a JSON object in its order, those of an object in it as list.url, with their values.
func leaves(under string, object json.RawMessage) (names []string, values map[string]string) {
	values = map[string]string{}
	var fields map[string]json.RawMessage
	read, err := yamltext.Document(object) // JSON is YAML
	order, ok := read.(yamltext.Mapping)
	if err != nil || !ok || json.Unmarshal(object, &fields) != nil {
		return nil, values // there is none
	}
	for _, f := range order {
		name := under + f.Key
		inner, of := leaves(name+".", fields[f.Key])
		if inner == nil {
			inner, of = []string{name}, map[string]string{name: string(fields[f.Key])}
		}
		names = append(names, inner...)
		maps.Copy(values, of)
	}
	return names, values
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
func (p *policyFiles) read(text string) (def policyfile.Shown, faults policyFaults) {
	def, err := p.Parse(text, p.Now())
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
