package lease

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// InDB keeps leases as rows of a database.
func InDB(d *db.DB) Place { return inDB{d} }

type inDB struct{ db *db.DB }

func (p inDB) now() time.Time { return p.db.Now() }

// identity is the JSON in the column holder. Rows of old versions have a run's id there.
type identity struct {
	Holder
	Token string        `json:"token"`
	TTL   time.Duration `json:"ttl_ns,omitempty"`
}

func (r record) identity() string {
	b, _ := json.Marshal(identity{r.Holder, r.Token, r.TTL}) // strings and numbers always encode
	return string(b)
}

func (p inDB) newest(ctx context.Context, name string) (epoch int64, r record, err error) {
	if err := p.prepare(ctx); err != nil {
		return 0, r, err
	}
	var holder string
	var acquired, expires int64
	err = p.db.QueryRowContext(ctx, `SELECT epoch, holder, acquired_at, expires_at FROM leases WHERE name = $1`, name).Scan(&epoch, &holder, &acquired, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, r, nil
	}
	if err != nil {
		return 0, r, fmt.Errorf("reading lease %s: %w", name, err)
	}
	var id identity
	if json.Unmarshal([]byte(holder), &id) != nil {
		id.RunID = holder
	}
	r = record{Holder: id.Holder, Token: id.Token, TTL: id.TTL, AcquiredAt: db.Time(acquired), ExpiresAt: db.Time(expires), Released: expires == 0}
	return epoch, r, nil
}

func (p inDB) acquire(ctx context.Context, name string, epoch int64, before, r record) (bool, error) {
	if epoch == 0 {
		return p.changesRow(ctx, `INSERT INTO leases (name, holder, epoch, acquired_at, expires_at) VALUES ($1, $2, 1, $3, $4) ON CONFLICT (name) DO NOTHING`,
			name, r.identity(), db.Micros(r.AcquiredAt), db.Micros(r.ExpiresAt))
	}
	expires := db.Micros(before.ExpiresAt)
	if before.Released {
		expires = 0
	}
	return p.changesRow(ctx, `UPDATE leases SET holder = $1, epoch = epoch + 1, acquired_at = $2, expires_at = $3 WHERE name = $4 AND epoch = $5 AND expires_at = $6`,
		r.identity(), db.Micros(r.AcquiredAt), db.Micros(r.ExpiresAt), name, epoch, expires)
}

func (p inDB) renew(ctx context.Context, name string, epoch int64, r record) (bool, error) {
	expires := db.Micros(r.ExpiresAt)
	if r.Released {
		expires = 0
	}
	return p.changesRow(ctx, `UPDATE leases SET expires_at = $1 WHERE name = $2 AND epoch = $3 AND holder = $4 AND expires_at > 0`, expires, name, epoch, r.identity())
}

// lock reports whether we have a lease, and prevents others from acquiring it until
// the transaction ends: PostgreSQL locks its row, SQLite has only one writer.
func (p inDB) lock(ctx context.Context, tx *sql.Tx, name string, r record) (ours bool, err error) {
	query := `SELECT 1 FROM leases WHERE name = $1 AND holder = $2 AND expires_at > 0`
	if p.db.Dialect == db.Postgres {
		query += ` FOR SHARE`
	}
	var one int
	err = tx.QueryRowContext(ctx, query, name, r.identity()).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// changesRow runs a statement and reports whether it changed a row.
func (p inDB) changesRow(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	err = p.db.Tx(ctx, func(tx *sql.Tx) error {
		n, err := db.Changed(tx.ExecContext(ctx, statement, args...))
		changed = n == 1
		return err
	})
	return changed, err
}

// prepare creates the table. The name of its migrations is "db", because they were
// once in package db.
func (p inDB) prepare(ctx context.Context) error {
	return p.db.Once("leases", func() error { return p.db.Migrate(ctx, "db", db.Files(migrations)) })
}

// Table has the leases in a database.
const Table = "leases"

// Forget removes what a database keeps of a lease that nobody holds. A lease that is held stays.
func Forget(ctx context.Context, d *db.DB, name string) error {
	p := inDB{d}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	_, err := p.changesRow(ctx, `DELETE FROM leases WHERE name = $1 AND expires_at = 0`, name)
	return err
}
