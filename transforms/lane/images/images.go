// Package images fetches the images that crawled pages name, and keeps their bytes in the store, once whatever the
// number of their addresses. No promise: see docs/library.md.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/picture"
)

// The limits of images.
const (
	MaxBytes     = 10 << 20 // of an image
	Most         = 40       // of a page
	maxPage      = 50 << 20 // bytes of a page's images
	age          = 7 * 24 * time.Hour
	timeout      = 30 * time.Second
	maxRedirects = 5
	maxText      = 500 // bytes of a failure, or of a validator
	maxShown     = 60  // bytes of a type
	accept       = "image/avif, image/webp, image/jpeg, image/png, image/gif"
)

// Fetcher fetches the images of one source. It is safe for concurrent use.
type Fetcher struct {
	Table
	Of    string // the source
	Crawl int64  // an image is requested once in a crawl
	DB    *db.DB
	Store store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// Get sends a request politely. A *Failed fails that image alone; any other error ends Fetch.
	Get   func(ctx context.Context, r polite.Request) (*web.Response, error)
	Count func(name string, n int64)

	flights singleflight.Group // two pages may name the same image
}

// Failed says why an image was not received.
type Failed struct {
	Kind  string
	Final bool // another try would fail in the same way
	Err   error
}

func (f *Failed) Error() string { return f.Err.Error() }
func (f *Failed) Unwrap() error { return f.Err }

// Fetch fetches the images that a page names, when it is time to. An image that fails is no error.
func (f *Fetcher) Fetch(ctx context.Context, urls []string, page string) error {
	left := int64(maxPage)
	for i, at := range urls {
		if i == Most || left <= 0 {
			f.Count("images_left_out", int64(len(urls)-i))
			f.Log.Warn("images_left_out", "url", page, "count", len(urls)-i, "reason", fmt.Sprintf("of a page at most %d images of together %d MiB are kept", Most, maxPage>>20))
			break
		}
		got, err, _ := f.flights.Do(at, func() (any, error) { return f.image(ctx, at, page) })
		if err != nil {
			return err
		}
		left -= got.(int64)
	}
	return nil
}

// image requests an image when it is time to, and returns how many bytes it has.
func (f *Fetcher) image(ctx context.Context, at, page string) (bytes int64, err error) {
	had, err := f.read(ctx, at)
	now := f.Now()
	if err != nil || had.askedIn == f.Crawl || now.Before(db.Time(had.againAt)) {
		return had.bytes, err
	}
	next := had
	next.askedIn, next.askedAt, next.againAt, next.failure = f.Crawl, db.Micros(now), db.Micros(now.Add(age)), ""
	resp, err := f.request(ctx, at, had)
	if err == nil && resp.Status == http.StatusNotModified {
		f.Count("images_unchanged", 1)
		return next.bytes, f.keep(ctx, at, next)
	}
	var seen picture.Info
	if err == nil {
		seen, err = check(resp)
	}
	var failed *Failed
	switch {
	case errors.As(err, &failed):
		if !failed.Final {
			next.againAt = 0 // the next crawl requests it again
		}
		next.failure = untrusted.Line(ledger.Redact(failed.Kind+": "+failed.Error()), maxText)
		f.Count("images_failed", 1)
		f.Log.Warn("image_failed", "url", at, "page", page, "kind", failed.Kind, "error", ledger.Redact(failed.Error()))
		return next.bytes, f.keep(ctx, at, next)
	case err != nil:
		return 0, err
	}
	sum := sha256.Sum256(resp.Body)
	next.hash, next.kind, next.bytes = hex.EncodeToString(sum[:]), seen.Type, int64(len(resp.Body))
	next.width, next.height, next.fetchedAt = int64(seen.Width), int64(seen.Height), db.Micros(now)
	next.etag, next.modified = untrusted.Line(resp.Header.Get("ETag"), maxText), untrusted.Line(resp.Header.Get("Last-Modified"), maxText)
	if err := f.write(ctx, next, resp.Body); err != nil {
		return 0, err
	}
	f.Count("images_fetched", 1)
	return next.bytes, f.keep(ctx, at, next)
}

// write writes an image to the store, unless its bytes are there.
func (f *Fetcher) write(ctx context.Context, i image, body []byte) error {
	key := f.Key(f.Of, i.hash, i.kind)
	if there, err := store.Has(ctx, f.Store, key); err != nil || there {
		return err
	}
	return store.Write(ctx, f.Store, key, body, store.PutOptions{ContentType: i.kind})
}

// request requests an image, conditionally if its bytes are there. The image may be on any host, whose robots.txt
// applies; a site's own headers are not sent.
func (f *Fetcher) request(ctx context.Context, at string, had image) (*web.Response, error) {
	r := polite.Request{URL: at, Accept: accept, Header: http.Header{}, Timeout: timeout, MaxBytes: MaxBytes, MaxRedirects: maxRedirects}
	if had.hash != "" && had.etag != "" {
		r.Header.Set("If-None-Match", had.etag)
	}
	if had.hash != "" && had.modified != "" {
		r.Header.Set("If-Modified-Since", had.modified)
	}
	resp, err := f.Get(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case resp.Status == http.StatusNotModified && had.hash != "", resp.Status/100 == 2:
		return resp, nil
	}
	return nil, &Failed{fmt.Sprintf("http_%d", resp.Status), !MayPass(resp.Status), fmt.Errorf("%s answers with status %d", resp.FinalURL, resp.Status)}
}

// MayPass reports whether what was answered with this status may be available later.
func MayPass(status int) bool { return status == 408 || status == 429 || status >= 500 }

// check checks that an answer is an image, by its type and by its bytes. An SVG is a document that may have scripts, so
// it is none.
func check(resp *web.Response) (picture.Info, error) {
	wrong := func(kind string, final bool, err error) (picture.Info, error) {
		return picture.Info{}, &Failed{kind, final, err}
	}
	switch {
	case int64(len(resp.Body)) >= MaxBytes:
		return wrong("too_large", true, fmt.Errorf("it has more than %d MiB", MaxBytes>>20))
	case resp.Truncated:
		return wrong("cut_off", false, errors.New("its bytes end early"))
	}
	declared, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case declared == "", declared == "application/octet-stream", declared == "binary/octet-stream":
	case !strings.HasPrefix(declared, "image/"), declared == "image/svg+xml":
		return wrong("not_an_image", true, fmt.Errorf("it has the type %q: only JPEG, PNG, GIF, WebP and AVIF are kept", untrusted.Line(declared, maxShown)))
	}
	seen, err := picture.Read(resp.Body)
	if err != nil {
		return wrong("not_an_image", true, err)
	}
	return seen, nil
}
