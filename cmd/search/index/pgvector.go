package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/newsfork/seed-engine/io/db"
)

// typed is the table of vectors in the type of pgvector, an extension of PostgreSQL. It is
// no migration, because a PostgreSQL may get and lose the extension at any time.
const typed = "search_pgvector"

// extension is pgvector in a database.
type extension struct {
	schema  string // quoted; "": it is not there
	version string
	ready   bool // Prepare has made the table of its type
}

func pgvector(ctx context.Context, d *db.DB) (e extension, err error) {
	if d.Dialect != db.Postgres {
		return e, nil
	}
	err = d.QueryRowContext(ctx, `SELECT n.nspname, e.extversion, EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'vector' AND NOT attisdropped)
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'`, typed).Scan(&e.schema, &e.version, &e.ready)
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("looking for pgvector: %w", err)
	}
	e.schema = pgx.Identifier{e.schema}.Sanitize()
	return e, nil
}

// Home says where the vectors are kept.
type Home struct {
	Pgvector string // the extension's version; "": as bytes
	Why      string // why not in pgvector, if the database is PostgreSQL
}

// Prepare moves the vectors into pgvector's type where PostgreSQL has the extension, or may
// create it. Call it with the lease.
func (x Index) Prepare(ctx context.Context) (h Home, err error) {
	if x.DB.Dialect != db.Postgres {
		return h, nil
	}
	e, err := pgvector(ctx, x.DB)
	if err == nil && e.schema == "" {
		e, h.Why, err = create(ctx, x.DB)
	}
	if err != nil || e.schema == "" {
		return h, err
	}
	h.Pgvector = e.version
	// All of it or nothing, because a search looks at one of the two places.
	err = x.DB.Tx(ctx, func(tx *sql.Tx) error {
		for _, s := range []string{
			`CREATE TABLE IF NOT EXISTS ` + typed + ` (id TEXT NOT NULL, model TEXT NOT NULL, input TEXT NOT NULL, PRIMARY KEY (id, model))`,
			// To drop the extension drops this column, and no rows.
			`ALTER TABLE ` + typed + ` ADD COLUMN IF NOT EXISTS vector ` + e.schema + `.vector`,
			`DELETE FROM ` + typed + ` WHERE vector IS NULL`,
		} {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		for {
			n, err := moveSome(ctx, tx, e.place())
			if err != nil || n == 0 {
				return err
			}
		}
	})
	if err != nil {
		return h, fmt.Errorf("moving the vectors into pgvector: %w", err)
	}
	return h, nil
}

// create creates the extension, or says why not.
func create(ctx context.Context, d *db.DB) (e extension, why string, err error) {
	var n int
	if err := d.QueryRowContext(ctx, `SELECT COUNT(*) FROM pg_available_extensions WHERE name = 'vector'`).Scan(&n); err != nil {
		return e, "", fmt.Errorf("looking for pgvector: %w", err)
	}
	if n == 0 {
		return e, "this PostgreSQL has no pgvector; when its package is installed there, the next embed uses it", nil
	}
	_, failure := d.ExecContext(ctx, `CREATE EXTENSION IF NOT EXISTS vector`)
	e, err = pgvector(ctx, d) // another process may have been first
	if err == nil && e.schema == "" {
		why = fmt.Sprintf("pgvector is installed, but this user may not create it; let an administrator run CREATE EXTENSION vector in this database (%v)", failure)
	}
	return e, why, err
}

// moveSome moves some of the vectors that are bytes, and returns their number.
func moveSome(ctx context.Context, tx *sql.Tx, to place) (n int, err error) {
	type row struct {
		id, model, input string
		vector           []byte
	}
	found, err := tx.QueryContext(ctx, `SELECT id, model, input, vector FROM `+plain+` LIMIT 500`)
	if err != nil {
		return 0, err
	}
	var some []row
	for found.Next() {
		var w row
		if err := found.Scan(&w.id, &w.model, &w.input, &w.vector); err != nil {
			return 0, errors.Join(err, found.Close())
		}
		some = append(some, w)
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return 0, err
	}
	for _, w := range some {
		if _, err := tx.ExecContext(ctx, to.insert, w.id, w.model, w.input, text(unpack(nil, w.vector))); err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+plain+` WHERE id = $1 AND model = $2`, w.id, w.model); err != nil {
			return 0, err
		}
	}
	return len(some), nil
}

// isDimensions reports whether PostgreSQL refused to compare vectors of different lengths.
func isDimensions(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22000"
}
