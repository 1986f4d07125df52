package raw

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// Evidence is an article's page as received, stored so that later parsers can read it.
type Evidence struct {
	Source      string    `json:"source"`
	URL         string    `json:"url"`   // after redirects
	Requested   string    `json:"asked"` // as in the sitemap
	ContentType string    `json:"content_type"`
	FetchedAt   time.Time `json:"fetched_at"`
	SitemapAt   time.Time `json:"sitemap_at,omitzero"`
	// News is from the sitemap's news extension, for what the page does not say.
	News   sitemap.News   `json:"news,omitzero"`
	Rights *rights.Rights `json:"rights"`
	HTML   []byte         `json:"-"` // as received
	// More are the further pages of an article that has several.
	More      []Page      `json:"-"`
	Header    http.Header `json:"-"` // as received; not read back
	Truncated bool        `json:"-"` // the page was cut at a limit; not read back
}

// Page is a further page of an article, as received.
type Page struct {
	URL         string // after redirects
	ContentType string
	FetchedAt   time.Time
	HTML        []byte
	Header      http.Header // not read back
	Truncated   bool        // not read back
}

const evidencePrefix = "evidence/news/"

// The named fields of a page's WARC record that only this program reads.
const (
	aboutField = "X-News-Evidence"     // of the first page: the Evidence as JSON, without pages
	typeField  = "X-News-Content-Type" // of a further one
)

// Keep writes evidence to the store, under its provider and the day of the fetch: a WARC
// file with the pages as they were received.
func Keep(ctx context.Context, s store.Store, canonical string, e Evidence) error {
	key := e.key(canonical)
	file, err := warc.AppendInfo(nil, e.FetchedAt, path.Base(key), [][2]string{{"software", "seed-engine"}, {"format", "WARC File Format 1.1"}})
	if err != nil {
		return err
	}
	pages := append([]Page{{e.URL, e.ContentType, e.FetchedAt, e.HTML, e.Header, e.Truncated}}, e.More...)
	about, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding evidence: %w", err)
	}
	for i, p := range pages {
		r := warc.Response{URI: p.URL, At: p.FetchedAt, Status: http.StatusOK, Header: p.Header, Body: p.HTML, Truncated: p.Truncated, Fields: [][2]string{{typeField, p.ContentType}}}
		if i == 0 {
			r.Fields = [][2]string{{aboutField, string(about)}}
		}
		if file, err = warc.AppendResponse(file, r); err != nil {
			return err
		}
	}
	if err := store.Write(ctx, s, key, file, store.PutOptions{ContentType: "application/warc"}); err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	return nil
}

// key returns where the evidence of the article with a canonical address is kept.
func (e Evidence) key(canonical string) string {
	return evidencePrefix + e.Source + "/" + e.FetchedAt.UTC().Format(time.DateOnly) + "/" + Hash(canonical) + ".warc.gz"
}

// Discard removes evidence that Keep has written.
func Discard(ctx context.Context, s store.Store, canonical string, e Evidence) error {
	return store.Remove(ctx, s, e.key(canonical))
}

// Kept yields a provider's evidence, of each article the newest, the oldest day first.
func Kept(ctx context.Context, s store.Store, source string) iter.Seq2[Evidence, error] {
	return func(yield func(Evidence, error) bool) {
		var keys []string
		newest := map[string]string{} // keys by the names of articles
		for o, err := range s.List(ctx, evidencePrefix+source+"/") {
			if err != nil {
				yield(Evidence{}, fmt.Errorf("listing evidence: %w", err))
				return
			}
			name, _, _ := strings.Cut(path.Base(o.Key), ".")
			keys, newest[name] = append(keys, o.Key), o.Key // days are listed in order
		}
		for _, key := range keys {
			if name, _, _ := strings.Cut(path.Base(key), "."); newest[name] != key {
				continue
			}
			e, err := readEvidence(ctx, s, key)
			if !yield(e, err) {
				return
			}
		}
	}
}

// DamagedError says that a kept page cannot be read, and never will.
type DamagedError struct {
	Key string
	Err error
}

func (e *DamagedError) Error() string { return "reading evidence " + e.Key + ": " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *DamagedError) Unwrap() error { return e.Err }

// maxEvidence is more than the file of an article with the largest pages has.
const maxEvidence = 64 << 20

func readEvidence(ctx context.Context, s store.Store, key string) (e Evidence, err error) {
	file, err := store.ReadAll(ctx, s, key, maxEvidence)
	if err != nil {
		return Evidence{}, fmt.Errorf("reading evidence %s: %w", key, err)
	}
	if e, err = readWARC(bytes.NewReader(file)); err != nil {
		return Evidence{}, &DamagedError{key, err}
	}
	return e, nil
}

// readWARC reads the pages of a WARC file.
func readWARC(file io.Reader) (e Evidence, err error) {
	first := true
	for r, err := range warc.Records(file) {
		if err != nil {
			return Evidence{}, err
		}
		if r.Type != warc.TypeResponse {
			continue
		}
		body, err := r.Body()
		if err != nil {
			return Evidence{}, err
		}
		if first {
			if err := json.Unmarshal([]byte(r.Header.Get(aboutField)), &e); err != nil {
				return Evidence{}, fmt.Errorf("reading %s: %w", aboutField, err)
			}
			e.HTML, first = body, false
			continue
		}
		at, err := time.Parse(time.RFC3339, r.Header.Get("Warc-Date"))
		if err != nil {
			return Evidence{}, err
		}
		e.More = append(e.More, Page{URL: r.Header.Get("Warc-Target-Uri"), ContentType: r.Header.Get(typeField), FetchedAt: at, HTML: body})
	}
	if first {
		return Evidence{}, errors.New("it has no response record")
	}
	return e, nil
}

// Expired are the articles whose retention has ended, as Sweep knows them.
type Expired map[string]bool

// Expiring returns the articles that Purge would remove.
func Expiring(ctx context.Context, d *db.DB, now time.Time) (Expired, error) {
	all := Expired{}
	for name, err := range db.Select(ctx, d, func(r *sql.Rows) (string, error) {
		var source, canonical string
		err := r.Scan(&source, &canonical)
		return source + "/" + Hash(canonical), err
	}, `SELECT source, canonical_url FROM news_articles WHERE expires_at <= $1`, db.Micros(now)) {
		if err != nil {
			return nil, fmt.Errorf("listing expired articles: %w", err)
		}
		all[name] = true
	}
	return all, nil
}

// Sweep removes the evidence of expired articles, and that of days that ended before a time. It
// returns how many objects it removed.
func Sweep(ctx context.Context, s store.Store, expired Expired, before time.Time) (n int64, err error) {
	for o, err := range s.List(ctx, evidencePrefix) {
		if err != nil {
			return n, fmt.Errorf("listing evidence: %w", err)
		}
		parts := strings.Split(strings.TrimPrefix(o.Key, evidencePrefix), "/")
		if len(parts) != 3 {
			continue
		}
		name, _, _ := strings.Cut(parts[2], ".")
		day, err := time.Parse(time.DateOnly, parts[1])
		if !expired[parts[0]+"/"+name] && (err != nil || !day.AddDate(0, 0, 1).Before(before)) {
			continue
		}
		if err := store.Remove(ctx, s, o.Key); err != nil {
			return n, fmt.Errorf("removing evidence: %w", err)
		}
		n++
	}
	return n, nil
}
