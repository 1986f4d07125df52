package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// onePage is the article of --url, and the publisher that reads it.
type onePage struct {
	address string
	by      provider.Provider
}

// chooseOne finds the publisher of --url: the configured one on its host, or else one
// with the default extractor.
func (n *newsOptions) chooseOne(c *RunOptions) error {
	if n.Purge || n.Reparse || n.KeepHTML || n.Publisher != "" {
		return usage.Errorf("--url prints one article and stores nothing; leave --purge-expired, --reparse, --keep-html and --publisher out")
	}
	u, err := pageURL(c.URL)
	if err != nil {
		return err
	}
	all, err := news.Config{Publishers: n.texts}.Providers()
	if err != nil {
		return usage.Errorf("--publishers: %w", err)
	}
	n.one = &onePage{address: u.String()}
	for _, p := range append(all, n.world...) {
		if !provider.Hosts(p.BaseURL(), u) {
			continue
		}
		if t := n.loaded.Providers[p.ID()]; n.Settings != "" && t.Enabled != nil && !*t.Enabled && !slices.Contains(n.world, p) {
			return usage.Errorf("--url=%s: it is of %s, which --news-config disables", c.URL, p.ID())
		}
		if !p.IsArticleURL(u) {
			return usage.Errorf("--url=%s: for %s that is no article's address (articleUrl); give an article's own", c.URL, p.ID())
		}
		if why := n.off[p.ID()]; why != "" {
			return usage.Errorf("--url=%s: it is of %s: %s", c.URL, p.ID(), why)
		}
		n.one.by = p
		return nil
	}
	// A string of JSON is one of YAML.
	press, err := json.Marshal(canonical.Host(u))
	if err != nil {
		return err
	}
	base, err := json.Marshal(u.Scheme + "://" + u.Host)
	if err != nil {
		return err
	}
	n.one.by, err = provider.Declared(fmt.Appendf(nil, "id: url\npress: %s\nbaseUrl: %s\narticleUrl: .\nzone: UTC\n", press, base))
	if err != nil {
		return usage.Errorf("--url=%s: %w", c.URL, err)
	}
	return nil
}

// pageURL reads the value of --url.
func pageURL(raw string) (*url.URL, error) {
	given, err := url.Parse(raw)
	if err != nil || given.Host == "" || given.User != nil {
		return nil, usage.Errorf("--url=%s: write the URL of a page, such as https://docs.example.org/guide", raw)
	}
	u, err := canonical.Address(nil, raw, nil)
	if err != nil {
		return nil, usage.Errorf("--url=%s: %w; write the URL of a page, such as https://docs.example.org/guide", raw, err)
	}
	return u, nil
}

// printOne prints the article of --url as JSON.
func (n *newsOptions) printOne(ctx context.Context, c RunOptions, _ store.Store, stdout io.Writer) (err error) {
	cfg := n.config(c, lane.Config{Job: news.Job, RunID: ledger.NewRunID(time.Now()), Store: c.Store, Web: c.WebConfig(""), Polite: c.PoliteConfig(), LogFormat: c.LogFormat, LogLevel: c.Level()})
	end, err := startDemo(c, newsDemo, &cfg.Lane.Web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lane.Close(cfg.Lane.RunID), end()) }()
	one, err := news.One(ctx, cfg, n.one.by, n.one.address)
	if err != nil {
		return err
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(one)
}
