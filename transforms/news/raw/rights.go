package raw

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// reservedRow is an article that was not fetched, or not stored, because it is reserved for a run's purpose.
type reservedRow struct {
	Publisher string    `parquet:"publisher,dict" doc:"id of the publisher"`
	URL       string    `parquet:"url" doc:"of the article"`
	Purpose   string    `parquet:"purpose,dict" doc:"--purpose of the run: search, ai-input, ai-train or archive"`
	Verdict   string    `parquet:"verdict,dict" doc:"reserved or contradictory"`
	Place     string    `parquet:"place" doc:"URL of the document that says so"`
	Line      int64     `parquet:"line" doc:"its line, from 1; 0: a header"`
	Raw       string    `parquet:"raw" doc:"the line"`
	SHA256    string    `parquet:"sha256" doc:"of the document's bytes as received"`
	ReadAt    time.Time `parquet:"read_at,timestamp(microsecond)" doc:"when the document was fetched"`
	DecidedAt time.Time `parquet:"decided_at,timestamp(microsecond)" doc:"when the run decided"`
}

// reservedRows yields the articles that were kept out, by publisher and URL.
func reservedRows(ctx context.Context, d *db.DB, f rows.Filter) iter.Seq2[reservedRow, error] {
	return rows.Select[reservedRow](ctx, d, f, "source", "decided_at >= $3",
		`SELECT source, url, purpose, verdict, place, line, raw, sha256, read_at, decided_at FROM news_reserved WHERE %s ORDER BY source, url`)
}

// setRights stores what is known of the rights of an article; nil: they stay.
func setRights(ctx context.Context, tx *sql.Tx, id string, r *rights.Rights) error {
	if r == nil {
		return nil
	}
	columns, err := permit.Columns(*r)
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE news_articles SET rights = $2, rights_search = $3, rights_ai_input = $4, rights_ai_train = $5, rights_archive = $6 WHERE id = $1`, append([]any{id}, columns...)...)
	}
	return err
}

// Withheld is an article of which nothing may be handed on.
type Withheld struct {
	Source, URL string
	Canonical   []string // its addresses' identities (Policy.Canonical)
	SitemapAt   time.Time
	Requested   bool // its page was fetched: it is not requested again before its sitemap has a newer date
	Decision    *rights.Decision
	Rights      rights.Rights
}

// Withhold records why an article is withheld, and removes what is stored of it.
func Withhold(ctx context.Context, d *db.DB, w Withheld, now time.Time) error {
	columns, err := permit.Columns(w.Rights)
	if err != nil {
		return err
	}
	return d.Do(ctx, fmt.Sprintf("recording that an article of %s is reserved", w.Source), func(tx *sql.Tx) error {
		for _, canonical := range w.Canonical {
			if _, err := tx.ExecContext(ctx, `DELETE FROM news_versions WHERE article_id IN (SELECT id FROM news_articles WHERE source = $1 AND canonical_url = $2)`, w.Source, canonical); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM news_articles WHERE source = $1 AND canonical_url = $2`, w.Source, canonical); err != nil {
				return err
			}
			if w.Requested {
				if err := remember(ctx, tx, Row{Source: w.Source, Canonical: canonical, SitemapAt: w.SitemapAt, FetchedAt: now}, "reserved"); err != nil {
					return err
				}
			}
		}
		e := w.Decision
		_, err := tx.ExecContext(ctx, `INSERT INTO news_reserved (source, url, url_hash, purpose, verdict, place, line, raw, sha256, read_at, rights, decided_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (source, url_hash) DO UPDATE SET purpose = excluded.purpose, verdict = excluded.verdict,
			place = excluded.place, line = excluded.line, raw = excluded.raw, sha256 = excluded.sha256, read_at = excluded.read_at, rights = excluded.rights, decided_at = excluded.decided_at`,
			w.Source, w.URL, Hash(w.Canonical[0]), string(e.Purpose), e.Verdict, e.Source, int64(e.Line), e.Raw, e.SHA256, db.Micros(e.Time()), columns[0], db.Micros(now))
		return err
	})
}

// Judged is an article that is stored or withheld, with what is known of its rights.
type Judged struct {
	URL, Canonical string
	Withheld       bool // Canonical is a hash then
	Rights         rights.Rights
}

// ToJudge returns the articles of a publisher that are stored or withheld.
func ToJudge(ctx context.Context, d *db.DB, source string) (all []Judged, err error) {
	for j, err := range db.Select(ctx, d, func(r *sql.Rows) (j Judged, err error) {
		var withheld int64
		var text string
		if err := r.Scan(&j.URL, &j.Canonical, &withheld, &text); err != nil {
			return j, err
		}
		j.Withheld = withheld != 0
		j.Rights, err = permit.Stored(text)
		return j, err
	}, `SELECT url, canonical_url, 0, rights FROM news_articles WHERE source = $1 UNION ALL SELECT url, url_hash, 1, rights FROM news_reserved WHERE source = $1`, source) {
		if err != nil {
			return nil, fmt.Errorf("reading the rights of the articles of %s: %w", source, err)
		}
		all = append(all, j)
	}
	return all, err
}

// Release lets a withheld article be fetched again.
func Release(ctx context.Context, d *db.DB, source, hash string) error {
	return d.Do(ctx, "releasing an article of "+source, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM news_urls WHERE source = $1 AND state = 'reserved' AND url_hash = $2`, source, hash)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM news_reserved WHERE source = $1 AND url_hash = $2`, source, hash)
		}
		return err
	})
}
