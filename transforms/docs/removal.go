package docs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// Remove purges a provider, and writes the receipts of the open requests to remove it. by
// says who does it. After ErrNotErased a request stays open, and what was removed is
// written down for the receipt of a later call.
func Remove(ctx context.Context, d *db.DB, s store.Store, provider, by string, now time.Time) (PurgeResult, []removal.Receipt, error) {
	asked, err := removal.OpenOf(ctx, s, Job, provider)
	if err != nil {
		return PurgeResult{}, nil, err
	}
	tries := make([]removal.Removed, len(asked))
	p, purged := purgeAll(ctx, d, s, provider, now, func(p PurgeResult) (err error) {
		for i, e := range asked {
			if tries[i], err = removal.Begin(ctx, s, e, removal.Removed{At: now, By: by, Rows: p.Rows, Objects: p.Objects, DeadLetters: p.DeadLetters, Chunks: p.Chunks, DeletionList: p.DeletionList,
				PagesSHA256: p.PagesSHA256, ObjectsSHA256: p.ObjectsSHA256}); err != nil {
				return err
			}
		}
		return nil
	})
	for i, e := range asked {
		if tries[i].At.IsZero() { // it ended before it had looked
			tries[i] = removal.Removed{At: now, By: by}
		}
		if err := removal.End(ctx, s, e, tries[i], purged); err != nil {
			return p, nil, errors.Join(purged, err)
		}
	}
	if purged != nil || len(asked) == 0 {
		return p, nil, purged
	}
	left, err := countLeft(ctx, d, s, provider)
	if err != nil {
		return p, nil, err
	}
	var receipts []removal.Receipt
	for _, e := range asked {
		r, err := removal.Done(ctx, s, e, removal.Receipt{DoneAt: now.UTC(), By: by, Left: left, Erased: true, Database: string(d.Dialect)})
		if err != nil {
			return p, receipts, err
		}
		receipts = append(receipts, r)
	}
	return p, receipts, nil
}

// countLeft counts what the tables and the hand-off still have of a provider. Anything is
// an error, because a receipt says that nothing is left.
func countLeft(ctx context.Context, d *db.DB, s store.Store, provider string) (map[string]int64, error) {
	left := map[string]int64{}
	for o, err := range s.List(ctx, handOffPrefix(provider)) {
		if err != nil {
			return nil, fmt.Errorf("looking for what is left of %s: %w", provider, err)
		}
		return nil, fmt.Errorf("%s was written while %s was removed; remove it again when no run is at work", o.Key, provider)
	}
	tables := slices.Concat(providerTables, sourceTables)
	if there, err := d.HasTable(ctx, removal.SearchTable); err != nil {
		return nil, err
	} else if there {
		tables = append(tables, removal.SearchTable)
	}
	for _, table := range tables {
		var n int64
		if err := d.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` WHERE provider = $1`, provider).Scan(&n); err != nil {
			return nil, fmt.Errorf("looking for what is left of %s: %w", provider, err)
		}
		if left[table] = n; n > 0 {
			return nil, fmt.Errorf("%d rows of %s were written while %s was removed; remove it again when no run is at work", n, table, provider)
		}
	}
	return left, nil
}

// removeRequested does the open requests to remove a provider before anything is crawled.
// What cannot be done now stays open.
func (fn *listFn) removeRequested(ctx context.Context) error {
	open, err := removal.OpenOf(ctx, fn.Worker.Store, Job, "")
	if err != nil {
		return err
	}
	for _, e := range open {
		p, receipts, err := Remove(ctx, fn.db, fn.Worker.Store, e.Provider, "run "+fn.Config.Lane.RunID, time.Now())
		if err != nil {
			fn.Worker.Log.Error("removal_not_done", "provider", e.Provider, "request", e.ID, "due", e.Due, "error", ledger.Redact(err.Error()))
			continue
		}
		fn.Worker.Log.Info("removal_done", "provider", e.Provider, "request", e.ID, "receipts", len(receipts), "objects", p.Objects, "chunks", p.Chunks)
	}
	return nil
}
