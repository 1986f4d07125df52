package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// TermsReport is what is known of the page of a provider's terms of service.
type TermsReport struct {
	URL       string     `json:"url"`
	Reason    string     `json:"reason,omitempty"` // why the last request gave no text
	CheckedAt time.Time  `json:"checked_at"`       // the last request
	ReadAt    *time.Time `json:"read_at"`          // when its text was last seen
	ChangedAt *time.Time `json:"changed_at"`       // when another text was found
	BeforeAt  *time.Time `json:"before_at"`        // when the text before that was last seen

	termsChecked string // tos_checked of the policy when the change was found
}

// Changed says that the terms changed and that nobody has read them since, "" if not.
func (r *TermsReport) Changed(p policy.Policy) string {
	if r == nil || r.ChangedAt == nil || !unread(p, *r.ChangedAt, r.termsChecked) {
		return ""
	}
	return fmt.Sprintf("its terms of service changed between %s and %s; read %s again, and write the day into tos_checked",
		r.BeforeAt.UTC().Format(time.DateOnly), r.ChangedAt.UTC().Format(time.DateOnly), r.URL)
}

// unread reports whether nobody has read the terms since another text was found.
func unread(p policy.Policy, changedAt time.Time, termsChecked string) bool {
	return p.TermsDate < changedAt.UTC().Format(time.DateOnly) || p.TermsDate <= termsChecked
}

// termsRow is a row of docs_terms.
type termsRow struct {
	address, session, reason, hash, etag, modified string
	checkedAt, readAt, changedAt, beforeAt         int64
	termsChecked                                   string
}

// readTerms returns the row of a provider, without an address if there is none.
func readTerms(ctx context.Context, d *db.DB, provider string) (r termsRow, err error) {
	err = d.QueryRowContext(ctx, `SELECT address, session, reason, hash, etag, last_modified,
		checked_at, read_at, changed_at, before_at, tos_checked FROM docs_terms WHERE provider = $1`, provider).
		Scan(&r.address, &r.session, &r.reason, &r.hash, &r.etag, &r.modified,
			&r.checkedAt, &r.readAt, &r.changedAt, &r.beforeAt, &r.termsChecked)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("looking for the terms of %s: %w", provider, err)
	}
	return r, nil
}

// Terms returns what is known of the terms of a provider, nil if nothing is.
func Terms(ctx context.Context, d *db.DB, provider string) (*TermsReport, error) {
	r, err := readTerms(ctx, d, provider)
	if err != nil || r.address == "" {
		return nil, err
	}
	return &TermsReport{URL: r.address, Reason: r.reason, CheckedAt: db.Time(r.checkedAt), ReadAt: db.OptionalTime(r.readAt),
		ChangedAt: db.OptionalTime(r.changedAt), BeforeAt: db.OptionalTime(r.beforeAt), termsChecked: r.termsChecked}, nil
}

// checkTerms asks for the page of the provider's terms, once a session, and records
// whether its text is another one. That it cannot be read fails nothing.
func (s *provider) checkTerms(ctx context.Context) error {
	if s.policy.TermsURL == "" {
		return nil
	}
	r, err := readTerms(ctx, s.db, s.id)
	address := clean(s.policy.TermsURL)
	if err != nil || r.session == s.part.session && r.address == address {
		return err
	}
	if r.address != address { // the texts of two pages differ anyway
		r.hash, r.etag, r.modified = "", "", ""
	}
	r.address, r.session = address, s.part.session
	resp, why, err := s.fetchTerms(ctx, r)
	if err == nil && why == "" {
		why, err = s.compareTerms(ctx, &r, resp)
	}
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO docs_terms (provider, address, session, reason, hash, etag, last_modified, checked_at,
			read_at, changed_at, before_at, tos_checked) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (provider) DO UPDATE SET address = excluded.address, session = excluded.session, reason = excluded.reason,
			hash = excluded.hash, etag = excluded.etag, last_modified = excluded.last_modified, checked_at = excluded.checked_at, read_at = excluded.read_at,
			changed_at = excluded.changed_at, before_at = excluded.before_at, tos_checked = excluded.tos_checked`,
		s.id, r.address, r.session, content.Clean(why), r.hash, r.etag, r.modified, db.Micros(s.clock.Now()),
		r.readAt, r.changedAt, r.beforeAt, r.termsChecked)
	if err != nil {
		return fmt.Errorf("recording the terms of %s: %w", s.id, err)
	}
	if why != "" {
		s.log.Warn("terms_unreadable", "url", address, "reason", why)
	}
	return nil
}

// fetchTerms requests the page of the terms; why says why there is no answer to read. A
// redirect to another host is not followed: the host belongs to no lane of this job.
func (s *provider) fetchTerms(ctx context.Context, was termsRow) (resp *web.Response, why string, err error) {
	at, err := url.Parse(was.address)
	if err != nil {
		return nil, "no URL", nil
	}
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if was.hash != "" {
		setIf(h, "If-None-Match", was.etag)
		setIf(h, "If-Modified-Since", was.modified)
	}
	resp, err = s.client.Get(ctx, polite.Request{URL: was.address, Accept: accept, Header: h, Timeout: pageTimeout,
		MaxBytes: maxPage, MaxRedirects: maxRedirects, Once: true, Scope: func(u *url.URL) error {
			if canonical.Host(u) != canonical.Host(at) {
				return fmt.Errorf("it leads to another host: write %s into tos_url", u.Redacted())
			}
			return nil
		}})
	var failure *web.Error
	var no *polite.DisallowedError
	var robots *polite.RobotsError
	var abandoned *polite.AbandonedError
	switch {
	case errors.As(err, &failure), errors.As(err, &no), errors.As(err, &robots), errors.As(err, &abandoned):
		return nil, ledger.Redact(err.Error()), nil // a pause of the provider's own host ends its crawl at the next request
	case err != nil:
		return nil, "", err
	case resp.Status != http.StatusOK && (resp.Status != http.StatusNotModified || was.hash == ""):
		return nil, fmt.Sprintf("status %d", resp.Status), nil
	case resp.Truncated:
		return nil, fmt.Sprintf("longer than %d MB, or broken off", maxPage>>20), nil
	}
	return resp, "", nil
}

// compareTerms compares an answer with what was read before; why says why there is no
// text in it.
func (s *provider) compareTerms(ctx context.Context, r *termsRow, resp *web.Response) (why string, err error) {
	at := db.Micros(s.clock.Now())
	if resp.Status == http.StatusNotModified {
		r.readAt = at
		return "", nil
	}
	var hash, no string
	parse := func() error { hash, no = hashTerms(resp.Body, resp.Header.Get("Content-Type")); return nil }
	why, err = s.reading(ctx, r.address, len(resp.Body), parse)
	if why = cmp.Or(why, no); why != "" || err != nil {
		return why, err
	}
	if r.hash != "" && r.hash != hash {
		if r.changedAt == 0 || !unread(s.policy, db.Time(r.changedAt), r.termsChecked) {
			r.beforeAt = r.readAt
		}
		r.changedAt, r.termsChecked = at, s.policy.TermsDate
		s.log.Warn("terms_changed", "url", r.address, "what_to_do", "read them again, and write the day into tos_checked")
	}
	r.hash, r.readAt = hash, at
	r.etag, r.modified = validator(resp.Header.Get("ETag")), validator(resp.Header.Get("Last-Modified"))
	return "", nil
}

// copyright is a line that changes each year, and says nothing of the terms.
var copyright = regexp.MustCompile(`(?im)^\W*(copyright|©|\(c\)).{0,200}$`)

// hashTerms hashes the words of a page's content, so that neither its markup nor what is
// around the content counts. why says why there is no content.
func hashTerms(body []byte, contentType string) (hash, why string) {
	defer func() {
		if v := recover(); v != nil { // a page must not end the crawl of its provider
			hash, why = "", fmt.Sprintf("a bug: panic while reading the page: %v", v)
		}
	}()
	form, media := content.Kind(contentType, body)
	if form != content.HTML && form != content.Text {
		return "", "no page but " + media
	}
	v := answer.Classify(answer.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: body})
	page, err := content.Read(form, body, contentType, content.Options{})
	switch {
	case err != nil:
		return "", ledger.Redact(err.Error())
	case v.Kind == answer.Login:
		return "", aLogin
	case v.Kind.Wall():
		return "", "no page but " + string(v.Kind) + ": " + v.Evidence
	case page.Empty:
		return "", "no content"
	}
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := strings.FieldsFunc(copyright.ReplaceAllString(page.Markdown, ""), between)
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	return hex.EncodeToString(sum[:]), ""
}

// groups gives each host the number of its group. Providers whose terms are on one host,
// or on the host of another provider, are in one group: a lane is in one process, and that
// sends a host one request at a time.
func (c Config) groups(hosts []Host) []int {
	of, names := make([]int, len(hosts)), make([][]string, len(hosts))
	for i, h := range hosts {
		of[i], names[i] = i, []string{h.Name}
		for _, p := range c.Policies {
			if u, err := url.Parse(p.TermsURL); err == nil && p.TermsURL != "" && slices.Contains(h.Providers, p.ProviderID) {
				names[i] = append(names[i], canonical.Host(u))
			}
		}
	}
	for at, joined := map[string]int{}, true; joined; { // the smallest group of each name
		joined = false
		for i := range hosts {
			for _, name := range names[i] {
				if g, known := at[name]; known && g < of[i] {
					of[i], joined = g, true
				}
			}
			for _, name := range names[i] {
				if g, known := at[name]; !known || of[i] < g {
					at[name], joined = of[i], true
				}
			}
		}
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(of)))
	for i := range of {
		of[i] = slices.Index(numbers, of[i])
	}
	return of
}
