package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/context7"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// Context7Key is the environment variable with the key of Context7's API. Without it
// nothing is asked there.
const Context7Key = "CONTEXT7_API_KEY"

// listContext7 names Context7 in docs_sources.
const listContext7 = "context7"

// maxContext7 is the maximum size of an answer of Context7's.
const maxContext7 = 1 << 20

// askContext7 asks Context7 which providers' documentation it has, and records it. An answer
// counts for four weeks. What goes wrong there is recorded too: every provider that it was not
// found to have is crawled, and the next session asks again.
func (fn *listFn) askContext7(ctx context.Context, session string, off map[string]bool) error {
	key := os.Getenv(Context7Key)
	if key == "" {
		return nil
	}
	client := newClient(fn.Config, fn.Worker, fn.db, policy.DefaultRequestDelay*time.Millisecond)
	defer client.Close()
	since, failed := db.Micros(fn.Worker.Pacer.Clock.Now().Add(-missKept)), ""
	for _, p := range fn.Config.Policies {
		if p.Order()[0] == policy.HTML && p.Channel != policy.Context7 || p.Terms == policy.Prohibited || off[p.ProviderID] || fn.Config.Off[p.ProviderID] != "" || fn.Config.leftOut(p.ProviderID) {
			continue
		}
		var n int
		if err := fn.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_sources
			WHERE provider = $1 AND source = $2 AND checked_at > $3 AND state <> 'failed'`, p.ProviderID, listContext7, since).Scan(&n); err != nil {
			return fmt.Errorf("reading what Context7 has: %w", err)
		}
		if n > 0 {
			continue
		}
		if failed != "" { // it would go wrong again
			if err := fn.noteContext7(ctx, session, p, "failed", "not asked, because it failed for "+failed); err != nil {
				return err
			}
			continue
		}
		// An API that asks for a key is not crawled: robots.txt is for pages.
		resp, err := client.Get(ctx, polite.Request{URL: context7.Search(p.Label()), Accept: "application/json",
			Header:  http.Header{"Authorization": {"Bearer " + key}},
			Timeout: pageTimeout, MaxBytes: maxContext7, MaxRedirects: -1, Once: true, Invited: true})
		id := ""
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && (resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden):
			err = fmt.Errorf("status %d; is %s right?", resp.Status, Context7Key)
		case err == nil && resp.Status != http.StatusOK:
			err = fmt.Errorf("status %d", resp.Status)
		case err == nil && resp.Truncated:
			err = errors.New("its answer is too long, or ends early")
		case err == nil:
			id, err = context7.Resolve(resp.Body, p.Label(), p.Host())
		}
		state, reason := "found", "Context7 has it as "+clean(id)
		switch {
		case err != nil:
			state, reason, failed = "failed", clean(ledger.Redact(err.Error())), p.ProviderID
			fn.Worker.Log.Warn("context7_failed", "provider", p.ProviderID, "error", reason)
		case id == "":
			state, reason = "missing", "Context7 does not have it"
		}
		if err := fn.noteContext7(ctx, session, p, state, reason); err != nil {
			return err
		}
	}
	return nil
}

func (fn *listFn) noteContext7(ctx context.Context, session string, p policy.Policy, state, reason string) error {
	if _, err := fn.db.ExecContext(ctx, `INSERT INTO docs_sources (provider, source, address, session, state, reason, checked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (provider, source, address) DO UPDATE SET session = excluded.session, state = excluded.state, reason = excluded.reason, checked_at = excluded.checked_at`,
		p.ProviderID, listContext7, "https://context7.com", session, state, reason, db.Micros(fn.Worker.Pacer.Clock.Now())); err != nil {
		return fmt.Errorf("recording what Context7 has: %w", err)
	}
	fn.Worker.Log.Info("source_checked", "provider", p.ProviderID, "source", listContext7, "url", "https://context7.com", "state", state,
		"reason", reason)
	return nil
}

// onContext7 returns why providers are left to Context7, because it was found to have
// them in the last four weeks.
func onContext7(ctx context.Context, d *db.DB, now time.Time) (map[string]string, error) {
	out := map[string]string{}
	for at, err := range db.Select(ctx, d, func(r *sql.Rows) (at [2]string, err error) { return at, r.Scan(&at[0], &at[1]) },
		`SELECT provider, reason FROM docs_sources WHERE source = $1 AND state = 'found'
			AND checked_at > $2`, listContext7, db.Micros(now.Add(-missKept))) {
		if err != nil {
			return nil, fmt.Errorf("reading what Context7 has: %w", err)
		}
		out[at[0]] = at[1] + "; --fallback crawls it too"
	}
	return out, nil
}

// crawled is Config.Crawled with what Context7 was found to have.
func (c Config) crawled(p policy.Policy, has map[string]string) (reason string, crawled bool) {
	if reason, ok := c.Crawled(p); !ok {
		return reason, false
	}
	if reason := has[p.ProviderID]; reason != "" && !c.Fallback {
		return reason, false
	}
	return "", true
}
