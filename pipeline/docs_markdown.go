package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// readPolicies reads the policies in a directory, or those shipped with the program.
func readPolicies(dir string) ([]policy.Policy, error) {
	var files fs.FS = policies.Files
	if dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return nil, usage.Errorf("--policies: %w", err)
		} else if !info.IsDir() {
			return nil, usage.Errorf("--policies=%s is no directory; name the one with the YAML files", dir)
		}
		files = os.DirFS(dir)
	}
	loaded, err := policy.Load(files, time.Now())
	if err != nil {
		return nil, usage.Errorf("--policies: %s", usage.OneLine(err))
	}
	return loaded, nil
}

// providerChanges reads the changes of providers that people keep in the store.
func providerChanges(ctx context.Context, s store.Store) (map[string]policy.Change, error) {
	newest, err := kept.On(s, policy.Kept()).Newest(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the providers in the store: %w", err)
	}
	out := map[string]policy.Change{}
	for id, v := range newest {
		var c policy.Change
		if err := json.Unmarshal(v.Body, &c); err != nil {
			return nil, fmt.Errorf("reading version %d of provider %s in the store: %w", v.Number, id, err)
		}
		out[id] = c
	}
	return out, nil
}

// The values of --links.
const linksAbsolute, linksNone = "absolute", "none"

// printMarkdown writes stored pages into a directory, and fetches nothing.
func (d *docsOptions) printMarkdown(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error {
	if file, missing := db.Missing(c.DB); missing {
		return usage.Errorf("--markdown: no run has used %s: add the --store and --db of the runs that crawled the pages", file)
	}
	base, err := openDB(ctx, c.DB, docs.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // it is only read from
	return d.writeFolder(ctx, base, s, d.only, stdout)
}

// writeFolder writes the stored pages of providers, or of all, into the directory of --markdown: whole where the provider's policy says
// tos: allowed, else 200 characters of each.
func (d *docsOptions) writeFolder(ctx context.Context, base *db.DB, s store.Store, ids []string, stdout io.Writer) error {
	if err := os.MkdirAll(d.Markdown, 0o755); err != nil {
		return usage.Errorf("--markdown: %w", err)
	}
	if len(ids) == 0 {
		var err error
		if ids, err = docs.Providers(ctx, base); err != nil {
			return err
		}
	}
	whole := func(id string) bool {
		return slices.ContainsFunc(d.loaded, func(p policy.Policy) bool { return p.ProviderID == id && p.Terms == policy.Allowed })
	}
	n, err := docs.WriteFolder(ctx, base, s, d.Markdown, ids, whole, d.Links == linksAbsolute, stdout)
	if err == nil && n == 0 {
		err = errors.New("--markdown: no page is stored of these providers; crawl them first, with --job=docs --provider=ID")
	}
	return err
}

// wholeShown reports whether a provider's policy allows to show a whole page.
func wholeShown(ctx context.Context, src explore.Source, provider string) (bool, error) {
	dir := src.Option("policies")
	files, err := readPolicies(dir)
	if err != nil {
		return false, err
	}
	changes, err := providerChanges(ctx, src.Store)
	loaded := policy.Providers(files, changes, dir != "", time.Now())
	return slices.ContainsFunc(loaded, func(p policy.Provider) bool { return p.ProviderID == provider && p.Terms == policy.Allowed }), err
}
