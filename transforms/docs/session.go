package docs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// State is the state of a provider's part of a session.
type State string

// The states of a provider's part. Only Done means that there is nothing left to
// request; after the others the next session requests the rest.
const (
	Open        State = "open"          // at work, or interrupted: the next run continues it
	Held        State = "held"          // the host asks for a pause of more than ten minutes: a later run continues it
	OutOfBudget State = "out_of_budget" // the day's requests or the run's pages are used up: a later run continues it
	Unreachable State = "unreachable"   // its robots.txt or all of its seeds could not be fetched: the next session begins it again
	Done        State = "done"          // nothing is left, or its own max_pages is reached
)

// beginSession resumes the session that an earlier run left open, or begins one that is named after the run.
func beginSession(ctx context.Context, d *db.DB, runID string, now time.Time) (id string, resumed bool, err error) {
	err = d.Do(ctx, "beginning the session", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT id FROM docs_sessions
			WHERE `+d.Never("finished_at")+` AND active_at > $1 ORDER BY started_at DESC, id DESC LIMIT 1`,
			db.Micros(now.Add(-resumeWithin))).Scan(&id)
		switch {
		case err == nil:
			resumed = id != runID
			// Each run has the whole limit.
			_, err = tx.ExecContext(ctx, `UPDATE docs_sessions SET active_at = $1, requested = CASE WHEN id = $3 THEN requested ELSE 0 END WHERE id = $2`, db.Micros(now), id, runID)
			return err
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		id, resumed = runID, false
		// An older session is not resumed.
		if _, err := tx.ExecContext(ctx, `UPDATE docs_sessions SET finished_at = active_at WHERE `+d.Never("finished_at")); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO docs_sessions (id, started_at, active_at) VALUES ($1, $2, $2)`, id, db.Micros(now))
		return err
	})
	return id, resumed, err
}

// endSession closes a session in which no provider is left open.
func endSession(ctx context.Context, d *db.DB, id string, now time.Time) error {
	return d.Write(ctx, "ending the session", `UPDATE docs_sessions SET finished_at = $1 WHERE id = $2 AND `+d.Never("finished_at"), db.Micros(now), id)
}

// stats are the counts of a provider's crawl in a session.
type stats struct {
	Requests  int64 `json:"requests"`  // for pages, with retries; a chain of redirects is one
	Succeeded int64 `json:"succeeded"` // 200 and 304
	Errors    int64 `json:"errors"`    // 4xx and 5xx
	Retries   int64 `json:"retries"`
	Elapsed   int64 `json:"elapsed_us"` // of the requests that were answered
	Answered  int64 `json:"answered"`

	Fetched   int64 `json:"fetched"` // pages, 200 and 304
	New       int64 `json:"new"`
	Updated   int64 `json:"updated"`
	Unchanged int64 `json:"unchanged"`
	Deleted   int64 `json:"deleted"`
	Skipped   int64 `json:"skipped"`
	Failed    int64 `json:"failed"`
	Blocked   int64 `json:"blocked"`            // robots.txt and 403
	Read      int64 `json:"read"`               // pages that were searched for content
	Empty     int64 `json:"empty"`              // of them, pages without content
	Chunks    int64 `json:"chunks"`             // written
	Reserved  int64 `json:"reserved,omitempty"` // for Purpose: not requested, or not handed on

	Purpose rights.Purpose   `json:"purpose,omitempty"`
	Said    map[string]int64 `json:"said,omitempty"` // pages by what they say about use, under the report's names; never changed, but replaced

	Again bool `json:"again,omitempty"` // the hand-off of all pages is made again

	Sources []sourceCount `json:"sources,omitempty"` // never changed, but replaced

	Active int64 `json:"active_us"` // time at work
	Waited int64 `json:"waited_us"` // the part of it spent waiting for the hour's budget
}

// sourceCount is what was asked of one source, and the pages that came from it. A list
// of pages is a source without pages of its own.
type sourceCount struct {
	Source   string `json:"source"`
	Pages    int64  `json:"pages"`
	Requests int64  `json:"requests"`
}

// count counts a try by its answer, nil for a failure below HTTP. A chain of redirects
// counts once, at its end.
func (s *stats) count(resp *web.Response) {
	if resp != nil {
		s.Answered++
		s.Elapsed += resp.Elapsed.Microseconds()
		if isRedirect(resp) {
			return
		}
	}
	s.Requests++
	switch {
	case resp == nil:
	case resp.Status/100 == 2 || resp.Status == http.StatusNotModified:
		s.Succeeded++
	case resp.Status >= 400:
		s.Errors++
	}
}

// counts returns the counts under the report's names.
func (s *stats) counts() map[string]int64 {
	out := map[string]int64{"pages_fetched": s.Fetched, "pages_new": s.New, "pages_updated": s.Updated, "pages_unchanged": s.Unchanged,
		"pages_deleted": s.Deleted, "pages_skipped": s.Skipped, "pages_failed": s.Failed, "pages_blocked": s.Blocked, "pages_reserved": s.Reserved, "chunks": s.Chunks}
	maps.Copy(out, s.Said)
	return out
}

// since returns what was counted since o.
func (s *stats) since(o stats) map[string]int64 {
	out := s.counts()
	for name, n := range o.counts() {
		out[name] -= n
	}
	return out
}

// asked counts a request to a source.
func (s *stats) asked(source string) { s.source(source, 0, 1) }

// took counts a page that came from a source.
func (s *stats) took(source string) { s.source(source, 1, 0) }

func (s *stats) source(source string, pages, requests int64) {
	s.Sources = slices.Clone(s.Sources)
	i := slices.IndexFunc(s.Sources, func(c sourceCount) bool { return c.Source == source })
	if i < 0 {
		i = len(s.Sources)
		s.Sources = append(s.Sources, sourceCount{Source: source})
	}
	s.Sources[i].Pages += pages
	s.Sources[i].Requests += requests
}

// part is a provider's part of a session: its row in the table runs.
type part struct {
	session   string
	state     State
	reason    string
	requested int64
	queued    int64
	stats     stats
	fresh     bool // nothing has been done in it yet
}

// enter returns the provider's part of the session, new or continued. An unfinished part of an earlier session moves to this one with its
// frontier.
func enter(ctx context.Context, d *db.DB, session, provider, runID string, now time.Time) (p part, err error) {
	err = d.Do(ctx, "opening the part of "+provider, func(tx *sql.Tx) error {
		p = part{session: session}
		var stats string
		read := func() error {
			return tx.QueryRowContext(ctx, `SELECT state, reason, requested, queued, stats FROM docs_runs WHERE session = $1 AND provider = $2`,
				session, provider).
				Scan(&p.state, &p.reason, &p.requested, &p.queued, &stats)
		}
		err := read()
		if errors.Is(err, sql.ErrNoRows) {
			if err := begin(ctx, tx, session, provider, runID, now); err != nil {
				return err
			}
			err = read()
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(stats), &p.stats); err != nil {
			return fmt.Errorf("its counts: %w", err)
		}
		if p.state == Done {
			return nil
		}
		p.fresh = p.queued == 0
		if p.state == Unreachable || p.state.notOpen() { // its seeds may have failed; they are requested again
			if _, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, retries = 0
				WHERE provider = $2 AND session = $3 AND depth = 0 AND status IN ($4, $5)`,
				Queued, provider, session, Failed, Skipped); err != nil {
				return err
			}
		}
		// A page whose worker was killed while it worked on it begins again,
		// without the tries that it has used up.
		if _, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1
			WHERE provider = $2 AND session = $3 AND status IN ($4, $5, $6, $7, $8, $9, $10)`,
			Queued, provider, session, RobotsCheck, Fetching, Redirecting, RateLimited, Retry, Parsing, Extracting); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE docs_runs SET state = $1, reason = '', run_id = $2, active_at = $3
			WHERE session = $4 AND provider = $5`,
			Open, runID, db.Micros(now), session, provider)
		return err
	})
	return p, err
}

// begin gives a session the provider's part of an earlier one, or a new one.
func begin(ctx context.Context, tx *sql.Tx, session, provider, runID string, now time.Time) error {
	var earlier string
	err := tx.QueryRowContext(ctx, `SELECT session FROM docs_runs
		WHERE provider = $1 AND state IN ($2, $3, $4) AND active_at > $5 ORDER BY active_at DESC LIMIT 1`,
		provider, Open, Held, OutOfBudget, db.Micros(now.Add(-resumeWithin))).Scan(&earlier)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO docs_runs (session, provider, run_id, state, started_at, active_at)
			VALUES ($1, $2, $3, $4, $5, $5)`, session, provider, runID, Open, db.Micros(now))
		return err
	}
	for _, table := range []string{"docs_runs", "docs_pages", "docs_changes", "docs_sources"} {
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE `+table+` SET session = $1 WHERE session = $2 AND provider = $3`, session, earlier, provider)
		}
	}
	return err
}

// handOffAgain makes a part fetch all pages of the provider without conditions: their text is not stored.
func handOffAgain(ctx context.Context, d *db.DB, p *part, provider string) error {
	now := *p
	now.state, now.stats.Again = Open, true
	b, err := json.Marshal(now.stats)
	if err != nil {
		return fmt.Errorf("encoding figures: %w", err)
	}
	err = d.Do(ctx, "beginning the hand-off of "+provider+" again", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, retries = 0
			WHERE provider = $2 AND session = $3 AND content_hash <> '' AND status IN ($4, $5)`,
			Queued, provider, p.session, Indexed, NotModified); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE docs_runs SET state = $1, reason = '', stats = $2 WHERE session = $3 AND provider = $4`, Open,
			string(b), p.session, provider)
		return err
	})
	if err == nil {
		*p = now
	}
	return err
}

// Status is the state of a page.
type Status string

// The states of a page. It can stay in queued, retry, rate_limited and the final
// states; it passes through the others while it is worked on.
const (
	Queued      Status = "queued"
	RobotsCheck Status = "robots_check"
	Fetching    Status = "fetching"
	Redirecting Status = "redirecting"
	RateLimited Status = "rate_limited" // waits for its Retry-After
	Retry       Status = "retry"        // waits for its backoff
	Parsing     Status = "parsing"
	Extracting  Status = "extracting"

	Blocked     Status = "blocked" // robots.txt
	Failed      Status = "failed"  // 403, other errors, retries and redirects used up
	Skipped     Status = "skipped" // no content, not a page, login, redirects or is a copy
	Indexed     Status = "indexed"
	NotModified Status = "not_modified" // 304: as indexed
	Deleted     Status = "deleted"      // 404, 410
	TooLarge    Status = "too_large"
)

// transitions has the states that may follow each state. A redirect's target may be refused, or its origin's robots.txt be unreachable,
// which fails only the page. What was read may be a notice.
var transitions = map[Status][]Status{
	"":          {Queued},
	Queued:      {RobotsCheck},
	RobotsCheck: {Fetching, Blocked, Failed},
	Fetching:    {Parsing, Redirecting, RateLimited, Retry, Failed, NotModified, Deleted, Skipped, TooLarge},
	Redirecting: {Fetching, Failed, Blocked, Skipped},
	RateLimited: {Fetching, Failed},
	Retry:       {Fetching, Failed},
	Parsing:     {Extracting, Skipped, Failed},
	Extracting:  {Indexed, Skipped},
}

// move returns the state to, or an error if it may not follow s.
func (s Status) move(to Status) (Status, error) {
	for _, next := range transitions[s] {
		if next == to {
			return to, nil
		}
	}
	return s, fmt.Errorf("a bug: a page cannot go from %s to %s", s, to)
}

// end reports whether s is a final state of a page in a session.
func (s Status) end() bool { return s != "" && len(transitions[s]) == 0 }
