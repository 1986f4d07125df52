// Package index is the index by which the chunks of documentation are found: by their
// words and by their vectors, in SQLite or PostgreSQL. Of a chunk it keeps 200 characters
// and a link, and the whole text only where the provider's terms allow that. The words
// are kept in alphabetical order, and vectors in a table without any text. No promise: see docs/library.md.
package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/removal"
)

//go:embed migrations
var migrations embed.FS

// Chunk is a part of a page.
type Chunk struct {
	ID, Provider, URL, Anchor, Title, Context, Language, Text string
	Ordinal                                                   int
	FetchedAt                                                 time.Time `json:"fetched_at"` // zero: not known
}

// Input is what the chunk's vector is made of.
func (c Chunk) Input() string {
	if c.Context == "" {
		return c.Text
	}
	return c.Context + "\n\n" + c.Text
}

func (c Chunk) input() string {
	sum := sha256.Sum256([]byte(c.Input()))
	return hex.EncodeToString(sum[:])
}

// Index finds chunks. Vectors are those of one model; "" means that there are none.
type Index struct {
	DB    *db.DB
	Model string
	kept  *kept // nil: each search reads the vectors from the database
}

// Open makes the tables in a database.
func Open(ctx context.Context, d *db.DB, model string) (Index, error) {
	return Index{DB: d, Model: model}, d.Migrate(ctx, "search", db.Files(migrations))
}

// Lease is the right to change the index.
func (x Index) Lease(ctx context.Context) (*lease.Lease, error) {
	return lease.Acquire(ctx, lease.InDB(x.DB), removal.SearchLease, lease.CurrentHolder(), time.Minute)
}

// Lacking returns the places of the chunks that have no vector of their text yet.
func (x Index) Lacking(ctx context.Context, chunks []Chunk) (places []int, err error) {
	if x.Model == "" {
		return nil, nil
	}
	for i, c := range chunks {
		var input string
		err := x.DB.QueryRowContext(ctx, `SELECT input FROM search_vectors WHERE id = $1 AND model = $2`, c.ID, x.Model).Scan(&input)
		if err != nil && err != sql.ErrNoRows {
			return nil, fmt.Errorf("looking for the vector of chunk %s: %w", c.ID, err)
		}
		if input != c.input() {
			places = append(places, i)
		}
	}
	return places, nil
}

// Change is what happens to the chunks of one page.
type Change struct {
	Put     []Chunk
	Vectors map[string][]float32 // of those in Put whose vectors are new, by id
	Whole   bool                 // the provider's terms allow to keep the whole text
	Delete  []string             // ids
	At      time.Time
}

// maxExcerpt is how many characters of a text are shown where its terms are not known.
const maxExcerpt = 200

func excerpt(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > maxExcerpt {
		r = append(r[:maxExcerpt-1], '…')
	}
	return string(r)
}

// Apply makes one change, all of it or nothing.
func (x Index) Apply(ctx context.Context, c Change) error {
	return x.DB.Do(ctx, "changing the search index", func(tx *sql.Tx) error {
		for _, v := range c.Vectors { // all of them have one length
			if err := x.fits(ctx, tx, len(v)); err != nil {
				return err
			}
			break
		}
		for _, id := range c.Delete {
			if err := x.remove(ctx, tx, id); err != nil {
				return err
			}
		}
		for _, k := range c.Put {
			if err := x.put(ctx, tx, k, c); err != nil {
				return err
			}
		}
		return changed(ctx, tx)
	})
}

// changed gives the index a new version.
func changed(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE search_version SET n = n + 1`)
	return err
}

func (x Index) remove(ctx context.Context, tx *sql.Tx, id string) error {
	if err := x.removeWords(ctx, tx, id); err != nil {
		return err
	}
	for _, table := range []string{"search_vectors", "search_chunks"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// removeWords removes a chunk's words where they are in a table of their own.
func (x Index) removeWords(ctx context.Context, tx *sql.Tx, id string) error {
	if x.DB.Dialect != db.SQLite {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM search_words WHERE rowid IN (SELECT n FROM search_chunks WHERE id = $1)`, id)
	return err
}

func (x Index) put(ctx context.Context, tx *sql.Tx, k Chunk, c Change) error {
	whole := ""
	if c.Whole {
		whole = k.Text
	}
	fetched := int64(0)
	if !k.FetchedAt.IsZero() {
		fetched = db.Micros(k.FetchedAt)
	}
	// A chunk that is handed over again without a change keeps the time of its change.
	columns, values, update := "", "", ""
	args := []any{k.ID, k.Provider, k.URL, k.Anchor, k.Title, k.Context, k.Language, k.Ordinal, excerpt(k.Text), whole, fetched, db.Micros(c.At)}
	found := bag(k.Title + "\n" + k.Context + "\n" + k.Text)
	if x.DB.Dialect == db.Postgres {
		columns, values, update = ", words", ", to_tsvector('english', $13)", ", words = excluded.words"
		args = append(args, found)
	} else if err := x.removeWords(ctx, tx, k.ID); err != nil {
		return err
	}
	var n int64
	err := tx.QueryRowContext(ctx, `INSERT INTO search_chunks (id, provider, url, anchor, title, context, language, ordinal, excerpt, whole, fetched_at, changed_at`+columns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12`+values+`)
		ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, url = excluded.url, anchor = excluded.anchor, title = excluded.title, context = excluded.context,
		language = excluded.language, ordinal = excluded.ordinal, excerpt = excluded.excerpt, whole = excluded.whole, fetched_at = excluded.fetched_at`+update+` RETURNING n`, args...).Scan(&n)
	if err != nil {
		return err
	}
	if x.DB.Dialect == db.SQLite {
		if _, err := tx.ExecContext(ctx, `INSERT INTO search_words (rowid, words) VALUES ($1, $2)`, n, found); err != nil {
			return err
		}
	}
	v, ok := c.Vectors[k.ID]
	if !ok {
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO search_vectors (id, model, input, vector) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id, model) DO UPDATE SET input = excluded.input, vector = excluded.vector`, k.ID, x.Model, k.input(), pack(v))
	return err
}

// Restrict removes the whole texts of providers whose terms do not allow them any more.
func (x Index) Restrict(ctx context.Context, allowed map[string]bool) error {
	providers, err := db.Texts(ctx, x.DB, `SELECT DISTINCT provider FROM search_chunks WHERE whole <> ''`)
	if err != nil {
		return fmt.Errorf("looking for whole texts in the search index: %w", err)
	}
	for _, p := range providers {
		if allowed[p] {
			continue
		}
		if _, err := x.DB.ExecContext(ctx, `UPDATE search_chunks SET whole = '' WHERE provider = $1`, p); err != nil {
			return fmt.Errorf("removing the whole texts of %s from the search index: %w", p, err)
		}
	}
	return nil
}

// Done reports whether a hand-off has been read for this model.
func (x Index) Done(ctx context.Context, name string) (bool, error) {
	var n int
	err := x.DB.QueryRowContext(ctx, `SELECT COUNT(*) FROM search_done WHERE name = $1 AND model = $2`, name, x.Model).Scan(&n)
	return n > 0, err
}

// SetDone says that a hand-off has been read.
func (x Index) SetDone(ctx context.Context, name string, at time.Time) error {
	_, err := x.DB.ExecContext(ctx, `INSERT INTO search_done (name, model, at) VALUES ($1, $2, $3) ON CONFLICT (name, model) DO NOTHING`, name, x.Model, db.Micros(at))
	return err
}

// Size is how many chunks there are, and how many lack a vector of this model.
func (x Index) Size(ctx context.Context) (chunks, lack int64, err error) {
	err = x.DB.QueryRowContext(ctx, `SELECT COUNT(*), COUNT(*) - COUNT(v.id) FROM search_chunks c LEFT JOIN search_vectors v ON v.id = c.id AND v.model = $1`, x.Model).Scan(&chunks, &lack)
	return chunks, lack, err
}
