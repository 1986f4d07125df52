// Package asked reads what the docs job's database says about pages, without Beam. No promise: see docs/library.md.
package asked

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// ChangedPage is a page that a session found new, updated or deleted.
type ChangedPage struct {
	Provider string    `json:"provider"`
	URL      string    `json:"url"`
	Title    string    `json:"title"`
	Kind     string    `json:"kind"` // new, updated, deleted
	At       time.Time `json:"at"`
}

// ChangesSince returns the pages that changed at or after a time, the newest first, at
// most limit. An empty provider means all.
func ChangesSince(ctx context.Context, d *db.DB, since time.Time, provider string, limit int) (all []ChangedPage, err error) {
	for p, err := range db.Select(ctx, d, func(r *sql.Rows) (p ChangedPage, err error) {
		var at int64
		err = r.Scan(&p.Provider, &p.URL, &p.Title, &p.Kind, &at)
		p.At = db.Time(at)
		return p, err
	}, `SELECT c.provider, COALESCE(p.address, c.key), COALESCE(p.title, ''), c.kind, c.at FROM docs_changes c
		LEFT JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key
		WHERE c.at >= $1 AND ($2 = '' OR c.provider = $2) ORDER BY c.at DESC, c.provider, c.key LIMIT $3`, db.Micros(since), provider, limit) {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// PageState is what became of a page, and why.
type PageState struct {
	Provider   string     `json:"provider"`
	URL        string     `json:"url"`
	Status     string     `json:"status"`
	Reason     string     `json:"reason,omitempty"`
	HTTPStatus int        `json:"http_status"` // 0: no answer
	Chunks     int        `json:"chunks"`
	FetchedAt  *time.Time `json:"fetched_at,omitempty"`
	ChangedAt  *time.Time `json:"changed_at,omitempty"`
}

// PageStates returns what became of a page, with each provider that has it. address is
// written as people do: it need not be the one that was fetched, but must have its key.
func PageStates(ctx context.Context, d *db.DB, address string) (all []PageState, err error) {
	forms := []string{address}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	whole := []string{"*"}
	if u, err := canonical.Address(nil, address, whole); err == nil {
		for _, keep := range [][]string{whole, nil} { // the policy may keep the query, or not
			if key, err := canonical.Key(u, keep); err == nil {
				forms = append(forms, key)
			}
		}
	}
	for _, form := range forms {
		if all, err = pageStates(ctx, d, form); err != nil || len(all) > 0 {
			break
		}
	}
	return all, err
}

// pageStates are those of the pages with this address or this key.
func pageStates(ctx context.Context, d *db.DB, address string) (all []PageState, err error) {
	for p, err := range db.Select(ctx, d, func(r *sql.Rows) (p PageState, err error) {
		var fetched, changed int64
		err = r.Scan(&p.Provider, &p.URL, &p.Status, &p.Reason, &p.HTTPStatus, &p.Chunks, &fetched, &changed)
		p.FetchedAt, p.ChangedAt = db.OptionalTime(fetched), db.OptionalTime(changed)
		return p, err
	}, `SELECT provider, address, status, reason, http_status, chunks, fetched_at, changed_at FROM docs_pages WHERE address = $1 OR key = $1 ORDER BY provider, key`, address) {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
