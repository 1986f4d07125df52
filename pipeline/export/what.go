// Package export writes what the jobs found to files: one table a file, from the store or
// from the database, filtered, while runs may be at work. No promise: see docs/library.md.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Source is where rows come from, and Filter chooses some of them.
type (
	Source = rows.Source
	Filter = rows.Filter
)

// What is one kind of rows that can be exported.
type What struct{ rows.What }

// NeedsDB reports whether the rows are in the database.
func (w What) NeedsDB() bool { return w.Migrate != nil }

// Write writes the rows that keep keeps (nil: all) to a file, and returns how many there were. Names of a filter that the
// source has nothing of are refused.
func (w What) Write(ctx context.Context, src Source, keep func(explore.Record) bool, f rows.Format, to io.Writer) (int64, error) {
	if w.NeedsDB() {
		if err := w.Known(ctx, src); err != nil {
			return 0, err
		}
	}
	n, err := w.What.Write(ctx, src, keep, f, to)
	if err == nil && n == 0 {
		err = w.Known(ctx, src)
	}
	return n, err
}

// All are the kinds of rows that can be exported.
var All = all()

func all() (all []What) {
	for _, j := range pipeline.All() {
		for _, w := range j.Rows {
			all = append(all, What{w})
		}
	}
	return all
}

// Named returns the What of that name.
func Named(name string) (What, error) {
	i := slices.IndexFunc(All, func(w What) bool { return w.Name == name })
	if i < 0 {
		return What{}, usage.Errorf("there is no %s to export; use %s", name, usage.Or(Names()))
	}
	return All[i], nil
}

// Names are the names of All.
func Names() (names []string) {
	for _, w := range All {
		names = append(names, w.Name)
	}
	return names
}

// Known refuses names of a filter that the source has nothing of.
func (w What) Known(ctx context.Context, src Source) error {
	if !w.NeedsDB() {
		return knownPartition(ctx, src)
	}
	if len(src.Names) == 0 {
		return nil
	}
	there, err := w.Names(ctx, src.DB)
	if err != nil {
		return err
	}
	for _, name := range src.Names {
		switch {
		case slices.Contains(there, name):
		case len(there) == 0:
			return usage.Errorf("--%s=%s: nothing is stored of it: no run of the job has stored anything yet, or it was removed (pipeline removals)", w.Filters[0], name)
		default:
			return usage.Errorf("--%s=%s: the database has nothing of it; use %s", w.Filters[0], name, usage.Or(there))
		}
	}
	return nil
}

// knownPartition refuses a run that the store does not know, and a country, category or
// date of which it has no raw file.
func knownPartition(ctx context.Context, src Source) error {
	if src.Run != "" {
		if _, err := ledger.Load(ctx, src.Store, src.Run); errors.Is(err, store.ErrNotExist) {
			return usage.Errorf("there is no run %s in this store; `runs` lists them", src.Run)
		}
	}
	if src.Country+src.Category+src.Date == "" {
		return nil
	}
	there := map[string]bool{}
	for o, err := range src.Store.List(ctx, hive.Datasets) {
		if err != nil {
			return fmt.Errorf("listing the raw files: %w", err)
		}
		r, ok := hive.ParseRaw(o.Key)
		if !ok {
			continue
		}
		p := r.Partition
		if src.Wants(p) {
			return nil
		}
		there[p.Country+"/"+p.Category+"/"+p.Date] = true
	}
	if len(there) == 0 {
		return nil
	}
	all := make([]string, 0, len(there))
	for p := range there {
		all = append(all, p)
	}
	slices.Sort(all)
	const most = 20
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return usage.Errorf("no domain has --country=%q --category=%q --date=%q; the store has country/category/date %s", src.Country, src.Category, src.Date, strings.Join(all, ", "))
}
