package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/backup"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// backup makes the commands that copy the store and the database to another place, and look at what is there.
func (p *program) backup() *cobra.Command {
	keep := 0
	c := p.command("backup TARGET", "copy the store and the database to a directory or bucket; what it has is not copied again", func(s *option.Set) {
		s.Number(&keep, "keep", 0, "remove all but that many of the last snapshots; 0: none").Range(0, 100_000)
	}, func(ctx context.Context, w []string) error { return p.takeBackup(ctx, w[0], keep) }, append([]string{"db"}, stored...)...)
	c.Long = "copies the store, with the attributes of its objects, and the database, search index included, into a snapshot. Runs may be at work.\n" +
		"TARGET is a directory, s3://, r2:// or gs://. What it has is not copied again, also after a kill; what is copied is read back.\n" +
		"Leases and heartbeats are not copied: in a restored store nobody is at work, and a run that was is resumed by the next one."
	var asJSON bool
	c.AddCommand(p.command("ls TARGET", "the snapshots of a backup", jsonLines(&asJSON), func(ctx context.Context, w []string) error {
		return p.withPlace(ctx, "TARGET", w[0], false, func(at store.Store) error {
			all, err := backup.All(ctx, at)
			return errors.Join(err, list(asJSON, p.stdout, seq(all), "SNAPSHOT\tSTORE\tOBJECTS\tSIZE\tCOPIED\tDATABASE", snapshotCells))
		})
	}), p.command("check TARGET", "read all that a backup has, and compare each SHA-256", nil, func(ctx context.Context, w []string) error {
		return p.withPlace(ctx, "TARGET", w[0], false, func(at store.Store) error {
			done, end := p.progress("read")
			defer end()
			wrong, err := backup.Check(ctx, at, done)
			if errors.Is(err, backup.ErrNone) {
				return usage.Errorf("backup check %s: %w", w[0], err)
			}
			if err = errors.Join(append(wrong, err)...); err == nil {
				_, err = fmt.Fprintf(p.stdout, "%d contents, %s: each is as it was copied\n", done.Objects.Load(), ledger.FormatBytes(done.Written.Load()))
			}
			return err
		})
	}))
	return c
}

func snapshotCells(s backup.Snapshot) []string {
	return []string{s.ID, s.Store, fmt.Sprint(s.Objects), ledger.FormatBytes(s.Bytes), ledger.FormatBytes(s.Written), s.Dialect}
}

func (p *program) takeBackup(ctx context.Context, target string, keep int) error {
	if err := p.apart("TARGET", target); err != nil {
		return err
	}
	roots := p.o.Roots
	p.o.Roots = store.Roots{} // the bucket's own keys
	s, err := launch.OpenStore(ctx, &p.o.Options, p.stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it was only read
	name, err := whole(p.o.Store)
	if err != nil {
		return err
	}
	from := backup.Source{Store: s, Raw: roots.Key("datasets/"), Name: ledger.Redact(name)}
	named := p.o.DB != ""
	dsn, err := p.database()
	if err != nil {
		return err
	}
	if file, missing := db.Missing(dsn); missing && named {
		return usage.Errorf("--db: there is no database %s; correct it, or leave --db out for a snapshot of the store alone", file)
	} else if dsn == "" || missing {
		p.log("no database is named by --db, and none is in its usual place: the snapshot is of the store alone")
	} else {
		if from.DB, err = db.Open(ctx, dsn); err != nil {
			return fmt.Errorf("--db: %w", err)
		}
		defer func() { _ = from.DB.Close() }() // it was only read
	}
	return p.withPlace(ctx, "TARGET", target, true, func(to store.Store) error {
		done, end := p.progress("copied")
		snapshot, err := backup.Take(ctx, from, to, keep, done)
		end()
		switch {
		case errors.Is(err, backup.ErrOther):
			return usage.Errorf("backup %s: %w", target, err)
		case err != nil:
			return fmt.Errorf("%w; the same command continues", err)
		}
		with := ""
		if snapshot.Database != nil {
			with = " and the database"
		}
		_, err = fmt.Fprintf(p.stdout, "snapshot %s: %d objects, %s%s; copied %d contents, %s\nrestore it in an empty place with: restore %s --store=PLACE\n",
			snapshot.ID, snapshot.Objects, ledger.FormatBytes(snapshot.Bytes), with, snapshot.Copied, ledger.FormatBytes(snapshot.Written), target)
		return err
	})
}

// restore makes the command that copies a snapshot to an empty place.
func (p *program) restore() *cobra.Command {
	id := ""
	return p.command("restore SOURCE", "copy a snapshot of a backup to an empty store and an empty database", func(s *option.Set) {
		s.Text(&id, "snapshot", "", "which one, by its id in backup ls (default: the newest)")
	}, func(ctx context.Context, w []string) error {
		if err := p.apart("SOURCE", w[0]); err != nil {
			return err
		}
		return p.withPlace(ctx, "SOURCE", w[0], false, func(from store.Store) error {
			snapshot, err := backup.Find(ctx, from, id)
			if errors.Is(err, backup.ErrNone) || errors.Is(err, backup.ErrSeveral) {
				return usage.Errorf("restore %s --snapshot=%s: %w; `backup ls %[1]s` lists them", w[0], id, err)
			}
			if err != nil {
				return err
			}
			dsn, err := p.database()
			if err != nil {
				return err
			}
			if snapshot.Database == nil {
				dsn = ""
			} else if !strings.HasPrefix(dsn, snapshot.Dialect) {
				return usage.Errorf("the snapshot has a database of %s: add --db=%[1]s://… for it", snapshot.Dialect)
			}
			return p.withPlace(ctx, "--store", p.o.Store, true, func(to store.Store) error { return p.fill(ctx, from, snapshot, to, dsn) })
		})
	}, append([]string{"db"}, stored...)...)
}

func (p *program) fill(ctx context.Context, from store.Store, s backup.Snapshot, to store.Store, dsn string) error {
	done, end := p.progress("restored")
	err := backup.Restore(ctx, from, s, to, dsn, done)
	end()
	switch {
	case errors.Is(err, backup.ErrNotEmpty):
		return usage.Errorf("restoring to %s: %w", ledger.Redact(p.o.Store), err)
	case err != nil:
		return fmt.Errorf("%w; the same command continues", err)
	}
	with := ""
	if dsn != "" {
		with = " and the database " + ledger.Redact(dsn)
	}
	_, err = fmt.Fprintf(p.stdout, "restored snapshot %s: %d objects, %s%s\n", s.ID, done.Objects.Load(), ledger.FormatBytes(done.Written.Load()), with)
	return err
}

// database returns the database of the jobs that have one; "": none.
func (p *program) database() (string, error) {
	i := slices.IndexFunc(p.o.Jobs, func(j pipeline.Job) bool { return j.SQL })
	if p.o.DB == "" && !launch.LocalStore(p.o.Store) || i < 0 {
		return "", nil
	}
	its := p.o
	its.Job = its.Jobs[i].Name
	err := its.placeDB()
	if strings.HasSuffix(its.DB, ":memory:") {
		return "", err
	}
	return its.DB, err
}

// withPlace opens a place that is no job's store. create makes a directory.
func (p *program) withPlace(ctx context.Context, what, at string, create bool, do func(store.Store) error) error {
	if path, local := localPath(at); create && local {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return usage.Errorf("%s: %w", what, err)
		}
	}
	s, err := store.Open(ctx, at)
	if err != nil {
		return usage.Errorf("%s: %w", what, err)
	}
	return errors.Join(do(s), s.Close())
}

func localPath(at string) (path string, local bool) {
	path, ok := strings.CutPrefix(at, "file://")
	return path, ok || !strings.Contains(at, "://")
}

// whole is the absolute path of a local place, without symbolic links as far as it exists; of another place its URL.
func whole(at string) (string, error) {
	path, local := localPath(at)
	if !local {
		return at, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for there := path; ; there = filepath.Dir(there) {
		if real, err := filepath.EvalSymlinks(there); err == nil || there == filepath.Dir(there) {
			return filepath.ToSlash(filepath.Join(real, rest)), nil
		}
		rest = filepath.Join(filepath.Base(there), rest)
	}
}

// apart refuses a place that is in the store, or in which the store is.
func (p *program) apart(what, at string) error {
	var both [2]string
	for i, place := range []string{at, p.o.Store} {
		path, err := whole(place)
		if err != nil {
			return err
		}
		path, _, _ = strings.Cut(path, "?")
		both[i] = strings.TrimSuffix(path, "/") + "/"
	}
	if strings.HasPrefix(both[0], both[1]) || strings.HasPrefix(both[1], both[0]) {
		return usage.Errorf("%s: %s and the store %s are one place, or one is in the other: name a place of its own", what, ledger.Redact(at), ledger.Redact(p.o.Store))
	}
	return nil
}

// progress tells every half minute what a call has done.
func (p *program) progress(did string) (done *backup.Progress, end func()) {
	done = &backup.Progress{}
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.log("%d objects so far; %s %s", done.Objects.Load(), did, ledger.FormatBytes(done.Written.Load()))
			}
		}
	}()
	return done, func() { close(stop) }
}
