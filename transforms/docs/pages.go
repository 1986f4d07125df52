package docs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
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
func (s *provider) sameAs(ctx context.Context, key, hash string) (of string, err error) {
	of = indexOf(key)
	if of == "" || s.forbidden[of] {
		return "", nil
	}
	err = s.db.QueryRowContext(ctx, `SELECT key FROM docs_pages WHERE provider = $1 AND key = $2 AND content_hash = $3`,
		s.id, of, hash).Scan(&of)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return of, err
}

// copies returns the pages of the session that were skipped as copies, and the stored pages that
// have the text of their folder's, sorted by key.
func (s *provider) copies(ctx context.Context) (out []*page, err error) {
	var found []*page
	for p, err := range db.Select(ctx, s.db, func(r *sql.Rows) (*page, error) { return scanPage(r) }, selectPage+`WHERE p.provider = $1
		AND (p.session = $2 AND p.status = $3 AND p.reason LIKE $4 OR p.content_hash <> ''
		AND (p.key LIKE '%/index.%' OR p.key LIKE '%/default.%' OR p.key LIKE '%/Default.%')) ORDER BY p.key`,
		s.id, s.part.session, Skipped, copyBegins+"%") {
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	for _, p := range found {
		if p.status != Skipped || original(p.reason) == "" {
			of, err := s.sameAs(ctx, p.key, p.contentHash)
			if err != nil {
				return nil, err
			}
			if of == "" {
				continue
			}
			p.reason = copyBegins + of + copySame
		}
		out = append(out, p)
	}
	return out, nil
}

// copyOf reports whether a page may be skipped for the page that it names as its original: not if that redirected here, has no content, or
// differs by a query that the policy keeps, nor if it is the site's front page, which is named by mistake when all pages share one head.
// known says that the original has content.
func (s *provider) copyOf(ctx context.Context, ch *chain, of link) (copied, known bool, err error) {
	on := func(p *page) bool { return p.key == of.key }
	if slices.ContainsFunc(append(slices.Clone(ch.passed), ch.page, ch.now), on) || s.forbidden[of.key] {
		return false, false, nil
	}
	ours, _, _ := strings.Cut(ch.now.key, "?")
	theirs, _, _ := strings.Cut(of.key, "?")
	if ours == theirs || canonical.Path(of.key) == "/" {
		return false, false, nil
	}
	status, known, err := s.hasContent(ctx, of.key, ch.now.key)
	return err == nil && (known || !status.end()), known, err
}

// maxCopies is how many pages may name one another as originals, one after another.
const maxCopies = 5

// hasContent returns the status of a page, "" for one that is not known, and whether it has
// content. A page that was skipped as a copy is taken for its original, unless that is self.
func (s *provider) hasContent(ctx context.Context, key, self string) (status Status, has bool, err error) {
	for range maxCopies {
		var hash, reason string
		err := s.db.QueryRowContext(ctx, `SELECT status, content_hash, reason FROM docs_pages WHERE provider = $1 AND key = $2`,
			s.id, key).Scan(&status, &hash, &reason)
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

// stored returns the stored links of a page.
func (s *provider) stored(ctx context.Context, key string) (out []link, err error) {
	for l, err := range db.Select(ctx, s.db, func(r *sql.Rows) (l link, err error) { return l, r.Scan(&l.key, &l.address) },
		`SELECT to_key, to_address FROM docs_links WHERE provider = $1 AND from_key = $2 ORDER BY ordinal`, s.id, key) {
		if err != nil {
			return nil, fmt.Errorf("reading the links of %s: %w", key, err)
		}
		if _, why := s.link(nil, l.address, false); why == "" { // the policy may have changed
			out = append(out, l)
		}
	}
	return out, nil
}

// storedContent is what the database has of a page's content.
type storedContent struct {
	blocks []chunk.Block
	ids    []string
}

func (s *provider) storedContent(ctx context.Context, key string) (k storedContent, err error) {
	blocks, err := db.Texts(ctx, s.db, `SELECT blocks FROM docs_blocks WHERE provider = $1 AND key = $2`, s.id, key)
	if err == nil && len(blocks) > 0 {
		err = json.Unmarshal([]byte(blocks[0]), &k.blocks)
	}
	if err == nil {
		k.ids, err = db.Texts(ctx, s.db, `SELECT id FROM docs_chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal`, s.id, key)
	}
	if err != nil {
		return k, fmt.Errorf("reading the stored content of %s: %w", key, err)
	}
	return k, nil
}

// forbid records that a page or a file answered 403 and is never asked for again.
func (s *provider) forbid(ctx context.Context, tx *sql.Tx, l link, status int) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO docs_blocked_urls (provider, key, address, http_status, blocked_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (provider, key) DO NOTHING`,
		s.id, l.key, l.address, status, db.Micros(s.clock.Now()))
	if err != nil {
		return fmt.Errorf("recording that %s is forbidden: %w", l.address, err)
	}
	s.forbidden[l.key] = true
	return nil
}

// write updates the rows of a page, and those of its content if that was handed over.
func (s *provider) write(ctx context.Context, tx *sql.Tx, ch *chain, e ending, kind string, sections []chunk.Change, handOff bool) error {
	p, now := ch.now, db.Micros(s.clock.Now())
	var failed error
	exec := func(query string, args ...any) {
		if failed == nil {
			_, failed = tx.ExecContext(ctx, query, append([]any{s.id, p.key}, args...)...)
		}
	}
	for _, left := range append(ch.passed, ch.page) {
		if left != p {
			exec(`UPDATE docs_pages SET status = $3, reason = $4, http_status = 0 WHERE provider = $1 AND key = $5 AND key <> $2`, Skipped,
				"redirects to "+p.key, left.key)
		}
	}
	exec(`UPDATE docs_pages SET status = $3, reason = $4, http_status = $5 WHERE provider = $1 AND key = $2`, e.status,
		content.Clean(e.reason), e.http)
	if e.forbid && failed == nil {
		failed = s.forbid(ctx, tx, link{key: p.key, address: ch.at.String()}, e.http)
	}
	if (e.read != nil || e.status == NotModified) && !s.onlyHTML() { // where its content comes from
		exec(`INSERT INTO docs_page_sources (provider, key, source, reason) VALUES ($1, $2, $3, $4)
			ON CONFLICT (provider, key) DO UPDATE SET source = excluded.source, reason = excluded.reason`,
			ch.way.source, content.Clean(ch.way.reason))
	}
	if r := ch.rights; r != nil {
		columns, err := permit.Columns(*r)
		failed = cmp.Or(failed, err)
		exec(`UPDATE docs_pages SET rights = $3, rights_search = $4, rights_ai_input = $5, rights_ai_train = $6, rights_archive = $7 WHERE provider = $1 AND key = $2`, columns...)
	}
	if kind != "" {
		b, err := json.Marshal(sections)
		failed = cmp.Or(failed, err)
		exec(`INSERT INTO docs_changes (provider, key, session, kind, sections, at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (session, provider, key) DO UPDATE SET kind = excluded.kind, sections = excluded.sections, at = excluded.at`,
			s.part.session, kind, string(b), now)
		if e.read != nil {
			exec(`UPDATE docs_pages SET changed_at = $3 WHERE provider = $1 AND key = $2`, now)
		}
	}
	if handOff && kind != "new" {
		exec(`DELETE FROM docs_chunks WHERE provider = $1 AND key = $2`)
		exec(`DELETE FROM docs_blocks WHERE provider = $1 AND key = $2`)
	}
	switch {
	case e.gone:
		exec(`DELETE FROM docs_links WHERE provider = $1 AND from_key = $2`)
		exec(`UPDATE docs_pages SET content_hash = '', etag = '', last_modified = '', title = '', chunks = 0, gone_at = $3
			WHERE provider = $1 AND key = $2`, now)
	case e.status == NotModified:
		exec(`UPDATE docs_pages SET fetched_at = $3 WHERE provider = $1 AND key = $2`, now)
	case e.read != nil:
		h := e.resp.Header
		exec(`UPDATE docs_pages SET etag = $3, last_modified = $4, content_hash = $5, read_by = $6, title = $7, chunks = $8, fetched_at = $9,
			gone_at = $10 WHERE provider = $1 AND key = $2`,
			validator(h.Get("ETag")), validator(h.Get("Last-Modified")), e.read.hash, s.readBy+ch.way.id(),
			clean(e.read.title), len(e.read.chunks), now, int64(0))
		exec(`DELETE FROM docs_links WHERE provider = $1 AND from_key = $2`)
		if failed == nil {
			failed = s.writeContent(ctx, tx, p.key, e, handOff)
		}
	}
	return failed
}

// writeContent adds the rows of a page's links, and of its text if that was handed over.
func (s *provider) writeContent(ctx context.Context, tx *sql.Tx, key string, e ending, handOff bool) error {
	rows := make([][]any, len(e.links))
	for i, l := range e.links {
		rows[i] = []any{s.id, key, int64(i), l.key, l.address}
	}
	err := s.db.InsertRows(ctx, tx, "docs_links", []string{"provider", "from_key", "ordinal", "to_key", "to_address"}, rows, "")
	if err != nil || !handOff {
		return err
	}
	blocks, err := json.Marshal(e.read.blocks)
	if err != nil {
		return fmt.Errorf("encoding blocks: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO docs_blocks (provider, key, blocks) VALUES ($1, $2, $3)`, s.id, key,
		clean(string(blocks))); err != nil {
		return err
	}
	rows = make([][]any, len(e.read.chunks))
	for i, k := range e.read.chunks {
		heading, err := json.Marshal(k.Path)
		if err != nil {
			return fmt.Errorf("encoding a heading: %w", err)
		}
		rows[i] = []any{s.id, key, int64(k.Ordinal), k.ID, clean(string(heading)), int64(k.Tokens), k.Hash, clean(k.Preview())}
	}
	columns := []string{"provider", "key", "ordinal", "id", "heading", "tokens", "hash", "preview"}
	return s.db.InsertRows(ctx, tx, "docs_chunks", columns, rows, "")
}

// clean makes text fit for a database.
func clean(s string) string { return untrusted.Text(s, 0) }

// validator returns a header that later requests send back unchanged, or "" if it is not safe to store.
func validator(s string) string {
	if untrusted.Key(s) != nil {
		return ""
	}
	return s
}
