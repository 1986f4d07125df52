package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/context7"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
)

// context7Key is the environment variable with the key of Context7's API. Without it
// nothing is asked there.
const context7Key = "CONTEXT7_API_KEY"

// listContext7 names Context7 in docs_sources.
const listContext7 = "context7"

// maxContext7 is the maximum size of an answer of Context7's.
const maxContext7 = 1 << 20

// askContext7 asks Context7 which providers' documentation it has, and records the answers, which count for four weeks. A provider that it
// was not found to have is crawled; after a failure the next session asks again.
func (fn *listFn) askContext7(ctx context.Context, session string, off map[string]bool) error {
	key := os.Getenv(context7Key)
	if key == "" {
		return nil
	}
	cfg := fn.Config
	client := newClient(cfg, fn.Worker, fn.db, policy.DefaultRequestDelay*time.Millisecond, &permit.Gate{Purpose: cfg.Purpose})
	defer client.Close()
	asked, err := db.Texts(ctx, fn.db, `SELECT provider FROM docs_sources WHERE source = $1 AND checked_at > $2 AND state <> 'failed'`,
		listContext7, db.Micros(fn.Worker.Pacer.Clock.Now().Add(-missKept)))
	if err != nil {
		return fmt.Errorf("reading what Context7 has: %w", err)
	}
	failed := ""
	for _, p := range cfg.Policies {
		if p.Order()[0] == policy.HTML && p.Channel != policy.Context7 || p.Terms == policy.Prohibited || off[p.ProviderID] ||
			cfg.Off[p.ProviderID] != "" || cfg.leftOut(p.ProviderID) || slices.Contains(asked, p.ProviderID) {
			continue
		}
		state, reason := "failed", "not asked, because it failed for "+failed
		if failed == "" { // otherwise it would go wrong again
			id, err := idOnContext7(ctx, client, key, p)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				reason, failed = clean(ledger.Redact(err.Error())), p.ProviderID
				fn.Worker.Log.Warn("context7_failed", "provider", p.ProviderID, "error", reason)
			case id == "":
				state, reason = "missing", "Context7 does not have it"
			default:
				state, reason = "found", "Context7 has it as "+clean(id)
			}
		}
		if err := newProvider(cfg, fn.Worker, fn.db, p, part{session: session}).note(ctx, listContext7, "https://context7.com", state, reason, nil); err != nil {
			return err
		}
	}
	return nil
}

// idOnContext7 asks for the id that a provider's documentation has there, "" if there is none.
func idOnContext7(ctx context.Context, client *polite.Client, key string, p policy.Policy) (id string, err error) {
	// An API that asks for a key is not crawled: robots.txt is for pages.
	resp, err := client.Get(ctx, polite.Request{URL: context7.Search(p.Label()), Accept: "application/json", Timeout: pageTimeout,
		Header: http.Header{"Authorization": {"Bearer " + key}}, MaxBytes: maxContext7, MaxRedirects: -1, Once: true, Invited: true})
	switch {
	case err != nil:
		return "", err
	case resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden:
		return "", fmt.Errorf("status %d; is %s right?", resp.Status, context7Key)
	case resp.Status != http.StatusOK:
		return "", fmt.Errorf("status %d", resp.Status)
	case resp.Truncated:
		return "", errors.New("its answer is too long, or ends early")
	}
	return context7.Resolve(resp.Body, p.Label(), p.Host())
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
