package raw

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// Evidence is an article's page as received, stored so that later parsers can read it.
type Evidence struct {
	Source      string    `json:"source"`
	URL         string    `json:"url"`             // after redirects
	Requested   string    `json:"asked,omitempty"` // as in the sitemap; "" in older evidence, where it was the same as URL
	ContentType string    `json:"content_type"`
	FetchedAt   time.Time `json:"fetched_at"`
	SitemapAt   time.Time `json:"sitemap_at,omitzero"`
	// News is from the sitemap's news extension, for what the page does not say.
	News sitemap.News `json:"news,omitzero"`
	HTML []byte       `json:"html"` // as received; base64 in JSON
	// More are the further pages of an article that has several.
	More []Page `json:"more,omitempty"`
}

// Page is a further page of an article, as received.
type Page struct {
	URL         string `json:"url"` // after redirects
	ContentType string `json:"content_type"`
	HTML        []byte `json:"html"`
}

const evidencePrefix = "evidence/news/"

// Keep writes evidence to the store, under its provider and the day of the fetch.
func Keep(ctx context.Context, s store.Store, canonical string, e Evidence) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(e); err != nil {
		return fmt.Errorf("encoding evidence: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("packing evidence: %w", err)
	}
	key := evidencePrefix + e.Source + "/" + e.FetchedAt.UTC().Format(time.DateOnly) + "/" + Hash(canonical) + ".json.gz"
	if err := store.Write(ctx, s, key, b.Bytes(), store.PutOptions{ContentType: "application/gzip"}); err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	return nil
}

// Kept yields a provider's evidence, the oldest day first.
func Kept(ctx context.Context, s store.Store, source string) iter.Seq2[Evidence, error] {
	return func(yield func(Evidence, error) bool) {
		for o, err := range s.List(ctx, evidencePrefix+source+"/") {
			if err != nil {
				yield(Evidence{}, fmt.Errorf("listing evidence: %w", err))
				return
			}
			e, err := readEvidence(ctx, s, o.Key)
			if !yield(e, err) {
				return
			}
		}
	}
}

func readEvidence(ctx context.Context, s store.Store, key string) (e Evidence, err error) {
	err = store.Retry(ctx, func() error {
		body, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // only read
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		e = Evidence{}
		return json.NewDecoder(io.LimitReader(z, 64<<20)).Decode(&e)
	})
	if err != nil {
		return Evidence{}, fmt.Errorf("reading evidence %s: %w", key, err)
	}
	return e, nil
}

// Sweep removes the evidence of days that ended before a time, and returns how many objects it removed.
func Sweep(ctx context.Context, s store.Store, before time.Time) (n int64, err error) {
	for o, err := range s.List(ctx, evidencePrefix) {
		if err != nil {
			return n, fmt.Errorf("listing evidence: %w", err)
		}
		parts := strings.Split(strings.TrimPrefix(o.Key, evidencePrefix), "/")
		if len(parts) != 3 {
			continue
		}
		day, err := time.Parse(time.DateOnly, parts[1])
		if err != nil || !day.AddDate(0, 0, 1).Before(before) {
			continue
		}
		if err := store.Retry(ctx, func() error { return s.Delete(ctx, o.Key) }); err != nil {
			return n, fmt.Errorf("removing evidence: %w", err)
		}
		n++
	}
	return n, nil
}
