package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

const copyBegins, copyEnds = "a copy of ", ", as its rel=canonical says"

// copyReason is why a page is skipped that names another one as its original.
func copyReason(of string) string { return copyBegins + of + copyEnds }

// original returns the key in a copyReason, "" for another reason.
func original(reason string) string {
	if rest, ok := strings.CutPrefix(reason, copyBegins); ok {
		if of, ok := strings.CutSuffix(rest, copyEnds); ok {
			return of
		}
	}
	return ""
}

// copyOf reports whether a page may be skipped for the page that it names as its
// original. It may not if the original redirected here, is known to have no content,
// or differs by a query that the policy keeps. It may not either if the original is the
// site's front page, which is named by mistake when all pages share one head. known says
// that the original has content.
func (c *crawl) copyOf(ctx context.Context, ch *chain, of link) (copied, known bool, err error) {
	if slices.ContainsFunc(append(slices.Clone(ch.passed), ch.page, ch.now), func(p *page) bool { return p.key == of.key }) || c.forbidden[of.key] {
		return false, false, nil
	}
	ours, _, _ := strings.Cut(ch.now.key, "?")
	theirs, _, _ := strings.Cut(of.key, "?")
	if ours == theirs || canonical.Path(of.key) == "/" {
		return false, false, nil
	}
	status, known, err := c.hasContent(ctx, of.key, ch.now.key)
	return err == nil && (known || !status.end()), known, err
}

// maxCopies is how many pages may name one another as originals, one after another.
const maxCopies = 5

// hasContent returns the status of a page, "" for one that is not known, and whether it has
// content. A page that was skipped as a copy is taken for its original, unless that is self.
func (c *crawl) hasContent(ctx context.Context, key, self string) (status Status, has bool, err error) {
	for range maxCopies {
		var hash, reason string
		err := c.db.QueryRowContext(ctx, `SELECT status, content_hash, reason FROM docs_pages WHERE provider = $1 AND key = $2`, c.policy.ProviderID, key).Scan(&status, &hash, &reason)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return "", false, nil
		case err != nil:
			return "", false, fmt.Errorf("looking for %s: %w", key, err)
		case hash != "":
			return status, true, nil
		}
		of := original(reason)
		if status != Skipped || of == "" || of == self {
			break
		}
		key = of
	}
	return status, false, nil
}

// loadCopies reads which pages of the session were skipped for their originals.
func (c *crawl) loadCopies(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx, `SELECT key, reason FROM docs_pages WHERE provider = $1 AND session = $2 AND status = $3 AND reason LIKE $4`,
		c.policy.ProviderID, c.part.session, Skipped, copyBegins+"%"+copyEnds)
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var key, reason string
		err := rows.Scan(&key, &reason)
		c.copies[key] = original(reason)
		return err
	})
}

// settleCopies ends the pages that were skipped for their originals, when no page is left to
// ask for. What is stored of them is removed if the original has content. If it has none,
// they are queued once more, because the text would be lost; again says so.
func (c *crawl) settleCopies(ctx context.Context) (again bool, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.copies)) {
		of := c.copies[key]
		delete(c.copies, key)
		status, has, err := c.hasContent(ctx, of, key)
		if err != nil {
			return false, err
		}
		p, err := scanPage(c.db.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM docs_pages WHERE provider = $1 AND key = $2`, c.policy.ProviderID, key))
		switch {
		case err != nil:
			return false, fmt.Errorf("looking for %s, which names an original: %w", key, err)
		case has && p.contentHash != "":
			err = c.close(ctx, &chain{page: p, now: p}, ending{status: Skipped, http: http.StatusOK, reason: copyReason(of), gone: true})
		case !has && status.end():
			again = true
			err = c.advance(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, reason = '', seq = $2, retries = 0, http_status = 0 WHERE provider = $3 AND key = $4`,
					Queued, c.part.queued, c.policy.ProviderID, key)
				c.part.queued++
				return err
			})
		}
		if err != nil {
			return false, fmt.Errorf("ending %s, which names an original: %w", key, err)
		}
	}
	return again, nil
}
