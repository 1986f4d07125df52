package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/images"
)

// imaging says whether products' images are fetched.
type imaging struct {
	Fetch    bool
	Fetchers int // workers for each site
}

// Images is where what is known of images is, and their bytes.
var Images = images.Table{Name: "catalog_images", Source: "site", Prefix: "images/sha256/"}

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
	f := v.fetcher()
	return &stage{name: "ImageFetcher", fails: "failed_image_fetcher", input: KindSaveProduct, size: v.cfg.Images.Fetchers,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			if err := v.images(ctx, f, task.(SaveProduct)); err != nil {
				return nil, err
			}
			return []Task{task}, nil
		}}
}

// fetcher fetches images for a visit. An image may be on any host.
func (v *visit) fetcher() *images.Fetcher {
	return &images.Fetcher{Table: Images, Of: v.journal.site, Crawl: v.journal.number, DB: v.journal.db, Store: v.w.Store, Log: v.log, Now: v.clock, Count: v.state.Stats.Count,
		Get: func(ctx context.Context, r polite.Request) (*web.Response, error) {
			resp, err := v.get(ctx, r)
			var failed *failure
			if errors.As(err, &failed) {
				err = &images.Failed{Kind: failed.kind, Final: failed.final, Err: failed}
			}
			return resp, err
		}}
}

// images fetches the images of a product, and writes which it names. Its error is
// errStopped.
func (v *visit) images(ctx context.Context, f *images.Fetcher, task SaveProduct) error {
	p, err := v.reader.asProduct(task.ProductDetail, task.entry)
	if err != nil {
		return nil // the saver says why
	}
	named := v.reader.imagesOf(p)
	other, err := v.journal.hasOtherPage(ctx, p)
	if err != nil || other {
		return v.unlessLost(ctx, err)
	}
	if err = f.Fetch(ctx, named.urls, p.url); err == nil {
		err = v.journal.nameImages(ctx, p.key, named, db.Micros(v.clock()))
	}
	return v.unlessLost(ctx, err)
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

// retryImage tries an image again. A page is tried again by the journal.
func (v *visit) retryImage(a polite.Attempt) (wait time.Duration, again bool) {
	if s := a.Status(); s > 0 && !images.MayPass(s) || a.Failure != nil && (a.Failure.Kind == web.KindBlocked || a.Failure.Kind == web.KindRedirect) {
		return 0, false
	}
	return v.backoff(a.Retries + 1), a.Retries+1 < maxTries
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
