package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// changesIn reads what people keep of a kind of policies in a store.
func changesIn(ctx context.Context, s store.Store, of policyfile.Words) (map[string]policyfile.Change, error) {
	changes, err := kept.Current[policyfile.Change](ctx, kept.On(s, of.Kept()))
	if err != nil {
		return nil, fmt.Errorf("reading the %s in the store: %w", of.Many, err)
	}
	return changes, nil
}

// keepsNothing reports whether the store has certainly no changes of a kind of policies: it is a directory without them. A store that is
// not opened yet can only be a directory.
func keepsNothing(c *RunOptions, of policyfile.Words) bool {
	dir, local := strings.CutPrefix(c.Store, "file://")
	if c.Store == "" || !local && strings.Contains(c.Store, "://") {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, of.Kept()))
	return errors.Is(err, fs.ErrNotExist)
}

// joining joins the files of a job's sites or publishers with people's changes of them.
type joining struct {
	words      policyfile.Words
	resolve    func(c *RunOptions, changes map[string]policyfile.Change) error
	unresolved error // what is wrong by the files alone; the store may know better
}

// check refuses what does not fit the files, where the store cannot know better: with fixed, no text there counts.
func (j *joining) check(c *RunOptions, fixed bool) error {
	if j.unresolved = j.resolve(c, nil); fixed || keepsNothing(c, j.words) {
		return j.unresolved
	}
	return nil
}

// accept takes the changes that people keep in the store.
func (j *joining) accept(ctx context.Context, s store.Store, c *RunOptions) error {
	changes, err := changesIn(ctx, s, j.words)
	switch {
	case err != nil:
		return err
	case len(changes) == 0:
		return j.unresolved
	}
	return j.resolve(c, changes)
}

var providerKind = policy.Kind(readPolicies)

// siteFile is a site, and the text of its file.
type siteFile struct {
	catalog.Site
	text string
}

var siteKind = policyfile.Kind[siteFile]{
	Words: policyfile.Words{Job: catalog.Job, One: "site", Many: "sites", Key: "name", Flag: "sites", Schema: "Site",
		Blank: "name:\nlist:\n  url: https://\n  product_link: {selector: \"a\"}\nkey: sku\nfields:\n" +
			"  sku: {selector: \".sku\"}\n  title: {selector: \"h1\"}\n",
		Needs: []string{"name", "list", "key", "fields"},
		Example: `{"name": "lamps", "list": {"url": "https://lamps.example/", "product_link": {"selector": "a.lamp"}}, "key": "sku", ` +
			`"fields": {"sku": {"selector": ".sku"}, "title": {"selector": "h1"}}}`,
		Try: []string{"catalog", "--site={file}", "--try={page}"}},
	Type: reflect.TypeFor[catalog.Site](),
	ID:   func(s siteFile) string { return s.Name },
	Read: func(text string, _ time.Time) (siteFile, error) {
		s, err := catalog.ParseSite([]byte(text))
		if err != nil {
			return siteFile{}, policyfile.Located(text, err)
		}
		return siteFile{s, text}, nil
	},
	Files: func(option func(name string) string, _ time.Time) ([]siteFile, bool, error) {
		c := catalogOptions{Sites: option("sites")}
		files, err := c.files(option("web") == "demo")
		return files, c.Sites != "", err
	},
	Show: func(s siteFile, _ time.Time) (policyfile.Shown, error) {
		fields, err := policyfile.Fields(s.text)
		return policyfile.Shown{Name: s.Host(), State: "crawled", Fields: fields, Text: s.text,
			Addresses: []policyfile.Address{{Field: "list.url", URL: s.List.URL}}}, err
	},
}

// publisher is a publisher of the news job, and the text of its file.
type publisher struct {
	provider.Provider
	text  string // "": it is Go code
	world bool   // it ships with the program, and is crawled only by name, unless the settings enable it
	named bool   // the settings do not
	off   bool   // the settings disable it
}

func (p publisher) code() bool { return p.Provider != nil && p.text == "" }

var publisherKind = policyfile.Kind[publisher]{
	Words: policyfile.Words{Job: "news", One: "publisher", Many: "publishers", Key: "id", Flag: "publishers", Schema: "Publisher",
		Blank:   "id:\npress:\nbaseUrl: https://\nsitemapHints: []\n",
		Needs:   []string{"baseUrl"},
		Example: `{"id": "herald", "press": "The Herald", "baseUrl": "https://herald.example/"}`,
		Try:     []string{"news", "--publishers={dir}", "--url={page}"}},
	Type: provider.FileType,
	ID:   func(p publisher) string { return p.ID() },
	Read: func(text string, _ time.Time) (publisher, error) {
		p, err := provider.Declared([]byte(text))
		if err != nil {
			return publisher{}, policyfile.Located(text, err)
		}
		return publisher{Provider: p, text: text}, nil
	},
	Files: func(option func(name string) string, _ time.Time) ([]publisher, bool, error) {
		n := newsOptions{Settings: option("news-config"), Publishers: option("publishers")}
		files, err := n.files(option("web") == "demo")
		return files, n.Publishers != "", err
	},
	Configure: func(option func(name string) string, files []publisher, all []policyfile.Joined[publisher]) error {
		n := newsOptions{Settings: option("news-config"), Publishers: option("publishers")}
		return n.configure(files, all)
	},
	Show: showPublisher,
}

func showPublisher(p publisher, _ time.Time) (s policyfile.Shown, err error) {
	s = policyfile.Shown{State: "crawled", Text: p.text, Addresses: []policyfile.Address{{Field: "baseUrl", URL: p.BaseURL()}}}
	switch {
	case p.off:
		s.State, s.Why = "disabled", "the settings of runs (--news-config, --publishers) leave it out"
	case p.named:
		s.State, s.Why = "named", "crawled when --publisher names it or --news-config enables it"
	}
	for field, all := range map[string][]string{"feeds": p.Policy().Feeds, "sitemapHints": p.SitemapHints()} {
		for _, u := range all {
			s.Addresses = append(s.Addresses, policyfile.Address{Field: field, URL: u})
		}
	}
	slices.SortStableFunc(s.Addresses, func(a, b policyfile.Address) int { return strings.Compare(a.Field, b.Field) })
	if press, ok := p.Provider.(interface{ Press() string }); ok {
		s.Name = press.Press()
	}
	if p.code() {
		s.Locked = "it is code of the program"
		return s, nil
	}
	s.Fields, err = policyfile.Fields(p.text)
	return s, err
}
