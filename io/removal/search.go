package removal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
)

// What the jobs know of the search index, which cmd/search keeps in the database of the docs job: who holds SearchLease alone may
// change it; the other tables name the rows of SearchTable.
const (
	SearchTable = "search_chunks"
	SearchLease = "search/index"
)

// searchTables returns the tables of the search index whose rows have the id of a chunk; nil if there is no index.
func searchTables(ctx context.Context, d *db.DB) (tables []string, err error) {
	for _, table := range []string{SearchTable, "search_vectors", "search_pgvector"} {
		there, err := d.HasTable(ctx, table)
		if err != nil {
			return nil, err
		}
		if there {
			tables = append([]string{table}, tables...) // the chunks last: the others are found by them
		}
	}
	return tables, nil
}

// FromSearch removes a provider's chunks with their words and vectors from the search index, and returns their number. A database
// without an index contains none. It fails while something else changes the index. EraseSearch removes what is then left in the
// database's files.
func FromSearch(ctx context.Context, d *db.DB, provider string) (n int64, err error) {
	tables, err := searchTables(ctx, d)
	if err != nil || tables == nil {
		return 0, err
	}
	l, err := lease.Acquire(ctx, lease.InDB(d), SearchLease, lease.CurrentHolder(), time.Minute)
	if err != nil {
		return 0, err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {})
	defer func() { err = errors.Join(err, release()) }()
	err = d.Do(ctx, fmt.Sprintf("removing %s from the search index", provider), func(tx *sql.Tx) error {
		if d.Dialect == db.SQLite {
			if _, err := tx.ExecContext(ctx, `DELETE FROM search_words WHERE rowid IN (SELECT n FROM search_chunks WHERE provider = $1)`, provider); err != nil {
				return err
			}
		}
		for _, table := range tables {
			n, err = db.Changed(tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE id IN (SELECT id FROM search_chunks WHERE provider = $1)`, provider))
			if err != nil { // n is of the chunks, at last
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE search_version SET n = n + 1`) // whoever keeps vectors in memory reads them again
		return err
	})
	return n, err
}

// EraseSearch removes what deleted chunks leave in the database's files. A database without an index contains nothing of them.
func EraseSearch(ctx context.Context, d *db.DB) error {
	tables, err := searchTables(ctx, d)
	if err != nil || tables == nil {
		return err
	}
	if d.Dialect == db.SQLite { // deleted words stay until their part of the index is merged
		if _, err := d.ExecContext(ctx, `INSERT INTO search_words (search_words) VALUES ('optimize')`); err != nil {
			return fmt.Errorf("erasing deleted words from the search index: %w", err)
		}
	}
	if err := d.Erase(ctx, tables...); err != nil {
		return fmt.Errorf("erasing deleted chunks from the search index: %w", err)
	}
	return nil
}
