package docs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
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

// filesOf returns what is known of the files of a description, by their addresses.
func (s *descriptions) filesOf(ctx context.Context, key string) (map[string]apiFile, error) {
	out := map[string]apiFile{}
	if !s.inFiles[key] {
		return out, nil
	}
	for f, err := range db.Select(ctx, s.db, func(r *sql.Rows) (f apiFile, err error) {
		var header string
		if err := r.Scan(&f.address, &f.session, &f.state, &f.reason, &f.final, &header, &f.hash, &f.changed, &f.body, &f.checked); err != nil {
			return f, err
		}
		return f, json.Unmarshal([]byte(header), &f.header)
	}, `SELECT address, session, state, reason, final, header, hash, changed, body, checked_at FROM docs_api_files
		WHERE provider = $1 AND key = $2`, s.id, key) {
		if err != nil {
			return nil, fmt.Errorf("reading the files of %s: %w", key, err)
		}
		out[f.address] = f
	}
	return out, nil
}

// keep stores a file until its description is put together.
func (s *descriptions) keep(ctx context.Context, key string, f *apiFile) error {
	f.session = s.part.session
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
	_, err = s.db.ExecContext(ctx, `INSERT INTO docs_api_files (provider, key, address, session, state, reason, final, header, hash, changed, body, checked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (provider, key, address) DO UPDATE SET session = excluded.session, state = excluded.state, reason = excluded.reason,
			final = excluded.final, header = excluded.header,
			hash = excluded.hash, changed = excluded.changed, body = excluded.body, checked_at = excluded.checked_at`,
		s.id, key, f.address, f.session, f.state, content.Clean(f.reason), clean(f.final), clean(string(header)), f.hash, f.changed,
		clean(f.body), f.checked)
	if err != nil {
		return fmt.Errorf("storing the file %s of %s: %w", f.address, key, err)
	}
	s.inFiles[key] = true
	return nil
}

// gather fetches the other files of a description. It returns nil if it is in one
// file. unsure says why nothing is known of one of them now.
func (s *descriptions) gather(ctx context.Context, ch *chain, resp *web.Response) (d *content.Description, unsure string, err error) {
	read := func() (err error) { d, err = content.ReadOpenAPI(resp.Body, ch.at); return err }
	if s.guard(ctx, ch.at, len(resp.Body), read) != nil || len(d.Needs()) == 0 {
		return nil, "", ctx.Err() // whoever reads the page says what is wrong with it
	}
	key := ch.now.key
	kept, err := s.filesOf(ctx, key)
	if err != nil {
		return nil, "", err
	}
	if root := kept[""]; root.session != s.part.session || root.body == "" { // the description itself, while its files are fetched
		text, err := s.clean(ctx, ch.at, resp.Body)
		if err != nil {
			return nil, "", err
		}
		if err := s.keep(ctx, key, &apiFile{state: "found", final: ch.at.String(), header: resp.Header, body: string(text),
			checked: db.Micros(s.clock.Now())}); err != nil {
			return nil, "", err
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
			err = s.keep(ctx, key, &f)
		} else if f.session != s.part.session || f.state == "found" && f.body == "" {
			unsure, err = s.fetch(ctx, ch, &f, false)
		}
		if err != nil || unsure != "" {
			return nil, unsure, err
		}
		if f.state != "left" {
			asked++
		}
		size += len(f.body)
		at, perr := url.Parse(f.final)
		add := func() error { return d.Add(address, at, []byte(f.body)) }
		if f.body == "" || perr != nil || s.guard(ctx, ch.at, len(f.body), add) != nil {
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			}
			d.Leave(address)
		}
	}
	return d, "", nil
}

// fetch asks for a file of a description and stores it. unsure says why nothing is
// known of it now.
func (s *descriptions) fetch(ctx context.Context, ch *chain, f *apiFile, conditional bool) (unsure string, err error) {
	before := *f
	f.state, f.reason, f.body = "left", "", ""
	l, why := s.link(nil, f.address, false)
	if why == "" && s.forbidden[l.key] {
		why = answered403
	}
	switch {
	case why != "":
		f.reason = why
	case before.state == "missing" && s.clock.Now().Sub(db.Time(before.checked)) < missKept && !s.part.stats.Again:
		*f = before
		return "", s.keep(ctx, ch.now.key, f)
	default:
		if unsure, err = s.request(ctx, ch.at, l, f, before, conditional); unsure != "" {
			return fmt.Sprintf("its file %s: %s", f.address, unsure), nil
		}
		if err != nil {
			return "", err
		}
	}
	f.checked = db.Micros(s.clock.Now())
	f.changed = before.changed || f.state != before.state || f.hash != before.hash
	if f.state != "found" {
		s.log.Info("source_checked", "source", string(policy.OpenAPI), "url", f.address, "state", f.state, "reason", f.reason)
	}
	return "", s.keep(ctx, ch.now.key, f)
}

func (s *descriptions) request(ctx context.Context, at *url.URL, l link, f *apiFile, was apiFile, conditional bool) (unsure string, err error) {
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if conditional {
		setIf(h, "If-None-Match", f.header.Get("ETag"))
		setIf(h, "If-Modified-Since", f.header.Get("Last-Modified"))
	}
	inScope := within(func(u *url.URL) string { _, why := s.link(nil, u.String(), false); return why })
	resp, alone, err := s.get(ctx, string(policy.OpenAPI), polite.Request{URL: l.address, Accept: acceptAPI, Header: h, Timeout: s.timeout,
		MaxBytes: maxPage, MaxRedirects: maxRedirects, Scope: inScope})
	var failure *web.Error
	var no *polite.DisallowedError
	switch {
	case err != nil:
		return "", err
	case errors.As(alone, &failure) && failure.Kind == web.KindBlocked: // where it redirects
		f.state, f.hash, f.reason = "missing", "", ledger.Redact(alone.Error())
		return "", nil
	case errors.As(alone, &no):
		f.reason = no.Error()
		return "", nil
	case alone != nil:
		return ledger.Redact(alone.Error()), nil
	case resp.Status == http.StatusNotModified && conditional:
		f.state = was.state
		return "", nil
	case resp.Status == http.StatusTooManyRequests, resp.Status >= 500, resp.Status == http.StatusNotModified:
		return fmt.Sprintf("status %d", resp.Status), nil
	case brokenOff(resp):
		return "the answer ends early", nil
	}
	f.state, f.hash, f.header, f.final = "missing", "", resp.Header, resp.FinalURL
	switch {
	case resp.Status == http.StatusForbidden:
		f.reason = "status 403"
		return "", s.forbid(ctx, s.db, l, resp.Status)
	case resp.Status != http.StatusOK:
		f.reason = fmt.Sprintf("status %d", resp.Status)
		return "", nil
	case resp.Truncated:
		f.reason = "longer than 5 MB"
		return "", nil
	}
	text, err := s.clean(ctx, at, resp.Body)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		f.reason = fmt.Sprintf("no JSON or YAML: %.300s", err)
		return "", nil //nolint:nilerr // it is the file's fault
	}
	sum := sha256.Sum256(text)
	f.state, f.body, f.hash = "found", string(text), hex.EncodeToString(sum[:])
	return "", nil
}

func (s *descriptions) clean(ctx context.Context, at *url.URL, body []byte) (text []byte, err error) {
	err = s.guard(ctx, at, len(body), func() (err error) { text, err = content.CleanFile(body); return err })
	return text, err
}

// changed asks whether the other files of a description that has itself not changed
// (304) have changed.
func (s *descriptions) changed(ctx context.Context, ch *chain) (changed bool, err error) {
	files, err := s.filesOf(ctx, ch.now.key)
	if err != nil || len(files) == 0 {
		return false, err
	}
	root := files[""]
	if root.session != s.part.session {
		root.body, root.state = "", "found"
		if err := s.keep(ctx, ch.now.key, &root); err != nil {
			return false, err
		}
	}
	delete(files, "")
	for _, address := range slices.Sorted(maps.Keys(files)) {
		f := files[address]
		if f.session != s.part.session && (f.state != "left" || len(files) < maxAPIFiles) {
			before := f
			unsure, err := s.fetch(ctx, ch, &f, true)
			if err == nil && unsure != "" { // the next session asks again
				s.log.Info("source_checked", "source", string(policy.OpenAPI), "url", address, "state", "unknown", "reason", unsure)
				f = before
				err = s.keep(ctx, ch.now.key, &f)
			}
			if err != nil {
				return false, err
			}
		}
		changed = changed || f.changed
	}
	return changed, nil
}

// resumed returns the description that a killed run had fetched.
func (s *descriptions) resumed(ctx context.Context, ch *chain) (resp *web.Response, err error) {
	if !s.inFiles[ch.now.key] {
		return nil, nil
	}
	files, err := s.filesOf(ctx, ch.now.key)
	root := files[""]
	if err != nil || root.session != s.part.session {
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
	if ch.now.contentHash == "" || s.part.stats.Again {
		return nil, nil
	}
	if ch.way.whole, err = s.changed(ctx, ch); ch.way.whole || err != nil {
		return nil, err
	}
	return &web.Response{Status: http.StatusNotModified, Header: http.Header{}}, nil
}

// close removes the texts of a description's files when its page has ended, and
// those files that it does not have any more.
func (s *descriptions) close(ctx context.Context, tx *sql.Tx, key string, e ending) error {
	if !s.inFiles[key] {
		return nil
	}
	query, args := `UPDATE docs_api_files SET body = '' WHERE provider = $1 AND key = $2`, []any{s.id, key}
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
		query, args = `DELETE FROM docs_api_files WHERE provider = $1 AND key = $2 AND (session <> $3 OR $4 = 0)`, append(args, s.part.session,
			e.read.files)
	default:
		return nil
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}
