package docs

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// Removal says what is kept of a provider, also in the search index in the database. The ids of its chunks go to a deletion
// list in the store, for the system that stores the embeddings. A provider that was removed is not crawled until Enable.
func Removal() removal.What {
	tables := removal.Rows("provider", "docs_pages", "docs_links", "docs_chunks", "docs_blocks", "docs_changes", "docs_blocked_urls", "docs_runs",
		"docs_sources", "docs_page_sources", "docs_terms", "docs_api_files", "docs_repository_files")
	return removal.What{Job: Job, Kind: "provider", Migrate: Migrate, Names: `SELECT id FROM docs_providers`,
		Tables: append(tables, removal.Table{Name: "docs_robots", Column: "origin", Of: origins}),
		Others: []string{"docs_sessions", "docs_providers", "docs_budget"}, Hosts: "docs_hosts",
		Parts: []removal.Part{{Name: removal.SearchTable, Count: countIndexed, Remove: func(ctx context.Context, src removal.Source) error {
			_, err := removal.FromSearch(ctx, src.DB, src.Name)
			return err
		}}},
		Objects: removal.Under("handoff/docs/"), Lease: "docs/provider/", Before: beforeRemoval, Erase: removal.EraseSearch,
		After: func(ctx context.Context, tx *sql.Tx, src removal.Source, now time.Time) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO docs_providers (id, disabled_at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET disabled_at = excluded.disabled_at`, src.Name, db.Micros(now))
			return err
		},
	}
}

func countIndexed(ctx context.Context, src removal.Source) (n int64, err error) {
	if there, err := src.DB.HasTable(ctx, removal.SearchTable); err != nil || !there {
		return -1, err
	}
	err = src.DB.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+removal.SearchTable+` WHERE provider = $1`, src.Name).Scan(&n)
	return n, err
}

// beforeRemoval writes the deletion list, if there are chunks, because without the rows their ids are unknown.
func beforeRemoval(ctx context.Context, src removal.Source, now time.Time, r *removal.Removed) (err error) {
	if r.PagesSHA256, err = hashPages(ctx, src.DB, src.Name); err != nil {
		return err
	}
	rows, err := src.DB.QueryContext(ctx, `SELECT c.id, p.address FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key WHERE c.provider = $1 ORDER BY c.key, c.ordinal`, src.Name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := each(rows, func() error {
		h := handOffLine{Op: "delete", Provider: src.Name}
		if err := rows.Scan(&h.ID, &h.URL); err != nil {
			return err
		}
		r.Chunks++
		return e.Encode(h)
	}); err != nil || r.Chunks == 0 {
		return err
	}
	r.DeletionList = fmt.Sprintf("handoff/docs/deletions/%s-%s.jsonl", src.Name, now.UTC().Format("20060102T150405Z"))
	return store.Write(ctx, src.Store, r.DeletionList, b.Bytes(), store.PutOptions{ContentType: "application/x-ndjson"})
}

// removeRequested does the open requests to remove a provider before anything is crawled.
func (fn *listFn) removeRequested(ctx context.Context) error {
	src, log := removal.Source{Store: fn.Worker.Store, DB: fn.db}, fn.Worker.Log
	return Removal().Do(ctx, src, "run "+fn.Config.Lane.RunID, time.Now(), func(e removal.Entry, r removal.Removed, receipts []removal.Receipt, err error) {
		if err != nil {
			log.Error("removal_not_done", "provider", e.Provider, "request", e.ID, "due", e.Due, "error", ledger.Redact(err.Error()))
			return
		}
		log.Info("removal_done", "provider", e.Provider, "request", e.ID, "receipts", len(receipts), "objects", r.Objects, "chunks", r.Chunks)
	})
}
