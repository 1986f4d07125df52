package docs

import (
	"bytes"
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
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// PurgeResult says what a purge removed.
type PurgeResult struct {
	Provider     string           `json:"provider"`
	Rows         map[string]int64 `json:"rows"` // by table
	Objects      int64            `json:"objects"`
	DeadLetters  int64            `json:"dead_letters"`
	Chunks       int64            `json:"chunks"`        // on the deletion list
	DeletionList string           `json:"deletion_list"` // its key in the store
	// PagesSHA256 and ObjectsSHA256 are those of removal.Removed.
	PagesSHA256   string `json:"pages_sha256,omitempty"`
	ObjectsSHA256 string `json:"objects_sha256,omitempty"`
}

// providerTables are the tables with rows of a provider.
var providerTables = []string{"docs_pages", "docs_links", "docs_chunks", "docs_blocks", "docs_changes", "docs_blocked_urls", "docs_runs"}

// sourceTables are those that say what its site offers, where its pages come from, and
// when its terms changed.
var sourceTables = []string{"docs_sources", "docs_page_sources", "docs_terms", "docs_api_files", "docs_repository_files"}

// Purge removes everything that the crawls of a provider left, also from the search
// index in the database, and disables it until Enable. The ids of its chunks are written to a deletion list in the store, for the
// system that stores the embeddings. Purge fails while a run crawls the provider: stop
// the run first; or while `search embed` is at work. ErrNotErased means that only the last step is missing: deleted text
// can still be read from the database's files. A second call repeats that step.
func Purge(ctx context.Context, d *db.DB, s store.Store, provider string, now time.Time) (PurgeResult, error) {
	return purgeAll(ctx, d, s, provider, now, func(PurgeResult) error { return nil })
}

// purgeAll is Purge. It calls found with what it will remove before it removes anything.
func purgeAll(ctx context.Context, d *db.DB, s store.Store, provider string, now time.Time, found func(PurgeResult) error) (PurgeResult, error) {
	p, err := purge(ctx, d, s, provider, now, found)
	if err != nil {
		return p, fmt.Errorf("purging %s: %w", provider, err)
	}
	if err := errors.Join(d.Erase(ctx, append(slices.Concat(providerTables, sourceTables), "docs_robots")...), removal.EraseSearch(ctx, d)); err != nil {
		return p, fmt.Errorf("purging %s: %w: %w", provider, ErrNotErased, err)
	}
	return p, nil
}

// purge removes what belongs to a provider, under its lease.
func purge(ctx context.Context, d *db.DB, s store.Store, provider string, now time.Time, found func(PurgeResult) error) (PurgeResult, error) {
	p := PurgeResult{Provider: provider, Rows: map[string]int64{}, DeletionList: fmt.Sprintf("handoff/docs/deletions/%s-%s.jsonl", provider, now.UTC().Format("20060102T150405Z"))}
	holder := lease.CurrentHolder()
	holder.Job = Job
	l, err := lease.Acquire(ctx, lease.InDB(d), "docs/provider/"+provider, holder, time.Minute)
	if err != nil {
		return p, err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {}) // ctx ends when the lease is lost
	defer func() { _ = release() }()                  // otherwise it expires

	// The list is written first: without the rows the ids are unknown.
	if err := p.list(ctx, d, s); err != nil {
		return p, err
	}
	if p.PagesSHA256, err = hashPages(ctx, d, provider); err != nil {
		return p, err
	}
	origins, err := p.count(ctx, d)
	if err != nil {
		return p, err
	}
	objects, letters, err := p.inStore(ctx, s)
	if err != nil {
		return p, err
	}
	if err := found(p); err != nil {
		return p, err
	}
	if _, err := removal.FromSearch(ctx, d, provider); err != nil {
		return p, err
	}
	if err := ledger.RemoveSite(ctx, s, Job, provider); err != nil {
		return p, err
	}
	if err := d.Tx(ctx, func(tx *sql.Tx) error {
		for _, at := range origins {
			if _, err := tx.ExecContext(ctx, `DELETE FROM docs_robots WHERE origin = $1`, at); err != nil {
				return err
			}
		}
		for _, table := range slices.Concat(providerTables, sourceTables) {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE provider = $1`, provider); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO docs_providers (id, disabled_at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET disabled_at = excluded.disabled_at`, provider, db.Micros(now))
		return err
	}); err != nil {
		return p, err
	}
	for _, key := range objects {
		if err := store.Remove(ctx, s, key); err != nil {
			return p, err
		}
	}
	for _, id := range letters {
		if err := ledger.Remove(ctx, s, Job, id); err != nil {
			return p, err
		}
	}
	return p, nil
}

// count counts the rows of a provider by table. It returns the origins from which pages
// were requested: their robots.txt is removed too. The times of the next requests to those
// hosts stay, because the hosts asked for them.
func (p *PurgeResult) count(ctx context.Context, d *db.DB) (origins []string, err error) {
	rows := func(table, column, value string) error {
		var n int64
		err := d.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` WHERE `+column+` = $1`, value).Scan(&n)
		if p.Rows[table] += n; err != nil {
			return fmt.Errorf("counting the rows of %s: %w", table, err)
		}
		return nil
	}
	for _, table := range slices.Concat(providerTables, sourceTables) {
		if err := rows(table, "provider", p.Provider); err != nil {
			return nil, err
		}
	}
	indexed, err := d.HasTable(ctx, removal.SearchTable)
	if err == nil && indexed {
		err = rows(removal.SearchTable, "provider", p.Provider)
	}
	if err != nil {
		return nil, err
	}
	if origins, err = p.origins(ctx, d); err != nil {
		return nil, err
	}
	for _, at := range origins {
		if err := rows("docs_robots", "origin", at); err != nil {
			return nil, err
		}
	}
	return origins, nil
}

// inStore finds the hand-off objects of a provider and the ids of its dead letters.
func (p *PurgeResult) inStore(ctx context.Context, s store.Store) (objects, letters []string, err error) {
	sum := sha256.New()
	for o, err := range s.List(ctx, handOffPrefix(p.Provider)) {
		if err != nil {
			return nil, nil, err
		}
		_, _ = fmt.Fprintf(sum, "%s %s %d\n", o.Key, o.ETag, o.Size) // a hash takes everything
		objects = append(objects, o.Key)
	}
	if p.Objects = int64(len(objects)); p.Objects > 0 {
		p.ObjectsSHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	for l, err := range ledger.ListDeadLetters(ctx, s, Job, "") {
		if err != nil {
			return nil, nil, err
		}
		if l.Input.Source == p.Provider {
			letters = append(letters, l.ID())
		}
	}
	p.DeadLetters = int64(len(letters))
	return objects, letters, nil
}

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

// ErrNotErased means that a purge removed everything, but could not rewrite the
// database's files, which may still have the deleted text in their free parts.
var ErrNotErased = errors.New("its rows are removed, but their text may still be in free parts of the database's files; purge it again when no run is using the database")

// origins are those from which pages or terms of the provider were requested.
func (p *PurgeResult) origins(ctx context.Context, d *db.DB) ([]string, error) {
	rows, err := d.QueryContext(ctx, `SELECT address FROM docs_pages WHERE provider = $1 UNION SELECT address FROM docs_terms WHERE provider = $1`, p.Provider)
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

// list writes the deletion list, if there are chunks: a second purge writes none.
func (p *PurgeResult) list(ctx context.Context, d *db.DB, s store.Store) error {
	rows, err := d.QueryContext(ctx, `SELECT c.id, p.address FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key WHERE c.provider = $1 ORDER BY c.key, c.ordinal`, p.Provider)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := each(rows, func() error {
		h := handOffLine{Op: "delete", Provider: p.Provider}
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
	return store.Write(ctx, s, p.DeletionList, b.Bytes(), store.PutOptions{ContentType: "application/x-ndjson"})
}

// Providers returns the ids of the providers that have rows in the database, sorted.
// It changes nothing. A database without the job's tables has none.
func Providers(ctx context.Context, d *db.DB) ([]string, error) {
	if there, err := d.HasTable(ctx, "docs_providers"); err != nil || !there {
		return nil, err
	}
	query := `SELECT id FROM docs_providers`
	for _, table := range providerTables {
		query += ` UNION SELECT provider FROM ` + table
	}
	rows, err := d.QueryContext(ctx, query+` ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("reading the ids of the providers: %w", err)
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
