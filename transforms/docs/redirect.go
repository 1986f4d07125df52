package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

func isRedirect(r *web.Response) bool {
	return r.Status/100 == 3 && r.Status != http.StatusNotModified && r.Header.Get("Location") != ""
}

// follow moves the chain to the target of a redirect, if that may be visited.
func (c *crawl) follow(ctx context.Context, ch *chain, location string, permanent bool) (again bool, err error) {
	if err := c.move(ch, Redirecting); err != nil {
		return false, err
	}
	s := &c.part.stats
	if ch.hops++; ch.hops > maxRedirects {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Failed, reason: fmt.Sprintf("more than %d redirects", maxRedirects)})
	}
	to, why := c.link(ch.at, location, false)
	u, perr := url.Parse(to.address)
	if why == "" && perr != nil {
		why = perr.Error()
	}
	if why == "" && to.key != ch.page.key && c.forbidden[to.key] {
		why = "it answered 403 before"
	}
	if why != "" {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Skipped, reason: fmt.Sprintf("redirects to %.500s: %s", location, why)})
	}
	r, err := c.robots(ctx, u)
	if c.failsPageOnly(u, err) {
		s.Requests++
		return false, c.fail(ctx, ch, 0, fmt.Sprintf("redirects to %s: %s", to.address, err))
	}
	if err != nil {
		return false, err
	}
	if no := r.Check(u); no != nil {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Blocked, reason: fmt.Sprintf("redirects to %s: %s", to.address, no)})
	}
	if to.key != ch.now.key {
		target, taken, err := c.target(ctx, to, ch.page.depth)
		if err != nil {
			return false, err
		}
		if taken {
			s.Requests++
			return false, c.end(ctx, ch, ending{status: Skipped, reason: "redirects to " + to.key + ", which this session has already requested",
				gone: permanent || target.contentHash != "" && (target.contentHash == ch.now.contentHash || target.depth > 0)})
		}
		ch.now.moved = permanent
		if ch.now != ch.page {
			ch.passed = append(ch.passed, ch.now)
		}
		ch.now = target
	}
	ch.at = u
	return true, c.move(ch, Fetching)
}

// target claims the page to which a redirect leads, without counting it. taken means
// that this session has requested it already.
func (c *crawl) target(ctx context.Context, to link, depth int) (p *page, taken bool, err error) {
	err = c.db.Tx(ctx, func(tx *sql.Tx) error {
		now := db.Micros(c.clock.Now())
		if err := c.queue(ctx, tx, []link{to}, depth); err != nil {
			return err
		}
		var err error
		p, err = scanPage(tx.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM docs_pages WHERE provider = $1 AND key = $2`, c.policy.ProviderID, to.key))
		if errors.Is(err, sql.ErrNoRows) { // the frontier is full
			taken = true
			return nil
		}
		if err != nil {
			return err
		}
		if taken = p.status != Queued || p.counted; taken {
			return nil
		}
		p.status, p.counted = Fetching, true
		_, err = tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, counted = TRUE, requested_at = $2 WHERE provider = $3 AND key = $4`, Fetching, now, c.policy.ProviderID, to.key)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("claiming %s: %w", to.address, err)
	}
	return p, taken, nil
}

// maxStub is the maximum size in bytes of the Markdown of a page that only says that it
// redirects, maxScriptStub that of a page that a script redirects, in HTML.
const (
	maxStub       = 400
	maxScriptStub = 4 << 10
)

// stub returns why a page of HTML only leads to another one, "" if it does not, and the address
// to which its script leads.
func stub(pg content.Page, page []byte) (why, to string) {
	if len(pg.Markdown) > maxStub {
		return "", ""
	}
	if m := moves.FindSubmatch(page); m != nil && len(page) <= maxScriptStub {
		to = string(m[1]) + string(m[2])
		why = fmt.Sprintf("redirects to %.500s by a script", to)
	}
	if strings.HasPrefix(strings.ToLower(pg.Title), "redirecting") {
		why = "says only that it redirects"
	}
	return why, to
}

// moves finds a script that leads the browser to another page.
var moves = regexp.MustCompile(`(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location(?:\.href)?\s*=\s*["']([^"'\s]+)["']|(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location\.(?:replace|assign)\(\s*["']([^"'\s]+)["']`)
