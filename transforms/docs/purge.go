package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// hashPages proves which pages a provider had, "" for none.
func hashPages(ctx context.Context, d *db.DB, provider string) (string, error) {
	rows, err := d.QueryContext(ctx, `SELECT key, content_hash FROM docs_pages WHERE provider = $1 ORDER BY key`, provider)
	if err != nil {
		return "", err
	}
	sum, n := sha256.New(), 0
	err = each(rows, func() error {
		var key, hash string
		n++
		err := rows.Scan(&key, &hash)
		_, _ = fmt.Fprintf(sum, "%s %s\n", key, hash) // a hash takes everything
		return err
	})
	if n == 0 {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// origins are those from which pages or terms of the provider were requested.
func origins(ctx context.Context, src removal.Source) ([]string, error) {
	rows, err := src.DB.QueryContext(ctx, `SELECT address FROM docs_pages WHERE provider = $1 UNION SELECT address FROM docs_terms WHERE provider = $1`, src.Name)
	if err != nil {
		return nil, err
	}
	origins := map[string]bool{}
	err = each(rows, func() error {
		var address string
		if err := rows.Scan(&address); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err == nil {
			origins[origin(u)] = true
		}
		return err
	})
	return slices.Sorted(maps.Keys(origins)), err
}

// Providers returns the ids of the providers that have rows in the database, sorted.
// It changes nothing. A database without the job's tables has none.
func Providers(ctx context.Context, d *db.DB) ([]string, error) {
	if there, err := d.HasTable(ctx, "docs_providers"); err != nil || !there {
		return nil, err
	}
	ids, err := Removal().Known(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("reading the ids of the providers: %w", err)
	}
	return ids, nil
}

// Enable lets a purged provider be crawled again; false: it was not disabled.
func Enable(ctx context.Context, d *db.DB, provider string) (bool, error) {
	n, err := changed(d.ExecContext(ctx, `UPDATE docs_providers SET disabled_at = $2 WHERE id = $1 AND NOT `+d.Never("disabled_at"), provider, int64(0)))
	if err != nil {
		return false, fmt.Errorf("enabling %s: %w", provider, err)
	}
	return n > 0, nil
}

// Unblock lets pages of a provider be requested again that answered 403: the page with this
// URL, or all of them for "". It returns how many.
func Unblock(ctx context.Context, d *db.DB, provider, address string) (int64, error) {
	key := address
	if u, err := url.Parse(address); err == nil && address != "" {
		if k, err := canonical.Key(u, []string{"*"}); err == nil {
			key = k
		}
	}
	n, err := changed(d.ExecContext(ctx, `DELETE FROM docs_blocked_urls WHERE provider = $1 AND ($2 = '' OR address = $2 OR key = $3)`, provider, address, key))
	if err != nil {
		return 0, fmt.Errorf("lifting the blocks of %s: %w", provider, err)
	}
	return n, nil
}

// PageChange is a change of a page that a session found.
type PageChange struct {
	Provider string    `json:"provider"`
	Key      string    `json:"key"`
	Kind     string    `json:"kind"` // new, updated, deleted
	At       time.Time `json:"at"`
	Sections []Section `json:"sections"`
}

// Section is a section of a page that changed, named by its headings.
type Section struct {
	Path    []string `json:"path,omitempty"`
	Kind    string   `json:"kind"` // added, removed, changed, moved
	Added   int      `json:"added,omitempty"`
	Removed int      `json:"removed,omitempty"`
}

// ErrNoSession means that there is no session with that name, or none at all.
var ErrNoSession = errors.New("there is no such session")

// Changes lists the changes that a session found, by provider and page; "" means the
// latest session. The text of pages is not stored, so a section is named by its
// headings.
func Changes(ctx context.Context, d *db.DB, session string) (name string, out []PageChange, err error) {
	err = d.QueryRowContext(ctx, `SELECT id FROM docs_sessions WHERE id = $1 OR $1 = '' ORDER BY started_at DESC, id DESC LIMIT 1`, session).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, fmt.Errorf("%w: %q", ErrNoSession, cmp.Or(session, "latest"))
	}
	if err != nil {
		return "", nil, fmt.Errorf("looking for session %q: %w", session, err)
	}
	rows, err := d.QueryContext(ctx, `SELECT provider, key, kind, sections, at FROM docs_changes WHERE session = $1 ORDER BY provider, key`, name)
	if err != nil {
		return name, nil, fmt.Errorf("reading the changes of %s: %w", name, err)
	}
	err = each(rows, func() error {
		var p PageChange
		var sections string
		var at int64
		if err := rows.Scan(&p.Provider, &p.Key, &p.Kind, &sections, &at); err != nil {
			return err
		}
		p.At = db.Time(at)
		out = append(out, p)
		return json.Unmarshal([]byte(sections), &out[len(out)-1].Sections)
	})
	return name, out, err
}
