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

// A page is skipped as a copy of its original, which follows copyBegins, because it names that
// (copyNames) or has the text of its folder's own page (copySame).
const copyBegins, copyNames, copySame = "a copy of ", ", as its rel=canonical says", ", which has the same text"

// original returns the key of the original in the reason of a copy, "" for another reason.
func original(reason string) string {
	rest, ok := strings.CutPrefix(reason, copyBegins)
	of := strings.TrimSuffix(strings.TrimSuffix(rest, copyNames), copySame)
	if !ok || of == rest {
		return ""
	}
	return of
}

// indexNames are the files that servers also show at the address of their folder.
var indexNames = []string{"index.html", "index.htm", "index.xhtml", "index.php", "index.asp", "index.aspx", "index.jsp",
	"default.html", "default.htm", "default.asp", "default.aspx", "Default.aspx"}

// indexOf returns the key of the folder of which a page is the index, "" for another page.
func indexOf(key string) string {
	at := strings.LastIndexByte(key, '/') + 1
	switch {
	case !slices.Contains(indexNames, key[at:]):
		return ""
	case canonical.Path(key) == key[at-1:]:
		return key[:at] // of the site
	}
	return key[:at-1]
}

// sameAs returns the key of a page's folder if that has the page's text, which hash identifies, else "".
func (c *crawl) sameAs(ctx context.Context, key, hash string) (of string, err error) {
	of = indexOf(key)
	if of == "" || c.forbidden[of] {
		return "", nil
	}
	err = c.db.QueryRowContext(ctx, `SELECT key FROM docs_pages WHERE provider = $1 AND key = $2 AND content_hash = $3`, c.policy.ProviderID, of, hash).Scan(&of)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return of, err
}

// noteIndexes notes the stored pages that are the index of a page and have its text: they are copies.
func (c *crawl) noteIndexes(ctx context.Context, key, hash string) error {
	in, args := "", []any{c.policy.ProviderID, hash}
	for _, name := range indexNames {
		args = append(args, strings.TrimSuffix(key, "/")+"/"+name)
		in += fmt.Sprintf(", $%d", len(args))
	}
	rows, err := c.db.QueryContext(ctx, `SELECT key FROM docs_pages WHERE provider = $1 AND content_hash = $2 AND key IN (`+in[2:]+`)`, args...)
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var index string
		err := rows.Scan(&index)
		c.copies[index] = copyBegins + key + copySame
		return err
	})
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
		c.policy.ProviderID, c.part.session, Skipped, copyBegins+"%")
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var key, reason string
		err := rows.Scan(&key, &reason)
		c.copies[key] = reason
		return err
	})
}

// settleCopies ends the pages that were skipped for their originals, when no page is left to
// ask for. What is stored of them is removed if the original has content. If it has none,
// they are queued once more, because the text would be lost; again says so.
func (c *crawl) settleCopies(ctx context.Context) (again bool, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.copies)) {
		reason := c.copies[key]
		of := original(reason)
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
			err = c.close(ctx, &chain{page: p, now: p}, ending{status: Skipped, http: http.StatusOK, reason: reason, gone: true})
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
