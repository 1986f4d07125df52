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

// store writes what was found to one partition: the evidence, then the metadata
// that speaks of it. The mark is written last, by the caller.
func (f findings) store(ctx context.Context, w *lane.Worker, cfg Config, q request, name string, fresh bool) error {
	index := q.index
	m := f.metadata
	m.DomainID, m.Country, m.Category = q.id, upper(q.in.Country), q.in.Category
	m.Source = &metadata.Source{RawFilePath: q.file, RecordIndex: &index}
	if err := validate(m); err != nil {
		return &invalidError{err}
	}
	doc, err := metadata.Marshal(m)
	if err != nil {
		return &invalidError{err}
	}
	dir := q.in.DomainDir(name) + "/"
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
			w.Log.Warn("evidence_file_save_failed", "domain_id", q.id, "key", dir+file, "error", ledger.Redact(err.Error()))
		}
	}
	if err := put(ctx, w.Store, metadataKey(q.in, name), doc, store.PutOptions{ContentType: "application/json", Metadata: map[string]string{
		"domain_id": q.id, "registrable_domain": name, "country": q.in.Country, "category": q.in.Category, "date": q.in.Date,
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

// cachedRobots is a robots.txt kept for later partitions and runs.
type cachedRobots struct {
	FetchedAt time.Time `json:"fetched_at"`
	Status    int       `json:"status"`
	FinalURL  string    `json:"final_url,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Body      []byte    `json:"body"`
}

func cacheKey(name string) string { return "cache/robots/" + name + ".json" }

// robotsFromCache gives a robots.txt that is younger than the cache's time. A
// forced run ignores the cache, and an unreadable entry counts as none.
func (c *collector) robotsFromCache(ctx context.Context, at string) (exchange, bool) {
	if c.cfg.Collect.RobotsCache <= 0 || c.cfg.ForceID != "" {
		return exchange{}, false
	}
	body, err := c.w.Store.Open(ctx, cacheKey(c.name))
	if err != nil {
		if !errors.Is(err, store.ErrNotExist) {
			c.w.Log.Warn("robots_cache_unreadable", "registrable_domain", c.name, "error", ledger.Redact(err.Error()))
		}
		return exchange{}, false
	}
	defer func() { _ = body.Close() }() // a reader: nothing is lost with its error
	var a cachedRobots
	if err := json.NewDecoder(io.LimitReader(body, 4*maxRobots)).Decode(&a); err != nil {
		c.w.Log.Warn("robots_cache_unreadable", "registrable_domain", c.name, "error", err.Error())
		return exchange{}, false
	}
	if age := time.Since(a.FetchedAt); age < 0 || age > c.cfg.Collect.RobotsCache {
		return exchange{}, false
	}
	return exchange{url: at, status: a.Status, final: a.FinalURL, truncated: a.Truncated, body: a.Body, at: a.FetchedAt}, true
}

// cacheRobots keeps a good answer; a failure is never kept.
func (c *collector) cacheRobots(ctx context.Context, f exchange) {
	if c.cfg.Collect.RobotsCache <= 0 || !f.ok() {
		return
	}
	doc, err := json.Marshal(cachedRobots{FetchedAt: f.at, Status: f.status, FinalURL: f.final, Truncated: f.truncated, Body: f.body})
	if err == nil {
		err = put(ctx, c.w.Store, cacheKey(c.name), doc, store.PutOptions{ContentType: "application/json"})
	}
	if err != nil {
		c.w.Log.Warn("robots_cache_unwritten", "registrable_domain", c.name, "error", ledger.Redact(err.Error()))
	}
}
