package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// forURL makes the policy of --url. Where a provider's policy is for the host, that
// policy decides: its terms, its patterns, its delay. Any other host gets a default one,
// whose terms are unknown unless --tos-allowed says that somebody read them.
func (d *docsOptions) forURL(c *RunOptions) error {
	d.page, d.source = nil, ""
	switch {
	case c.URL == "" && (d.Depth != 0 || d.TermsRead != ""):
		return usage.Errorf("--depth and --tos-allowed go with --url")
	case c.URL == "":
		return nil
	case c.WorkersElsewhere:
		return usage.Errorf("--url=%s: one site needs no cluster; leave --runner out", c.URL)
	}
	u, err := pageURL(c.URL)
	if err != nil {
		return err
	}
	p, err := policy.ForURL(u, d.Depth)
	if err != nil {
		return usage.Errorf("--url=%s: %w", c.URL, err)
	}
	key, err := canonical.Key(u, nil)
	if err != nil {
		return usage.Errorf("--url=%s: %w", c.URL, err)
	}
	refused := ""
	for _, own := range d.loaded {
		if own.Host() != p.Host() {
			continue
		}
		if reason, ok := d.crawled(own); !ok {
			return usage.Errorf("--url=%s: the policy of %s is for this host: %s", c.URL, own.ProviderID, reason)
		}
		if pattern, in := own.Scope().Rule(canonical.Path(key)); !in {
			refused = fmt.Sprintf("the policy of %s, which is for this host, does not allow the path (%s); change the policy, or give a page that it allows", own.ProviderID, cmp.Or(pattern, "no allowed pattern matches"))
			continue
		}
		if d.source == "" {
			p, d.source = own.From(u, min(d.Depth, own.MaxDepth)), own.ProviderID
		}
	}
	if d.source == "" && refused != "" {
		return usage.Errorf("--url=%s: %s", c.URL, refused)
	}
	if pattern := p.Scope().Block; d.source == "" && slices.ContainsFunc(pattern, func(b string) bool { return canonical.Match(b, canonical.Path(key)) }) {
		return usage.Errorf("--url=%s: paths of blogs, forums, communities, profiles and users may have personal data, and are not crawled without a policy that allows them by name (allow_personal)", c.URL)
	}
	if d.TermsRead != "" {
		if d.source != "" {
			return usage.Errorf("--tos-allowed: the policy of %s says what is known of its terms; write tos and tos_checked there", d.source)
		}
		if why := policy.WrongDay(d.TermsRead, time.Now()); why != "" {
			return usage.Errorf("--tos-allowed: %s", why)
		}
		p.Terms, p.TermsDate = policy.Allowed, d.TermsRead
	}
	d.page, d.only = &p, []string{p.ProviderID}
	d.loaded = append(d.loaded, p)
	return nil
}

// notPurged refuses a --url of a provider that was purged.
func (d *docsOptions) notPurged(ctx context.Context) error {
	if d.page == nil {
		return nil
	}
	if _, missing := db.Missing(d.dsn); missing || d.source == "" {
		return nil
	}
	base, err := openDB(ctx, d.dsn, docs.Migrate)
	if err != nil {
		return err
	}
	off, err := removal.Purged(ctx, base)
	if err := errors.Join(err, base.Close()); err != nil {
		return err
	}
	if off[d.source] {
		return usage.Errorf("--url: %s was purged, and is not crawled again until --enable-provider=%s is given", d.source, d.source)
	}
	return nil
}

// nothingKeptOfURL fails a run for --url that kept no page of it.
func (d *docsOptions) nothingKeptOfURL(ctx context.Context, runID string) error {
	if d.page == nil {
		return nil
	}
	base, err := openDB(ctx, d.dsn, docs.Migrate)
	if err != nil {
		return err
	}
	kept, why, err := docs.Ending(ctx, base, d.page.ProviderID)
	if err := errors.Join(err, base.Close()); err != nil || kept > 0 {
		return err
	}
	return fmt.Errorf("nothing was kept of %s: %s; `pipeline try` says what its robots.txt allows, the run's log (`pipeline runs log %s`) what was tried", d.page.Name, why, runID)
}

// write prints what a run did. After a run for --url it says where its pages are, and
// writes them as Markdown if asked to.
func (d *docsOptions) write(ctx context.Context, s store.Store, runID string, stdout io.Writer) error {
	if err := writeDocs(ctx, s, runID, stdout); err != nil || d.page == nil {
		return err
	}
	base, err := openDB(ctx, d.dsn, docs.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // it is only read from
	id := d.page.ProviderID
	kept, _, err := docs.Ending(ctx, base, id)
	if err != nil || kept == 0 { // the run's error says so
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%d pages of %s are stored as provider %s\n", kept, d.page.Name, id); err != nil || d.Markdown == "" {
		return err
	}
	return d.writeFolder(ctx, base, s, []string{id}, stdout)
}
