package raw

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/parse/simhash"
)

// maxVersions is how many earlier versions of an article are kept: a live blog has a new
// one in every run.
const maxVersions = 20

// keepVersion keeps the present version of an article, which is about to change.
func keepVersion(ctx context.Context, tx *sql.Tx, id string, now time.Time) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO news_versions (article_id, version, title, raw_text, published_at, content_hash, until_at)
		SELECT id, version, title, raw_text, published_at, content_hash, $2 FROM news_articles WHERE id = $1 ON CONFLICT DO NOTHING`, id, db.Micros(now)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM news_versions WHERE article_id = $1 AND version <= (SELECT version FROM news_articles WHERE id = $1) - $2`, id, maxVersions)
	return err
}

const (
	// copyTime is how much older than its copy an article is at most.
	copyTime = 3 * 24 * time.Hour
	// maxCompared is how many articles of others are compared with those of a run.
	maxCompared = 100_000
)

// hashed is an article as its text is compared.
type hashed struct {
	id, copyOf string
	hash       uint64
	at         int64
}

// before reports whether an article was collected before another one.
func (h hashed) before(other hashed) bool {
	return h.at < other.at || h.at == other.at && h.id < other.id
}

// MarkCopies marks those of a publisher's articles that changed at a time or later and
// have nearly the text of another publisher's earlier article, as news agencies' have. It
// returns their number.
func MarkCopies(ctx context.Context, d *db.DB, source string, since time.Time) (n int64, err error) {
	all := func(query string, args ...any) (out []hashed, err error) {
		for h, err := range db.Select(ctx, d, func(r *sql.Rows) (h hashed, err error) {
			var hash int64
			err = r.Scan(&h.id, &h.copyOf, &hash, &h.at)
			h.hash = uint64(hash)
			return h, err
		}, query, args...) {
			if err != nil {
				return nil, fmt.Errorf("reading the hashes of articles: %w", err)
			}
			out = append(out, h)
		}
		return out, nil
	}
	ours, err := all(`SELECT id, copy_of, simhash, collected_at FROM news_articles WHERE source = $1 AND changed_at >= $2 AND simhash <> 0 ORDER BY id`, source, db.Micros(since))
	if err != nil || len(ours) == 0 {
		return 0, err
	}
	others, err := all(`SELECT id, copy_of, simhash, collected_at FROM news_articles WHERE source <> $1 AND collected_at >= $2 AND simhash <> 0 ORDER BY collected_at DESC, id LIMIT $3`,
		source, db.Micros(since.Add(-copyTime)), maxCompared)
	if err != nil {
		return 0, err
	}
	for _, one := range ours {
		var nearest hashed
		for _, other := range others {
			if !other.before(one) || !simhash.Same(one.hash, other.hash) {
				continue
			}
			if by := simhash.Distance(one.hash, other.hash) - simhash.Distance(one.hash, nearest.hash); nearest.id == "" || by < 0 || by == 0 && other.before(nearest) {
				nearest = other
			}
		}
		original := nearest.copyOf
		if original == "" {
			original = nearest.id
		}
		if original != "" {
			n++
		}
		if original == one.copyOf {
			continue
		}
		if err := d.Tx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE news_articles SET copy_of = $2 WHERE id = $1`, one.id, original)
			return err
		}); err != nil {
			return n, fmt.Errorf("marking copies of %s: %w", source, err)
		}
	}
	return n, nil
}
