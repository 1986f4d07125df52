package catalog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
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

// images says whether products' images are fetched.
type images struct {
	Fetch    bool
	Fetchers int // workers for each site
}

const (
	maxImage      = 10 << 20 // bytes
	maxImages     = 40       // of a product
	maxImageBytes = 50 << 20 // of a product's images
	imageAge      = 7 * 24 * time.Hour
	acceptImages  = "image/avif, image/webp, image/jpeg, image/png, image/gif"

	// ImagePrefix is where the bytes of images are in the store.
	ImagePrefix = "images/sha256/"
)

// imageFetcher fetches products' images: SaveProduct → SaveProduct. A product whose images
// cannot be fetched is saved all the same. There is no such stage without --images.
func (v *visit) imageFetcher() *stage {
	if !v.cfg.Images.Fetch {
		return nil
	}
	if !v.reader.site.HasImages() {
		v.log.Warn("site_without_images", "reason", "no field of its file has the type image")
		return nil
	}
	return &stage{name: "ImageFetcher", fails: "failed_image_fetcher", input: KindSaveProduct, size: v.cfg.Images.Fetchers,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			if err := v.images(ctx, task.(SaveProduct)); err != nil {
				return nil, err
			}
			return []Task{task}, nil
		}}
}

// imaging is a visit's part of imageFetcher: two products may name the same image.
type imaging struct{ flights singleflight.Group }

// images fetches the images of a product, and writes which it names. Its error is
// errStopped.
func (v *visit) images(ctx context.Context, task SaveProduct) error {
	p, err := v.reader.asProduct(task.ProductDetail, task.entry)
	if err != nil {
		return nil // the saver says why
	}
	named := v.reader.imagesOf(p)
	other, err := v.journal.hasOtherPage(ctx, p)
	if err != nil || other {
		return v.unlessLost(ctx, err)
	}
	left := int64(maxImageBytes)
	for i, at := range named.urls {
		if i == maxImages || left <= 0 {
			v.state.Stats.Count("images_left_out", int64(len(named.urls)-i))
			v.log.Warn("images_left_out", "url", p.url, "count", len(named.urls)-i, "reason", fmt.Sprintf("a product has at most %d images of together %d MiB", maxImages, maxImageBytes>>20))
			break
		}
		got, err, _ := v.flights.Do(at, func() (any, error) { return v.image(ctx, at, p.url) })
		if err != nil {
			return v.unlessLost(ctx, err)
		}
		left -= got.(int64)
	}
	return v.unlessLost(ctx, v.journal.nameImages(ctx, p.key, named, db.Micros(v.clock())))
}

// unlessLost stops the site when the database or the store fails: the product would be
// saved, and its images would be missing.
func (v *visit) unlessLost(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errStopped):
		return err
	case ctx.Err() != nil, errors.Is(err, polite.ErrStopped):
		return errStopped
	}
	return v.stopSite(fmt.Errorf("keeping images: %w", err))
}

// image asks for an image when it is time to, and returns how many bytes it has.
func (v *visit) image(ctx context.Context, at, page string) (bytes int64, err error) {
	had, err := v.journal.image(ctx, at)
	now := v.clock()
	if err != nil || had.askedIn == v.journal.number || now.Before(db.Time(had.againAt)) {
		return had.bytes, err
	}
	next := had
	next.askedIn, next.askedAt, next.againAt, next.failure = v.journal.number, db.Micros(now), db.Micros(now.Add(imageAge)), ""
	resp, err := v.requestImage(ctx, at, had)
	if err == nil && resp.Status == http.StatusNotModified {
		v.state.Stats.Count("images_unchanged", 1)
		return next.bytes, v.journal.keepImage(ctx, at, next)
	}
	var seen picture.Info
	if err == nil {
		seen, err = readImage(resp)
	}
	var failed *failure
	switch {
	case errors.As(err, &failed):
		if !failed.final {
			next.againAt = 0 // the next crawl asks again
		}
		next.failure = untrusted.Line(ledger.Redact(failed.kind+": "+failed.Error()), maxImageFailure)
		v.state.Stats.Count("images_failed", 1)
		v.log.Warn("image_failed", "url", at, "page", page, "kind", failed.kind, "error", ledger.Redact(failed.Error()))
		return next.bytes, v.journal.keepImage(ctx, at, next)
	case err != nil:
		return 0, err
	}
	sum := sha256.Sum256(resp.Body)
	next.hash, next.kind, next.bytes = hex.EncodeToString(sum[:]), seen.Type, int64(len(resp.Body))
	next.width, next.height, next.fetchedAt = int64(seen.Width), int64(seen.Height), db.Micros(now)
	next.etag, next.modified = untrusted.Line(resp.Header.Get("ETag"), maxValidator), untrusted.Line(resp.Header.Get("Last-Modified"), maxValidator)
	if err := v.keepBytes(ctx, next, resp.Body); err != nil {
		return 0, err
	}
	v.state.Stats.Count("images_fetched", 1)
	return next.bytes, v.journal.keepImage(ctx, at, next)
}

// The limits of texts about an image, in bytes.
const (
	maxImageFailure = 500
	maxValidator    = 500
)

// imageKey returns the key of an image's bytes in the store.
func imageKey(hash, kind string) string {
	if hash == "" {
		return ""
	}
	return ImagePrefix + hash[:2] + "/" + hash + "." + picture.Info{Type: kind}.Extension()
}

// keepBytes writes an image to the store, once whatever the number of its addresses.
func (v *visit) keepBytes(ctx context.Context, i image, body []byte) error {
	key := imageKey(i.hash, i.kind)
	if there, err := store.Has(ctx, v.w.Store, key); err != nil || there {
		return err
	}
	return store.Write(ctx, v.w.Store, key, body, store.PutOptions{ContentType: i.kind})
}

// requestImage asks for an image, conditionally if its bytes are there. The image may be
// on any host, whose robots.txt applies; the site's own headers are not sent.
func (v *visit) requestImage(ctx context.Context, at string, had image) (*web.Response, error) {
	r := polite.Request{URL: at, Accept: acceptImages, Header: http.Header{}, Timeout: pageTimeout, MaxBytes: maxImage, MaxRedirects: maxRedirects}
	if had.hash != "" && had.etag != "" {
		r.Header.Set("If-None-Match", had.etag)
	}
	if had.hash != "" && had.modified != "" {
		r.Header.Set("If-Modified-Since", had.modified)
	}
	resp, err := v.get(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case resp.Status == http.StatusNotModified && had.hash != "", resp.Status/100 == 2:
		return resp, nil
	}
	return nil, badStatus(resp.FinalURL, resp)
}

// retryImage tries an image again. A page is tried again by the journal.
func (v *visit) retryImage(a polite.Attempt) (wait time.Duration, again bool) {
	if s := a.Status(); s > 0 && !mayPass(s) || a.Failure != nil && (a.Failure.Kind == web.KindBlocked || a.Failure.Kind == web.KindRedirect) {
		return 0, false
	}
	return v.backoff(a.Retries + 1), a.Retries+1 < maxTries
}

// readImage checks that an answer is an image, by its type and by its bytes. An SVG is a
// document that may have scripts, so it is none.
func readImage(resp *web.Response) (picture.Info, error) {
	wrong := func(kind string, final bool, err error) (picture.Info, error) {
		return picture.Info{}, &failure{kind: kind, final: final, err: err}
	}
	switch {
	case int64(len(resp.Body)) >= maxImage:
		return wrong("too_large", true, fmt.Errorf("it has more than %d MiB", maxImage>>20))
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

// namedImages are the images that a page names for its product.
type namedImages struct {
	urls   []string // each once, in the order of the fields' names
	of     []string // their fields
	fields []string // about which the page says all: an image that is no longer among urls is gone
}

// HasImages reports whether a field of the site has images.
func (s Site) HasImages() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Fields)), Field.isImage)
}

// isImage reports whether a field, or a part of it, is an image.
func (f Field) isImage() bool {
	isPart := func(p Part) bool { return p.Type == typeImage }
	return f.Type == typeImage || slices.ContainsFunc(slices.Collect(maps.Values(f.Fields)), isPart)
}

const typeImage = "image"

// imagesOf returns the images that a product's page names.
func (r *reader) imagesOf(p product) (n namedImages) {
	seen := map[string]bool{}
	for _, f := range r.fields {
		if !f.isImage() {
			continue
		}
		raw, has := p.fields[f.name]
		if !has {
			for _, l := range p.lacks {
				if l.field == f.name && f.Volatile && l.why == "" && !l.unseen {
					n.fields = append(n.fields, f.name)
				}
			}
			continue
		}
		n.fields = append(n.fields, f.name)
		var v any
		if json.Unmarshal(raw, &v) != nil {
			continue
		}
		for _, s := range f.addresses(v) {
			u, err := url.Parse(s)
			if err != nil {
				continue
			}
			u.Fragment, u.RawFragment = "", ""
			if s = u.String(); !seen[s] {
				seen[s] = true
				n.urls, n.of = append(n.urls, s), append(n.of, f.name)
			}
		}
	}
	return n
}

// addresses returns the addresses of images in a field's value: one text or many, or
// groups in which they are parts.
func (f fieldReader) addresses(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			all = append(all, f.addresses(e)...)
		}
	case map[string]any:
		for _, p := range f.parts {
			if p.kind.name == typeImage {
				all = append(all, f.addresses(v[p.name])...)
			}
		}
	}
	return all
}

// image is what the database has of an image.
type image struct {
	hash, kind, etag, modified, failure  string
	bytes, width, height                 int64
	fetchedAt, askedAt, askedIn, againAt int64
}

// image reads an image; one that was never asked for is zero.
func (j *rows) image(ctx context.Context, at string) (i image, err error) {
	err = j.db.QueryRowContext(ctx, `SELECT hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure FROM catalog_images WHERE site = $1 AND url = $2`, j.site, at).
		Scan(&i.hash, &i.kind, &i.bytes, &i.width, &i.height, &i.etag, &i.modified, &i.fetchedAt, &i.askedAt, &i.askedIn, &i.againAt, &i.failure)
	if errors.Is(err, sql.ErrNoRows) {
		return image{askedIn: -1}, nil
	}
	return i, err
}

func (j *rows) keepImage(ctx context.Context, at string, i image) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		return j.db.InsertRows(ctx, tx, "catalog_images", []string{"site", "url", "hash", "type", "bytes", "width", "height", "etag", "last_modified", "fetched_at", "asked_at", "asked_in", "again_at", "failure"},
			[][]any{{j.site, at, i.hash, i.kind, i.bytes, i.width, i.height, i.etag, i.modified, i.fetchedAt, i.askedAt, i.askedIn, i.againAt, i.failure}},
			`ON CONFLICT (site, url) DO UPDATE SET hash = excluded.hash, type = excluded.type, bytes = excluded.bytes, width = excluded.width, height = excluded.height, etag = excluded.etag,
			last_modified = excluded.last_modified, fetched_at = excluded.fetched_at, asked_at = excluded.asked_at, asked_in = excluded.asked_in, again_at = excluded.again_at, failure = excluded.failure`)
	})
}

// hasOtherPage reports whether this crawl has saved the product from another page, whose
// images then count.
func (j *rows) hasOtherPage(ctx context.Context, p product) (other bool, err error) {
	err = j.db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM catalog_products WHERE site = $1 AND product_key = $2 AND seen_in = $3 AND url <> $4`,
		j.site, p.key, j.number, p.url).Scan(&other)
	return other, err
}

// nameImages writes which images a product names, and which it no longer does.
func (j *rows) nameImages(ctx context.Context, key string, n namedImages, now int64) error {
	all := make([][]any, len(n.urls))
	for i, at := range n.urls {
		all[i] = []any{j.site, key, at, n.of[i], int64(i + 1), now, now, int64(0)}
	}
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		err := j.db.InsertRows(ctx, tx, "catalog_product_images", []string{"site", "product_key", "url", "field", "position", "first_seen", "last_seen", "gone_at"}, all,
			`ON CONFLICT (site, product_key, url) DO UPDATE SET field = excluded.field, position = excluded.position, last_seen = excluded.last_seen, gone_at = excluded.gone_at`)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE catalog_product_images SET gone_at = $1 WHERE site = $2 AND product_key = $3 AND `+j.db.Never("gone_at")+` AND field `+j.db.AnyOf(4)+` AND NOT (url `+j.db.AnyOf(5)+`)`,
			now, j.site, key, j.db.List(n.fields), j.db.List(n.urls))
		return err
	})
}

// Audit calls found for images whose rows have no bytes in the store, and how to mend it.
func Audit(ctx context.Context, s store.Store, d *db.DB, found func(what, key, mend string)) error {
	if d == nil {
		return nil
	}
	there, err := d.HasTable(ctx, "catalog_images")
	if err != nil || !there {
		return err
	}
	kept, err := store.Keys(ctx, s, ImagePrefix)
	if err != nil {
		return err
	}
	for key, err := range db.Select(ctx, d, func(r *sql.Rows) (string, error) {
		var hash, kind string
		err := r.Scan(&hash, &kind)
		return imageKey(hash, kind), err
	}, `SELECT DISTINCT hash, type FROM catalog_images WHERE hash <> '' ORDER BY hash`) {
		if err != nil {
			return fmt.Errorf("reading the images: %w", err)
		}
		if _, there := slices.BinarySearch(kept, key); there {
			continue
		}
		there, err := store.Has(ctx, s, key) // a run may have stored it since the listing
		if err != nil {
			return fmt.Errorf("looking at %s: %w", key, err)
		}
		if !there {
			found("rows of images without bytes", key, "restore them from a backup; or set hash = '' in catalog_images, and catalog --images requests them again")
		}
	}
	return nil
}
