package docs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

const (
	// maxAPIFiles is how many other files of one description are asked for.
	maxAPIFiles = 50
	// maxAPIBytes bounds all files of one description together.
	maxAPIBytes = 20 << 20
)

// apiFile is a file of an OpenAPI description: a row of docs_api_files.
type apiFile struct {
	address, session string
	state, reason    string // found, missing, or left: not asked for
	final            string
	header           http.Header
	hash             string
	changed          bool
	body             string
	checked          int64
}

// keptHeaders are what is needed again of an answer when a killed run is continued.
var keptHeaders = []string{"Etag", "Last-Modified", "X-Robots-Tag", "Link", "Content-Language"}

// apiFiles returns what is known of the files of a description, by their addresses.
func (c *crawl) apiFiles(ctx context.Context, key string) (map[string]apiFile, error) {
	out := map[string]apiFile{}
	if !c.offers.inFiles[key] {
		return out, nil
	}
	for f, err := range db.Select(ctx, c.db, func(r *sql.Rows) (f apiFile, err error) {
		var header string
		if err := r.Scan(&f.address, &f.session, &f.state, &f.reason, &f.final, &header, &f.hash, &f.changed, &f.body, &f.checked); err != nil {
			return f, err
		}
		return f, json.Unmarshal([]byte(header), &f.header)
	}, `SELECT address, session, state, reason, final, header, hash, changed, body, checked_at FROM docs_api_files WHERE provider = $1 AND key = $2`, c.policy.ProviderID, key) {
		if err != nil {
			return nil, fmt.Errorf("reading the files of %s: %w", key, err)
		}
		out[f.address] = f
	}
	return out, nil
}

// keepFile stores a file until its description is put together.
func (c *crawl) keepFile(ctx context.Context, key string, f *apiFile) error {
	f.session = c.part.session
	kept := http.Header{}
	for _, name := range keptHeaders {
		for _, v := range f.header.Values(name) {
			if v = validator(v); v != "" {
				kept.Add(name, v)
			}
		}
	}
	header, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding the header of %s: %w", f.address, err)
	}
	_, err = c.db.ExecContext(ctx, `INSERT INTO docs_api_files (provider, key, address, session, state, reason, final, header, hash, changed, body, checked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (provider, key, address) DO UPDATE SET session = excluded.session, state = excluded.state, reason = excluded.reason, final = excluded.final, header = excluded.header,
			hash = excluded.hash, changed = excluded.changed, body = excluded.body, checked_at = excluded.checked_at`,
		c.policy.ProviderID, key, f.address, f.session, f.state, content.Clean(f.reason), clean(f.final), clean(string(header)), f.hash, f.changed, clean(f.body), f.checked)
	if err != nil {
		return fmt.Errorf("storing the file %s of %s: %w", f.address, key, err)
	}
	c.offers.inFiles[key] = true
	return nil
}

// guard runs a parser of foreign bytes in its share of memory. A bug that they trigger
// fails only their page.
func (c *crawl) guard(ctx context.Context, ch *chain, bytes int, parse func() error) (err error) {
	end, err := budget.Begin(ctx, bytes)
	if err != nil {
		return err
	}
	defer end()
	defer func() {
		if v := recover(); v != nil {
			c.w.Log.Error("page_panic", "url", ch.at.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug: panic while reading the page: %v", v)
		}
	}()
	return parse()
}

// gather fetches the other files of a description. It returns nil if it is in one
// file. done means that the page has ended.
func (c *crawl) gather(ctx context.Context, ch *chain, resp *web.Response) (d *content.Description, done bool, err error) {
	read := func() (err error) { d, err = content.ReadOpenAPI(resp.Body, ch.at); return err }
	if c.guard(ctx, ch, len(resp.Body), read) != nil || len(d.Needs()) == 0 {
		return nil, false, ctx.Err() // whoever reads the page says what is wrong with it
	}
	key := ch.now.key
	kept, err := c.apiFiles(ctx, key)
	if err != nil {
		return nil, false, err
	}
	if root := kept[""]; root.session != c.part.session || root.body == "" {
		if err := c.keepRoot(ctx, ch, resp); err != nil {
			return nil, false, err
		}
	}
	asked, size := 0, len(resp.Body)
	for len(d.Needs()) > 0 {
		address := d.Needs()[0]
		f := kept[address]
		f.address = address
		tooMany := ""
		switch {
		case asked >= maxAPIFiles:
			tooMany = fmt.Sprintf("the description has over %d files", maxAPIFiles)
		case size >= maxAPIBytes:
			tooMany = fmt.Sprintf("the files of the description are over %d MB", maxAPIBytes>>20)
		}
		if tooMany != "" {
			f.state, f.reason, f.body = "left", tooMany, ""
			err = c.keepFile(ctx, key, &f)
		} else if f.session != c.part.session || f.state == "found" && f.body == "" {
			var unsure string
			if unsure, err = c.fetchFile(ctx, ch, &f, false); err == nil && unsure != "" {
				return nil, true, c.fail(ctx, ch, 0, fmt.Sprintf("its file %s: %s", address, unsure))
			}
		}
		if err != nil {
			return nil, false, err
		}
		if f.state != "left" {
			asked++
		}
		size += len(f.body)
		at, perr := url.Parse(f.final)
		add := func() error { return d.Add(address, at, []byte(f.body)) }
		if f.body == "" || perr != nil || c.guard(ctx, ch, len(f.body), add) != nil {
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			d.Leave(address)
		}
	}
	return d, false, nil
}

// keepRoot stores the description itself while its files are fetched.
func (c *crawl) keepRoot(ctx context.Context, ch *chain, resp *web.Response) error {
	text, err := c.cleanFile(ctx, ch, resp.Body)
	if err != nil {
		return err
	}
	root := apiFile{state: "found", final: ch.at.String(), header: resp.Header, body: string(text), checked: db.Micros(c.clock.Now())}
	return c.keepFile(ctx, ch.now.key, &root)
}

// fetchFile asks for a file of a description and stores it. unsure says why nothing is
// known of it now.
func (c *crawl) fetchFile(ctx context.Context, ch *chain, f *apiFile, conditional bool) (unsure string, err error) {
	before := *f
	f.state, f.reason, f.body = "left", "", ""
	keep := func() error {
		f.checked = db.Micros(c.clock.Now())
		f.changed = before.changed || f.state != before.state || f.hash != before.hash
		if f.state != "found" {
			c.w.Log.Info("source_checked", "provider", c.policy.ProviderID, "source", string(policy.OpenAPI), "url", f.address, "state", f.state, "reason", f.reason)
		}
		return c.keepFile(ctx, ch.now.key, f)
	}
	l, why := c.link(nil, f.address, false)
	if why == "" && c.forbidden[l.key] {
		why = "it answered 403 before"
	}
	u, perr := url.Parse(l.address)
	if why == "" && perr != nil {
		why = "no URL"
	}
	if f.reason = why; why != "" {
		return "", keep()
	}
	if before.state == "missing" && c.clock.Now().Sub(db.Time(before.checked)) < missKept && !c.part.stats.Again {
		*f = before
		return "", c.keepFile(ctx, ch.now.key, f)
	}
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if conditional {
		setIf(h, "If-None-Match", f.header.Get("ETag"))
		setIf(h, "If-Modified-Since", f.header.Get("Last-Modified"))
	}
	resp, err := c.client.Get(ctx, polite.Request{URL: l.address, Accept: acceptAPI, Header: h, Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: maxRedirects,
		Scope: func(u *url.URL) error {
			if _, why := c.link(nil, u.String(), false); why != "" {
				return errors.New(why)
			}
			return nil
		}})
	err = unreachable(err)
	if resp != nil {
		c.part.stats.asked(string(policy.OpenAPI))
	}
	var failure *web.Error
	var no *polite.DisallowedError
	switch {
	case resp == nil && errors.As(err, &failure) && failure.Kind == web.KindBlocked: // where it redirects
		f.state, f.hash, f.reason = "missing", "", ledger.Redact(err.Error())
		return "", keep()
	case resp == nil && errors.As(err, &no):
		f.reason = no.Error()
		return "", keep()
	case resp == nil && (errors.As(err, &failure) || c.failsPageOnly(u, err)):
		return ledger.Redact(err.Error()), nil
	case err != nil:
		return "", err
	case resp.Status == http.StatusNotModified && conditional:
		f.state = before.state
		return "", keep()
	case resp.Status == http.StatusTooManyRequests, resp.Status >= 500, resp.Status == http.StatusNotModified:
		return fmt.Sprintf("status %d", resp.Status), nil
	case brokenOff(resp):
		return "the answer ends early", nil
	}
	if err = c.readAPIFile(ctx, ch, l, f, resp); ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", errors.Join(err, keep())
}

// readAPIFile reads the answer to the request for a file.
func (c *crawl) readAPIFile(ctx context.Context, ch *chain, l link, f *apiFile, resp *web.Response) error {
	f.state, f.hash, f.header, f.final = "missing", "", resp.Header, resp.FinalURL
	switch {
	case resp.Status == http.StatusForbidden:
		f.reason = "status 403"
		return c.forbidFile(ctx, l)
	case resp.Status != http.StatusOK:
		f.reason = fmt.Sprintf("status %d", resp.Status)
		return nil
	case resp.Truncated:
		f.reason = "longer than 5 MB"
		return nil
	}
	text, err := c.cleanFile(ctx, ch, resp.Body)
	if err != nil {
		f.reason = fmt.Sprintf("no JSON or YAML: %.300s", err)
		return nil //nolint:nilerr // it is the file's fault
	}
	sum := sha256.Sum256(text)
	f.state, f.body, f.hash = "found", string(text), hex.EncodeToString(sum[:])
	return nil
}

func (c *crawl) cleanFile(ctx context.Context, ch *chain, body []byte) (text []byte, err error) {
	err = c.guard(ctx, ch, len(body), func() (err error) { text, err = content.CleanFile(body); return err })
	return text, err
}

// forbidFile records that a file answered 403 and is never asked for again.
func (c *crawl) forbidFile(ctx context.Context, l link) error {
	c.forbidden[l.key] = true
	_, err := c.db.ExecContext(ctx, `INSERT INTO docs_blocked_urls (provider, key, address, http_status, blocked_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (provider, key) DO NOTHING`,
		c.policy.ProviderID, l.key, l.address, http.StatusForbidden, db.Micros(c.clock.Now()))
	if err != nil {
		return fmt.Errorf("recording that %s is forbidden: %w", l.address, err)
	}
	return nil
}

// filesChanged asks whether the other files of a description that has itself not changed
// (304) have changed.
func (c *crawl) filesChanged(ctx context.Context, ch *chain) (changed bool, err error) {
	files, err := c.apiFiles(ctx, ch.now.key)
	if err != nil || len(files) == 0 {
		return false, err
	}
	root := files[""]
	if root.session != c.part.session {
		root.body, root.state = "", "found"
		if err := c.keepFile(ctx, ch.now.key, &root); err != nil {
			return false, err
		}
	}
	addresses := []string{}
	for address := range files {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	for _, address := range addresses {
		f := files[address]
		if address == "" || f.session == c.part.session || f.state == "left" && len(files) > maxAPIFiles {
			changed = changed || address != "" && f.changed
			continue
		}
		before := f
		unsure, err := c.fetchFile(ctx, ch, &f, true)
		if err == nil && unsure != "" { // the next session asks again
			c.w.Log.Info("source_checked", "provider", c.policy.ProviderID, "source", string(policy.OpenAPI), "url", address, "state", "unknown", "reason", unsure)
			f = before
			err = c.keepFile(ctx, ch.now.key, &f)
		}
		if err != nil {
			return false, err
		}
		changed = changed || f.changed
	}
	return changed, nil
}

// wholeAgain asks for a description that has not changed (304) without conditions, because
// one of its other files has: it can only be read again from all of them. done means that
// the page has ended, or is asked for again.
func (c *crawl) wholeAgain(ctx context.Context, ch *chain, resp *web.Response) (again, done bool, err error) {
	if resp.Status != http.StatusNotModified || ch.now.contentHash == "" || !c.offers.inFiles[ch.now.key] {
		return false, false, nil
	}
	if ch.way.whole {
		return false, true, c.fail(ctx, ch, 0, "304 to a request without conditions, while a file of the description has changed")
	}
	ch.way.whole, err = c.filesChanged(ctx, ch)
	return ch.way.whole, ch.way.whole || err != nil, err
}

// resumed returns the description that a killed run had fetched.
func (c *crawl) resumed(ctx context.Context, ch *chain) (resp *web.Response, err error) {
	files, err := c.apiFiles(ctx, ch.now.key)
	root := files[""]
	if err != nil || root.session != c.part.session {
		return nil, err
	}
	if root.body != "" {
		at, err := url.Parse(root.final)
		if err != nil {
			return nil, nil //nolint:nilerr // it is asked for again
		}
		ch.at = at
		header := root.header.Clone()
		header.Set("Content-Type", "application/json")
		return &web.Response{Status: http.StatusOK, Header: header, Body: []byte(root.body), FinalURL: root.final}, nil
	}
	if ch.now.contentHash == "" || c.part.stats.Again {
		return nil, nil
	}
	if ch.way.whole, err = c.filesChanged(ctx, ch); ch.way.whole || err != nil {
		return nil, err
	}
	return &web.Response{Status: http.StatusNotModified, Header: http.Header{}}, nil
}

// closeFiles removes the texts of a description's files when its page has ended, and
// those files that it does not have any more.
func (c *crawl) closeFiles(ctx context.Context, tx *sql.Tx, key string, e ending) error {
	if !c.offers.inFiles[key] {
		return nil
	}
	query, args := `UPDATE docs_api_files SET body = '' WHERE provider = $1 AND key = $2`, []any{c.policy.ProviderID, key}
	if e.read != nil || e.status == NotModified {
		query = strings.Replace(query, "body = ''", "body = '', changed = FALSE", 1)
	}
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return err
	}
	switch {
	case e.gone || e.status == Skipped:
		query = `DELETE FROM docs_api_files WHERE provider = $1 AND key = $2`
	case e.read != nil:
		query, args = `DELETE FROM docs_api_files WHERE provider = $1 AND key = $2 AND (session <> $3 OR $4 = 0)`, append(args, c.part.session, e.read.files)
	default:
		return nil
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}
