package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// Removal says what is kept of a provider, also in the search index in the database. The ids of its chunks go to a deletion
// list in the store, for the system that stores the embeddings. A provider that was removed is not crawled until Enable.
func Removal() removal.What {
	tables := removal.Rows("provider", "docs_pages", "docs_links", "docs_chunks", "docs_blocks", "docs_changes", "docs_blocked_urls", "docs_runs",
		"docs_sources", "docs_page_sources", "docs_repository_files")
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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for h, err := range db.Select(ctx, src.DB, func(r *sql.Rows) (handOffLine, error) {
		h := handOffLine{Op: "delete", Provider: src.Name}
		return h, r.Scan(&h.ID, &h.URL)
	}, `SELECT c.id, p.address FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key
		WHERE c.provider = $1 ORDER BY c.key, c.ordinal`, src.Name) {
		if err == nil {
			err = e.Encode(h)
		}
		if err != nil {
			return err
		}
		r.Chunks++
	}
	if r.Chunks == 0 {
		return nil
	}
	r.DeletionList = fmt.Sprintf("handoff/docs/deletions/%s-%s.jsonl", src.Name, now.UTC().Format("20060102T150405Z"))
	return store.Write(ctx, src.Store, r.DeletionList, b.Bytes(), store.PutOptions{ContentType: "application/x-ndjson"})
}

// hashPages proves which pages a provider had, "" for none.
func hashPages(ctx context.Context, d *db.DB, provider string) (string, error) {
	pages, err := db.Texts(ctx, d, `SELECT key || ' ' || content_hash FROM docs_pages WHERE provider = $1 ORDER BY key`, provider)
	if err != nil || len(pages) == 0 {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(pages, "\n") + "\n"))
	return hex.EncodeToString(sum[:]), nil
}

// origins are those from which pages of the provider were requested.
func origins(ctx context.Context, src removal.Source) ([]string, error) {
	addresses, err := db.Texts(ctx, src.DB, `SELECT DISTINCT address FROM docs_pages WHERE provider = $1`, src.Name)
	if err != nil {
		return nil, err
	}
	origins := map[string]bool{}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		origins[origin(u)] = true
	}
	return slices.Sorted(maps.Keys(origins)), nil
}

// Providers returns the ids of the providers that have rows in the database, sorted.
// It changes nothing. A database without the job's tables has none.
func Providers(ctx context.Context, d *db.DB) ([]string, error) {
	if there, err := d.HasTable(ctx, "docs_providers"); err != nil || !there {
		return nil, err
	}
	ids, err := Removal().Known(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("reading the ids of the providers: %w", err)
	}
	return ids, nil
}

// Enable lets a purged provider be crawled again; false: it was not disabled.
func Enable(ctx context.Context, d *db.DB, provider string) (bool, error) {
	n, err := db.Changed(d.ExecContext(ctx, `UPDATE docs_providers SET disabled_at = $2 WHERE id = $1 AND NOT `+d.Never("disabled_at"),
		provider, int64(0)))
	if err != nil {
		return false, fmt.Errorf("enabling %s: %w", provider, err)
	}
	return n > 0, nil
}

// Unblock lets pages of a provider be requested again that answered 403: the page with this
// URL, or all of them for "". It returns how many.
func Unblock(ctx context.Context, d *db.DB, provider, address string) (int64, error) {
	key := address
	if u, err := url.Parse(address); err == nil && address != "" {
		if k, err := canonical.Key(u, []string{"*"}); err == nil {
			key = k
		}
	}
	n, err := db.Changed(d.ExecContext(ctx, `DELETE FROM docs_blocked_urls WHERE provider = $1 AND ($2 = '' OR address = $2 OR key = $3)`,
		provider, address, key))
	if err != nil {
		return 0, fmt.Errorf("lifting the blocks of %s: %w", provider, err)
	}
	return n, nil
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
