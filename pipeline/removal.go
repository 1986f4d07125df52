package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// byCommand names the user of a command.
func byCommand() string {
	if u, err := user.Current(); err == nil {
		return "command of " + u.Username
	}
	return "command"
}

// RecordRemoval records a request to remove what was kept of a docs provider. It refuses a
// provider that has no policy and left nothing: the id is misspelt. dir is --policies.
func RecordRemoval(ctx context.Context, dsn, dir string, s store.Store, provider, from, note string) (removal.Request, error) {
	d := docsOptions{}
	var err error
	if d.files, err = Policies(dir); err != nil {
		return removal.Request{}, err
	}
	changes, err := providerChanges(ctx, s)
	if err != nil {
		return removal.Request{}, err
	}
	d.loaded = d.files
	for id := range changes { // also those that people removed
		d.loaded = append(d.loaded, policy.Policy{ProviderID: id})
	}
	if err := d.knowsProvider(ctx, &RunOptions{DB: dsn}, "provider", provider); err != nil {
		return removal.Request{}, err
	}
	return removal.Record(ctx, s, removal.Request{Job: docs.Job, Provider: provider, By: byCommand(), From: from, Note: note}, time.Now())
}

// Unblock lets the docs job request pages of a provider again that answered 403: the page with this
// URL, or all of them for "".
func Unblock(ctx context.Context, dsn, provider, address string, stdout io.Writer) error {
	if file, missing := db.Missing(dsn); missing {
		return usage.Errorf("docs unblock: no run has used %s: add the --store and --db of the runs that crawled the provider", file)
	}
	base, err := openDB(ctx, dsn, docs.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // every write is committed by then
	n, err := docs.Unblock(ctx, base, provider, address)
	if err != nil {
		return err
	}
	if n > 0 {
		_, err = fmt.Fprintf(stdout, "%d pages of %s that answered 403 are requested again from the next run on\n", n, provider)
		return err
	}
	with, err := db.Texts(ctx, base, `SELECT DISTINCT provider FROM docs_blocked_urls ORDER BY provider`)
	if err != nil {
		return fmt.Errorf("looking for pages that answered 403: %w", err)
	}
	return usage.Errorf("docs unblock %s: no such page is blocked by a 403; providers with such pages: %s",
		strings.TrimSpace(provider+" "+address), cmp.Or(strings.Join(with, ", "), "none"))
}

// Removals does the open requests to remove what was kept of docs providers. One that
// cannot be done does not keep it from the others.
func Removals(ctx context.Context, dsn string, s store.Store, stdout io.Writer) (err error) {
	open, err := removal.OpenOf(ctx, s, docs.Job, "")
	if err != nil {
		return err
	}
	if len(open) == 0 {
		_, err = fmt.Fprintln(stdout, "no request is open")
		return err
	}
	if file, missing := db.Missing(dsn); missing {
		return usage.Errorf("removals do: no run has used %s: add the --store and --db of the runs that crawled the providers", file)
	}
	base, err := openDB(ctx, dsn, docs.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // every write is committed by then
	var failed []error
	done := map[string]bool{}
	for _, e := range open {
		if done[e.Provider] {
			continue
		}
		done[e.Provider] = true
		p, receipts, err := docs.Remove(ctx, base, s, e.Provider, byCommand(), time.Now())
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s: removed %d hand-off objects, %d dead letters, %d chunks; %d receipts\n", e.Provider, p.Objects, p.DeadLetters, p.Chunks, len(receipts)); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
