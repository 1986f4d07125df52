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

// RecordRemoval records a request to remove what was kept of a source of a job. It refuses one that is misspelt. dir is
// --policies.
func (j Job) RecordRemoval(ctx context.Context, o *RunOptions, dir string, s store.Store, name, from, note string) (removal.Request, error) {
	name, err := j.Removal.Named(name)
	if err != nil {
		return removal.Request{}, usage.Errorf("--%s: %w", j.Removal.Kind, err)
	}
	if j.Knows != nil {
		err = j.Knows(ctx, o, dir, s, name)
	} else {
		err = j.knowsSource(ctx, o.DB, s, name)
	}
	if err != nil {
		return removal.Request{}, err
	}
	return removal.Record(ctx, s, removal.Request{Job: j.Name, Provider: name, By: byCommand(), From: from, Note: note}, time.Now())
}

// knowsDocs refuses a provider that has no policy and left nothing.
func knowsDocs(ctx context.Context, o *RunOptions, dir string, s store.Store, provider string) (err error) {
	d := docsOptions{}
	if d.files, err = Policies(dir); err != nil {
		return err
	}
	changes, err := providerChanges(ctx, s)
	if err != nil {
		return err
	}
	d.loaded = d.files
	for id := range changes { // also those that people removed
		d.loaded = append(d.loaded, policy.Policy{ProviderID: id})
	}
	return d.knowsProvider(ctx, o, "provider", provider)
}

// knowsSource refuses a source of which the job keeps nothing.
func (j Job) knowsSource(ctx context.Context, dsn string, s store.Store, name string) error {
	return j.withSources(ctx, dsn, s, func(src removal.Source) error {
		src.Name = name
		kept, err := j.Removal.Find(ctx, src)
		if err != nil || kept.Total() > 0 {
			return err
		}
		known, err := j.Removal.Known(ctx, src.DB)
		if err == nil && len(known) == 0 {
			err = usage.Errorf("--%s=%s: nothing of it is kept", j.Removal.Kind, name)
		}
		if err != nil {
			return err
		}
		return unknown(j.Removal.Kind, name, j.Removal.Kind, known)
	})
}

// withSources calls do with the place where the job keeps what it found. A database that no run has used is refused.
func (j Job) withSources(ctx context.Context, dsn string, s store.Store, do func(removal.Source) error) (err error) {
	if j.Removal.Migrate == nil {
		return do(removal.Source{Store: s})
	}
	if file, missing := db.Missing(dsn); missing {
		return usage.Errorf("removals: no run has used %s: add the --store and --db of the runs of the %s job", file, j.Name)
	}
	base, err := openDB(ctx, dsn, j.Removal.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // every write is committed by then
	return do(removal.Source{Store: s, DB: base})
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

// Removals does the open requests to remove what was kept of sources of a job, and says what it removed. One that cannot be
// done does not keep it from the others.
func (j Job) Removals(ctx context.Context, dsn string, s store.Store, stdout io.Writer) error {
	var failed []error
	err := j.withSources(ctx, dsn, s, func(src removal.Source) error {
		return j.Removal.Do(ctx, src, byCommand(), time.Now(), func(e removal.Entry, r removal.Removed, receipts []removal.Receipt, err error) {
			if err == nil {
				rows := r.Total() - r.Objects - r.DeadLetters
				_, err = fmt.Fprintf(stdout, "%s: removed %d rows, %d objects, %d dead letters, %d chunks; %d receipts\n", e.Provider, rows, r.Objects, r.DeadLetters, r.Chunks, len(receipts))
			}
			failed = append(failed, err)
		})
	})
	return errors.Join(append(failed, err)...)
}
