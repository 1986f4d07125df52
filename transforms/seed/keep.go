package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// evidenceTypes are the evidence files of a domain and their content types.
var evidenceTypes = map[string]string{
	"robots.txt":    "text/plain",
	"sitemap.xml":   "application/xml",
	"homepage.html": "text/html",
}

// validate is a variable for the tests alone.
var validate = metadata.Validate

// store writes what was found to one partition in the order of the seed's
// section 4.3.3: evidence, then the metadata. The mark is the caller's.
func (f findings) store(ctx context.Context, w *lane.Worker, cfg Config, wi wish, name string, fresh bool) error {
	index := wi.index
	m := f.metadata
	m.DomainID, m.Country, m.Category = wi.id, upper(wi.in.Country), wi.in.Category
	m.Source = &metadata.Source{RawFilePath: wi.file, RecordIndex: &index}
	if err := validate(m); err != nil {
		return &invalidError{err}
	}
	doc, err := metadata.Marshal(m)
	if err != nil {
		return &invalidError{err}
	}
	dir := wi.in.DomainDir(name) + "/"
	for file, contentType := range evidenceTypes {
		if file == "homepage.html" && !cfg.Collect.Homepage {
			continue
		}
		body, ok := f.evidence[file]
		if !ok && fresh {
			continue
		}
		if !ok { // an earlier, killed try may have left one
			if err := store.Retry(ctx, func() error { return w.Store.Delete(ctx, dir+file) }); err != nil {
				return fmt.Errorf("removing old evidence %s: %w", dir+file, err)
			}
			continue
		}
		if err := put(ctx, w.Store, dir+file, body, store.PutOptions{ContentType: contentType}); err != nil {
			w.Log.Warn("evidence_file_save_failed", "domain_id", wi.id, "key", dir+file, "error", ledger.Redact(err.Error()))
		}
	}
	if err := put(ctx, w.Store, metadataKey(wi.in, name), doc, store.PutOptions{ContentType: "application/json", Metadata: map[string]string{
		"domain_id": wi.id, "registrable_domain": name, "country": wi.in.Country, "category": wi.in.Category, "date": wi.in.Date,
	}}); err != nil {
		return err
	}
	return nil
}

func put(ctx context.Context, s store.Store, key string, body []byte, o store.PutOptions) error {
	if err := store.Retry(ctx, func() error { return s.Put(ctx, key, bytes.NewReader(body), o) }); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

func upper(cc string) string { return string(bytes.ToUpper([]byte(cc))) }

// cachedAnswer is a robots.txt kept for later partitions and runs.
type cachedAnswer struct {
	FetchedAt time.Time `json:"fetched_at"`
	Status    int       `json:"status"`
	FinalURL  string    `json:"final_url,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Body      []byte    `json:"body"`
}

func cacheKey(name string) string { return "cache/robots/" + name + ".json" }

// cachedRobots gives a robots.txt that is younger than the cache's time. A
// forced run passes it by, and an unreadable entry counts as none.
func (c *collector) cachedRobots(ctx context.Context, at string) (fetched, bool) {
	if c.cfg.Collect.RobotsCache <= 0 || c.cfg.ForceID != "" {
		return fetched{}, false
	}
	body, err := c.w.Store.Open(ctx, cacheKey(c.name))
	if err != nil {
		if !errors.Is(err, store.ErrNotExist) {
			c.w.Log.Warn("robots_cache_unreadable", "registrable_domain", c.name, "error", ledger.Redact(err.Error()))
		}
		return fetched{}, false
	}
	defer func() { _ = body.Close() }() // a reader: nothing is lost with its error
	var a cachedAnswer
	if err := json.NewDecoder(io.LimitReader(body, 4*robotsMax)).Decode(&a); err != nil {
		c.w.Log.Warn("robots_cache_unreadable", "registrable_domain", c.name, "error", err.Error())
		return fetched{}, false
	}
	if age := time.Since(a.FetchedAt); age < 0 || age > c.cfg.Collect.RobotsCache {
		return fetched{}, false
	}
	return fetched{url: at, status: a.Status, final: a.FinalURL, truncated: a.Truncated, body: a.Body, at: a.FetchedAt}, true
}

// cacheRobots keeps a good answer; a failure is never kept.
func (c *collector) cacheRobots(ctx context.Context, f fetched) {
	if c.cfg.Collect.RobotsCache <= 0 || !f.ok() {
		return
	}
	doc, err := json.Marshal(cachedAnswer{FetchedAt: f.at, Status: f.status, FinalURL: f.final, Truncated: f.truncated, Body: f.body})
	if err == nil {
		err = put(ctx, c.w.Store, cacheKey(c.name), doc, store.PutOptions{ContentType: "application/json"})
	}
	if err != nil {
		c.w.Log.Warn("robots_cache_unwritten", "registrable_domain", c.name, "error", ledger.Redact(err.Error()))
	}
}
