package docs

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// PageText is a stored page for a person.
type PageText struct {
	Provider, URL, Title string
	Fetched              time.Time
	Text                 string // Markdown, or where it is not whole a line of at most 200 characters
	Whole                bool
}

// Texts returns a provider's pages that have content, sorted by key. The database keeps
// only a preview of each chunk, so the whole text is read from the hand-off, for as long
// as that is kept. Unless whole is asked for, a text is an excerpt.
func Texts(ctx context.Context, d *db.DB, s store.Store, provider string, whole bool) iter.Seq2[PageText, error] {
	return func(yield func(PageText, error) bool) {
		pages, err := storedPages(ctx, d, provider)
		var handed map[string][]store.Object
		if err == nil && whole {
			handed, err = handedOver(ctx, s, provider)
		}
		if err != nil {
			yield(PageText{}, err)
			return
		}
		for _, p := range pages {
			text, err := p.read(ctx, d, s, handed)
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// storedPage is a page that has content.
type storedPage struct {
	PageText
	key string
}

func storedPages(ctx context.Context, d *db.DB, provider string) (out []storedPage, err error) {
	rows, err := d.QueryContext(ctx, `SELECT key, address, title, fetched_at FROM docs_pages WHERE provider = $1 AND content_hash <> '' ORDER BY key`, provider)
	if err != nil {
		return nil, fmt.Errorf("reading the pages of %s: %w", provider, err)
	}
	err = each(rows, func() error {
		p := storedPage{PageText: PageText{Provider: provider}}
		var at int64
		err := rows.Scan(&p.key, &p.URL, &p.Title, &at)
		p.Fetched = db.Time(at).UTC()
		out = append(out, p)
		return err
	})
	return out, err
}

// handedOver returns the objects of a provider's hand-off, the newest first, by the name
// that a page has in all sessions.
func handedOver(ctx context.Context, s store.Store, provider string) (map[string][]store.Object, error) {
	out := map[string][]store.Object{}
	for o, err := range s.List(ctx, handOffPrefix(provider)) {
		if err != nil {
			return nil, fmt.Errorf("listing the hand-off of %s: %w", provider, err)
		}
		name := o.Key[strings.LastIndexByte(o.Key, '/')+1:]
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), againSuffix)
		out[name] = append(out[name], o)
	}
	for _, objects := range out {
		slices.SortStableFunc(objects, func(a, b store.Object) int {
			return cmp.Or(b.ModTime.Compare(a.ModTime), strings.Compare(b.Key, a.Key))
		})
	}
	return out, nil
}

// read completes a page with its text.
func (p storedPage) read(ctx context.Context, d *db.DB, s store.Store, handed map[string][]store.Object) (PageText, error) {
	rows, err := d.QueryContext(ctx, `SELECT id, preview FROM docs_chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal`, p.Provider, p.key)
	if err != nil {
		return p.PageText, fmt.Errorf("reading the chunks of %s: %w", p.URL, err)
	}
	var ids []string
	if err := each(rows, func() error {
		var id, preview string
		err := rows.Scan(&id, &preview)
		if ids = append(ids, id); len(ids) == 1 {
			p.Text = Shown(preview)
		}
		return err
	}); err != nil {
		return p.PageText, err
	}
	for _, o := range handed[handOffName(p.key)] {
		texts, err := chunksOf(ctx, s, o.Key)
		if err != nil {
			return p.PageText, err
		}
		var whole []string
		for _, id := range ids {
			if text, ok := texts[id]; ok {
				whole = append(whole, text)
			}
		}
		if len(whole) == len(ids) && len(ids) > 0 {
			p.Text, p.Whole = strings.Join(whole, "\n\n"), true
			break
		}
	}
	return p.PageText, nil
}

// chunksOf returns the texts of an object of the hand-off, by the chunk's id.
func chunksOf(ctx context.Context, s store.Store, key string) (texts map[string]string, err error) {
	body, err := s.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the hand-off %s: %w", key, err)
	}
	defer func() { _ = body.Close() }() // only read
	texts = map[string]string{}
	lines := json.NewDecoder(bufio.NewReader(body))
	for {
		var l handOffLine
		err := lines.Decode(&l)
		if err == io.EOF {
			return texts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the hand-off %s: %w", key, err)
		}
		if l.Op == "upsert" {
			texts[l.ID] = l.Text
		}
	}
}

// againSuffix ends the name of a page that is handed over again.
const againSuffix = "-again"

// handOffName is the name of a page's objects in the hand-off, without its ending.
func handOffName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// Ending says what became of the first page of a provider: "" if a page has content.
func Ending(ctx context.Context, d *db.DB, provider string) (kept int64, why string, err error) {
	if err := d.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_pages WHERE provider = $1 AND content_hash <> ''`, provider).Scan(&kept); err != nil {
		return 0, "", fmt.Errorf("counting the pages of %s: %w", provider, err)
	}
	var status, reason string
	err = d.QueryRowContext(ctx, `SELECT status, reason FROM docs_pages WHERE provider = $1 ORDER BY depth, seq LIMIT 1`, provider).Scan(&status, &reason)
	switch {
	case err == nil:
		return kept, status + inBrackets(reason), nil
	case err != sql.ErrNoRows:
		return kept, "", fmt.Errorf("reading the first page of %s: %w", provider, err)
	}
	err = d.QueryRowContext(ctx, `SELECT state, reason FROM docs_runs WHERE provider = $1 ORDER BY started_at DESC LIMIT 1`, provider).Scan(&status, &reason)
	if err == sql.ErrNoRows {
		return kept, "it was not crawled", nil
	}
	if err != nil {
		return kept, "", fmt.Errorf("reading the state of %s: %w", provider, err)
	}
	return kept, status + inBrackets(reason), nil
}
