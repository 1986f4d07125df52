package docs

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// Purged says what a purge removed.
type Purged struct {
	Provider     string           `json:"provider"`
	Rows         map[string]int64 `json:"rows"` // by table
	Objects      int64            `json:"objects"`
	DeadLetters  int64            `json:"dead_letters"`
	Chunks       int64            `json:"chunks"`        // on the deletion list
	DeletionList string           `json:"deletion_list"` // its key in the store
}

// provided are the tables with rows of a provider.
var provided = []string{"pages", "links", "chunks", "docs_blocks", "docs_changes", "blocked_urls", "runs"}

// Purge removes everything that a provider left behind and disables it until
// Enable. The ids of its chunks go
// to a deletion list in the store, for the side that keeps the embeddings. A
// run that crawls the provider makes it fail: stop that first. ErrNotErased says
// that all is done but the last step: deleted text may still be read from the
// database's files; a second call does that step alone.
func Purge(ctx context.Context, d *db.DB, s store.Store, provider string, now time.Time) (Purged, error) {
	p, err := purge(ctx, d, s, provider, now)
	if err != nil {
		return p, fmt.Errorf("purging %s: %w", provider, err)
	}
	if err := d.Erase(ctx, append(slices.Clone(provided), "docs_robots")...); err != nil {
		return p, fmt.Errorf("purging %s: %w: %w", provider, ErrNotErased, err)
	}
	return p, nil
}

// purge removes what is a provider's, under its lease.
func purge(ctx context.Context, d *db.DB, s store.Store, provider string, now time.Time) (Purged, error) {
	p := Purged{Provider: provider, Rows: map[string]int64{}, DeletionList: fmt.Sprintf("handoff/docs/deletions/%s-%s.jsonl", provider, now.UTC().Format("20060102T150405Z"))}
	holder := lease.CurrentHolder()
	holder.Job = Job
	l, err := lease.Acquire(ctx, lease.InDB(d), "docs/provider/"+provider, holder, time.Minute)
	if err != nil {
		return p, err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {}) // ctx ends with it, and says so
	defer func() { _ = release() }()                  // it expires by itself

	// The list first: after the rows nobody knows the ids any more.
	if err := p.list(ctx, d, s); err != nil {
		return p, err
	}
	if err := d.Tx(ctx, func(tx *sql.Tx) error {
		clear(p.Rows)
		if err := p.forgetRobots(ctx, tx); err != nil {
			return err
		}
		for _, table := range provided {
			n, err := changed(tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE provider = $1`, provider))
			if err != nil {
				return err
			}
			p.Rows[table] = n
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO docs_providers (id, disabled_at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET disabled_at = excluded.disabled_at`, provider, db.Micros(now))
		return err
	}); err != nil {
		return p, err
	}
	for o, err := range s.List(ctx, handOffPrefix(provider)) {
		if err != nil {
			return p, err
		}
		if err := store.Retry(ctx, func() error { return s.Delete(ctx, o.Key) }); err != nil {
			return p, err
		}
		p.Objects++
	}
	var letters []string
	for l, err := range ledger.ListDeadLetters(ctx, s, Job, "") {
		if err != nil {
			return p, err
		}
		if l.Input.Source == provider {
			letters = append(letters, l.ID())
		}
	}
	for _, id := range letters {
		if err := ledger.Remove(ctx, s, Job, id); err != nil {
			return p, err
		}
		p.DeadLetters++
	}
	return p, nil
}

// ErrNotErased says that a purge removed everything, but could not rewrite the
// database's files, which may still hold the deleted text in their free parts.
var ErrNotErased = errors.New("its rows are removed, but their text may still be in free parts of the database's files; purge it again when no run is using the database")

// forgetRobots removes the robots.txt of the origins that pages were asked for
// at. When those may be asked again stays: they asked for that pause.
func (p *Purged) forgetRobots(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT address FROM pages WHERE provider = $1`, p.Provider)
	if err != nil {
		return err
	}
	origins := map[string]bool{}
	if err := each(rows, func() error {
		var address string
		if err := rows.Scan(&address); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err == nil {
			origins[origin(u)] = true
		}
		return err
	}); err != nil {
		return err
	}
	for at := range origins {
		n, err := changed(tx.ExecContext(ctx, `DELETE FROM docs_robots WHERE origin = $1`, at))
		if err != nil {
			return err
		}
		p.Rows["docs_robots"] += n
	}
	return nil
}

// list writes the deletion list. A purge that is done again adds to nothing:
// where there are no chunks any more there is no list.
func (p *Purged) list(ctx context.Context, d *db.DB, s store.Store) error {
	rows, err := d.QueryContext(ctx, `SELECT c.id, p.address FROM chunks c JOIN pages p ON p.provider = c.provider AND p.key = c.key WHERE c.provider = $1 ORDER BY c.key, c.ordinal`, p.Provider)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := each(rows, func() error {
		h := handed{Op: "delete", Provider: p.Provider}
		if err := rows.Scan(&h.ID, &h.URL); err != nil {
			return err
		}
		p.Chunks++
		return e.Encode(h)
	}); err != nil {
		return err
	}
	if p.Chunks == 0 {
		p.DeletionList = ""
		return nil
	}
	return store.Retry(ctx, func() error {
		return s.Put(ctx, p.DeletionList, bytes.NewReader(b.Bytes()), store.PutOptions{ContentType: "application/x-ndjson"})
	})
}

// Providers are those that the database has something of, by id. It changes
// nothing, and a database without the job's tables has none.
func Providers(ctx context.Context, d *db.DB) ([]string, error) {
	there := `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'docs_providers'`
	if d.Dialect == db.Postgres {
		there = `SELECT COUNT(*) WHERE to_regclass('docs_providers') IS NOT NULL`
	}
	var tables int
	if err := d.QueryRowContext(ctx, there).Scan(&tables); err != nil {
		return nil, fmt.Errorf("looking for the tables of the docs job: %w", err)
	}
	if tables == 0 {
		return nil, nil
	}
	query := `SELECT id FROM docs_providers`
	for _, table := range provided {
		query += ` UNION SELECT provider FROM ` + table
	}
	rows, err := d.QueryContext(ctx, query+` ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("reading which providers there are: %w", err)
	}
	var ids []string
	err = each(rows, func() error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Enable lets a purged provider be crawled again; false where it was not disabled.
func Enable(ctx context.Context, d *db.DB, provider string) (bool, error) {
	n, err := changed(d.ExecContext(ctx, `UPDATE docs_providers SET disabled_at = 0 WHERE id = $1 AND disabled_at > 0`, provider))
	if err != nil {
		return false, fmt.Errorf("enabling %s: %w", provider, err)
	}
	return n > 0, nil
}

// PageChange is a page that a session found changed.
type PageChange struct {
	Provider string    `json:"provider"`
	Key      string    `json:"key"`
	Kind     string    `json:"kind"` // new, updated, deleted
	At       time.Time `json:"at"`
	Sections []Section `json:"sections"`
}

// Section is a part of a page, by its headings, that changed.
type Section struct {
	Path    []string `json:"path,omitempty"`
	Kind    string   `json:"kind"` // added, removed, changed, moved
	Added   int      `json:"added,omitempty"`
	Removed int      `json:"removed,omitempty"`
}

// ErrNoSession says that nothing was crawled yet, or not under that name.
var ErrNoSession = errors.New("there is no such session")

// Changes lists what a session found changed, by provider and page; of the
// latest session where its name is empty. A page's text is not kept: its
// sections are told by their headings.
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
