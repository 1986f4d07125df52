package pipeline

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// readPolicies reads the policies in a directory, or those shipped with the program.
func readPolicies(dir string, now time.Time) ([]policy.Policy, error) {
	var files fs.FS = policies.Files
	if dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return nil, usage.Errorf("--policies: %w", err)
		} else if !info.IsDir() {
			return nil, usage.Errorf("--policies=%s is no directory; name the one with the YAML files", dir)
		}
		files = os.DirFS(dir)
	}
	loaded, err := policy.Load(files, now)
	if err != nil {
		return nil, usage.Errorf("--policies: %s", usage.OneLine(err))
	}
	return loaded, nil
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
	changes, err := changesIn(ctx, src.Store, providerKind.Words)
	if err != nil {
		return false, err
	}
	files, fixed, err := providerKind.Files(src.Option, time.Now())
	for _, p := range providerKind.Join(files, changes, fixed, time.Now()) {
		if p.ID == provider {
			return p.Value.Terms == policy.Allowed, err
		}
	}
	return false, err
}
