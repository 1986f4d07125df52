package raw

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/parse/simhash"
)

const (
	// copyTime is how much later than an article its copies are published at most.
	copyTime = 3 * 24 * time.Hour
	// maxCompared is how many articles are held in memory for comparison. Of more, the newest are.
	maxCompared = 100_000
)

// text is an article as its text is compared.
type text struct {
	id, source, canonical, copyOf string
	hash                          uint64
	published                     bool  // at is of its publisher; else it is when the article was collected
	at                            int64 // microseconds
}

// before orders articles by what they say themselves, so that the order in which they were
// stored does not matter: by time of publication, then by publisher and address. Those
// without a time come last.
func (a text) before(b text) bool {
	if a.published != b.published {
		return a.published
	}
	if a.published && a.at != b.at {
		return a.at < b.at
	}
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.canonical, b.canonical)) < 0
}

// like reports whether two articles have nearly the same text and are of the same days.
func (a text) like(b text) bool {
	by := a.at - b.at
	return max(by, -by) <= copyTime.Microseconds() && simhash.Same(a.hash, b.hash)
}

// original returns the id of the article that a is a copy of: the first of the other
// publishers' articles that are like it, if it is before a.
func (a text) original(all []text) string {
	first := a
	for _, b := range all {
		if b.source != a.source && b.before(first) && a.like(b) {
			first = b
		}
	}
	if first.id == a.id {
		return ""
	}
	return first.id
}

// MarkCopies decides which of a publisher's new and changed articles are copies of another
// publisher's, as the texts of news agencies are, and which articles of others are copies of
// them. It returns how many articles are copies now and were none before.
func MarkCopies(ctx context.Context, d *db.DB, source string) (n int64, err error) {
	ours, err := texts(ctx, d, `source = $1 AND NOT compared`, source)
	slices.SortFunc(ours, func(a, b text) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	for err == nil && len(ours) > 0 {
		first, end := ours[0].at, 1
		for end < len(ours) && ours[end].at <= first+copyTime.Microseconds() {
			end++
		}
		var marked int64
		marked, err = markLike(ctx, d, ours[:end])
		n += marked
		ours = ours[end:]
	}
	if err != nil {
		return n, fmt.Errorf("marking copies of %s: %w", source, err)
	}
	return n, nil
}

// texts returns the articles that fulfil a condition.
func texts(ctx context.Context, d *db.DB, where string, args ...any) (out []text, err error) {
	for a, err := range db.Select(ctx, d, func(r *sql.Rows) (a text, err error) {
		var hash, published, collected int64
		err = r.Scan(&a.id, &a.source, &a.canonical, &a.copyOf, &hash, &published, &collected)
		a.hash, a.published, a.at = uint64(hash), published != 0, cmp.Or(published, collected)
		return a, err
	}, `SELECT id, source, canonical_url, copy_of, simhash, published_at, collected_at FROM news_articles WHERE `+where, args...) {
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// markLike marks articles, which are sorted by time, and those that are like them.
func markLike(ctx context.Context, d *db.DB, ours []text) (n int64, err error) {
	// What is like ours is up to copyTime away, and what that is like as much again.
	from, until := ours[0].at-2*copyTime.Microseconds(), ours[len(ours)-1].at+2*copyTime.Microseconds()
	all, err := texts(ctx, d, `simhash <> 0 AND (published_at BETWEEN $1 AND $2 OR `+d.Never("published_at")+` AND collected_at BETWEEN $1 AND $2) ORDER BY published_at DESC NULLS LAST, id LIMIT $3`, from, until, maxCompared)
	if err != nil {
		return 0, err
	}
	affected := map[string]text{}
	for _, o := range ours {
		affected[o.id] = o
		for _, a := range all {
			if a.copyOf == o.id || a.like(o) {
				affected[a.id] = a
			}
		}
	}
	var changed []text
	to := map[string]string{}
	for id, a := range affected {
		original := a.original(all)
		if original == a.copyOf {
			continue
		}
		gone, err := expired(ctx, d, a.copyOf)
		if err != nil {
			return 0, err
		}
		if !gone { // a mark outlives the article that it names
			to[id] = original
			changed = append(changed, a)
		}
	}
	// In one order, because two publishers' runs may change the same articles.
	slices.SortFunc(changed, func(a, b text) int { return cmp.Compare(a.id, b.id) })
	if err := d.Tx(ctx, func(tx *sql.Tx) error {
		n = 0
		for _, a := range changed {
			rows, err := db.Changed(tx.ExecContext(ctx, `UPDATE news_articles SET copy_of = $2 WHERE id = $1 AND copy_of = $3 AND simhash = $4`, a.id, to[a.id], a.copyOf, int64(a.hash)))
			if err != nil {
				return err
			}
			if a.copyOf == "" {
				n += rows
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	return n, d.Tx(ctx, func(tx *sql.Tx) error {
		for _, o := range ours {
			if _, err := tx.ExecContext(ctx, `UPDATE news_articles SET compared = TRUE WHERE id = $1 AND simhash = $2`, o.id, int64(o.hash)); err != nil {
				return err
			}
		}
		return nil
	})
}

// expired reports whether an article that was marked as an original is no longer stored.
func expired(ctx context.Context, d *db.DB, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	var there bool
	err := d.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM news_articles WHERE id = $1)`, id).Scan(&there)
	return !there, err
}
