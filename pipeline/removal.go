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
	"github.com/newsfork/seed-engine/pipeline/option"
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

// rm is the command that removes what the job keeps of sources.
func (j Job) rm() Command {
	var r removal.Request
	dry := false
	k := Command{Under: "rm", Stored: true, Use: j.Removal.Kind + " NAME…", Short: "remove everything that the " + j.Name + " job keeps of these " + j.Removal.Kind + "s",
		Options: func(s *option.Set) {
			s.Text(&r.From, "from", "", "who asked for it; the receipt has it")
			s.Text(&r.Note, "note", "", "why; the receipt has it")
			s.Yes(&dry, "dry-run", false, "say what would be removed, and remove nothing")
		},
		Do: func(ctx context.Context, c *RunOptions, s store.Store, names []string, stdout, _ io.Writer) error {
			for i, name := range names {
				var err error
				if names[i], err = j.Removal.Named(name); err != nil {
					return usage.Errorf("rm %s: %w", j.Removal.Kind, err)
				}
			}
			return j.withSources(ctx, c.DB, s, func(src removal.Source) error {
				for _, name := range names { // all of them before anything is removed
					if err := j.knows(ctx, c, src, name); err != nil {
						return err
					}
				}
				for _, name := range names {
					if src.Name, r.Provider = name, name; dry {
						kept, err := j.Removal.Find(ctx, src)
						if err = errors.Join(err, sayRemoved(stdout, name+": would remove", kept, "")); err != nil {
							return err
						}
					} else if err := j.remove(ctx, src, r, stdout); err != nil {
						return err
					}
				}
				return nil
			})
		}}
	if j.SQL {
		k.Takes = []string{"db"}
	}
	if j.Knows != nil {
		k.Takes = append(k.Takes, "policies")
	}
	return k
}

// knows refuses a source of which nothing is kept: it is misspelt.
func (j Job) knows(ctx context.Context, c *RunOptions, src removal.Source, name string) error {
	if j.Knows != nil {
		return j.Knows(ctx, c, src.Store, name)
	}
	src.Name = name
	kept, err := j.Removal.Find(ctx, src)
	open, oerr := removal.OpenOf(ctx, src.Store, j.Name, name)
	if err = errors.Join(err, oerr); err != nil || kept.Total() > 0 || len(open) > 0 {
		return err
	}
	known, err := j.Removal.Known(ctx, src.DB)
	if err == nil && len(known) == 0 {
		err = usage.Errorf("rm %s %s: nothing of it is kept", j.Removal.Kind, name)
	}
	return cmp.Or(err, unknown(j.Removal.Kind, name, j.Removal.Kind, known))
}

// remove records a request to remove a source, unless one is open, and does it. A request that cannot be done stays open.
func (j Job) remove(ctx context.Context, src removal.Source, r removal.Request, stdout io.Writer) error {
	open, err := removal.OpenOf(ctx, src.Store, j.Name, src.Name)
	if len(open) > 0 {
		r = open[0].Request
	} else if err == nil {
		r.Job, r.By = j.Name, byCommand()
		r, err = removal.Record(ctx, src.Store, r, time.Now())
	}
	if err != nil {
		return err
	}
	removed, _, err := j.Removal.Remove(ctx, src, byCommand(), time.Now())
	if err != nil {
		return fmt.Errorf("%w; request %s is open until %s: the same command does it, and so does `removals do`", err, r.ID, r.Due.Format(time.RFC3339))
	}
	then := "take it out of what is crawled, or a run finds it again"
	if j.Knows != nil {
		then = "it is not crawled again until --enable-provider=" + src.Name + " is given"
	}
	return sayRemoved(stdout, src.Name+": removed", removed, "; `removals show "+r.ID+"` has the receipt; "+then)
}

// sayRemoved says what a removal removed, or would.
func sayRemoved(stdout io.Writer, did string, r removal.Removed, then string) error {
	chunks := ""
	if r.DeletionList != "" {
		chunks = fmt.Sprintf(", %d chunks (to be deleted from the embeddings too: %s)", r.Chunks, r.DeletionList)
	}
	_, err := fmt.Fprintf(stdout, "%s %d rows, %d objects, %d dead letters%s%s\n", did, r.Total()-r.Objects-r.DeadLetters, r.Objects, r.DeadLetters, chunks, then)
	return err
}

// knows refuses a provider that has no policy and left nothing.
func (d *docsOptions) knows(ctx context.Context, o *RunOptions, s store.Store, provider string) (err error) {
	if d.files, err = readPolicies(d.Policies, time.Now()); err != nil {
		return err
	}
	changes, err := changesIn(ctx, s, providerKind.Words)
	if err != nil {
		return err
	}
	d.loaded = d.files
	for id := range changes { // also those that people removed
		d.loaded = append(d.loaded, policy.Policy{ProviderID: id})
	}
	return d.knowsProvider(ctx, o, "provider", provider)
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

// docsUnblock lets the docs job request pages of a provider again that answered 403.
var docsUnblock = Command{Under: docs.Job, Takes: []string{"db", "store", "raw-prefix", "results-prefix", "env", "config"}, Use: "unblock PROVIDER [URL]",
	Short: "request pages again that answered 403, which no run requests: the one at the URL, or all",
	Do: func(ctx context.Context, c *RunOptions, _ store.Store, w []string, stdout, _ io.Writer) error {
		if file, missing := db.Missing(c.DB); missing {
			return usage.Errorf("docs unblock: no run has used %s: add the --store and --db of the runs that crawled the provider", file)
		}
		base, err := openDB(ctx, c.DB, docs.Migrate)
		if err != nil {
			return err
		}
		defer func() { _ = base.Close() }() // every write is committed by then
		n, err := docs.Unblock(ctx, base, w[0], append(w, "")[1])
		if err != nil {
			return err
		}
		if n > 0 {
			_, err = fmt.Fprintf(stdout, "%d pages of %s that answered 403 are requested again from the next run on\n", n, w[0])
			return err
		}
		with, err := db.Texts(ctx, base, `SELECT DISTINCT provider FROM docs_blocked_urls ORDER BY provider`)
		if err != nil {
			return fmt.Errorf("looking for pages that answered 403: %w", err)
		}
		return usage.Errorf("docs unblock %s: no such page is blocked by a 403; providers with such pages: %s", strings.Join(w, " "), cmp.Or(strings.Join(with, ", "), "none"))
	}}

// Removals does the open requests to remove what was kept of sources of a job, and says what it removed. One that cannot be
// done does not keep it from the others.
func (j Job) Removals(ctx context.Context, dsn string, s store.Store, stdout io.Writer) error {
	var failed []error
	err := j.withSources(ctx, dsn, s, func(src removal.Source) error {
		return j.Removal.Do(ctx, src, byCommand(), time.Now(), func(e removal.Entry, r removal.Removed, receipts []removal.Receipt, err error) {
			if err == nil {
				err = sayRemoved(stdout, e.Provider+": removed", r, fmt.Sprintf("; %d receipts", len(receipts)))
			}
			failed = append(failed, err)
		})
	})
	return errors.Join(append(failed, err)...)
}
