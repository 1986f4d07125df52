package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// isFile reports whether --site names the YAML file of one site.
func (c *catalogOptions) isFile() bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(c.Site))
}

// readFile reads the file that --site names.
func (c *catalogOptions) readFile() ([]siteFile, error) {
	text, err := os.ReadFile(c.Site)
	if err != nil {
		return nil, usage.Errorf("--site: %w", err)
	}
	s, err := catalog.ParseSite(text)
	if err != nil {
		return nil, usage.Errorf("--site=%s: %w", c.Site, err)
	}
	return []siteFile{{s, string(text)}}, nil
}

// site is the site of the page that --try names.
func (c *catalogOptions) site() (catalog.Site, error) {
	u, err := webURL("--try=", c.Try, "a page, such as https://shop.example/product/1")
	if err != nil {
		return catalog.Site{}, err
	}
	var on []catalog.Site
	var hosts []string
	for _, s := range c.loaded {
		hosts = append(hosts, s.Host())
		if s.Host() == web.Site(u) {
			on = append(on, s)
		}
	}
	switch len(on) {
	case 1:
		return on[0], nil
	case 0:
		return catalog.Site{}, usage.Errorf("--try=%s: no site's file has a list on that host, but on %s; name the file with --site=FILE.yaml", c.Try, usage.Or(hosts))
	}
	return catalog.Site{}, usage.Errorf("--try=%s: %d sites are on that host; name one with --site", c.Try, len(on))
}

// try prints what a site's file reads from one page.
func (c *catalogOptions) try(ctx context.Context, o RunOptions, _ store.Store, stdout io.Writer) (err error) {
	s, err := c.site()
	if err != nil {
		return err
	}
	cfg := c.config(o, lane.Config{Job: catalog.Job, RunID: ledger.NewRunID(time.Now()), Store: o.Store, Web: o.WebConfig(""), Polite: o.PoliteConfig(), LogFormat: o.LogFormat, LogLevel: o.Level()})
	end, err := startDemo(o, c.demo, &cfg.Lane.Web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lane.Close(cfg.Lane.RunID), end()) }()
	t, err := catalog.Try(ctx, cfg, s, c.Try)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, trialText(t)); err != nil {
		return err
	}
	if !t.Found() {
		return fmt.Errorf("%s has neither the key of a product (%s) nor links to products: correct the selectors, or give another page", t.URL, s.Key)
	}
	return nil
}

// trialText is a trial for a terminal.
func trialText(t catalog.Trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, read by the file of %s\n\n", t.URL, t.Site)
	fmt.Fprintf(&b, "as a list page: %d links to products, %d other links ignored\n", t.Counts.ProductLinks, t.Counts.Ignored)
	for _, l := range t.Links {
		fmt.Fprintf(&b, "    %s\n", l)
	}
	if t.Counts.LastPage > 0 {
		fmt.Fprintf(&b, "    last page: %d\n", t.Counts.LastPage)
	}
	if t.Counts.NextPage != "" {
		fmt.Fprintf(&b, "    next page: %s\n", t.Counts.NextPage)
	}
	writeParts(&b, t.List)
	key := "no key, so that nothing would be saved"
	switch {
	case t.Key != "":
		key = "key " + t.Key
	case t.KeyInRow:
		key = "its key is in its row of the list"
	}
	fmt.Fprintf(&b, "\nas a product's page: %s\n", key)
	writeParts(&b, t.Fields)
	switch {
	case t.Untagged != "":
		fmt.Fprintf(&b, "\nno tags: %s\n", t.Untagged)
	case t.Tags != nil:
		fmt.Fprintf(&b, "\ntags: %s\n", cmp.Or(strings.Join(t.Tags, ", "), "the model gives none"))
	}
	return b.String()
}

func writeParts(b *strings.Builder, parts []catalog.TrialPart) {
	for _, p := range parts {
		mark, says := "✓", p.Why
		switch {
		case p.Why == "":
			says = fmt.Sprintf("%q", p.Value)
			if v, err := json.Marshal(p.Value); err == nil {
				says = string(v)
			}
		case p.Required:
			mark = "✗"
		default:
			mark = " "
		}
		fmt.Fprintf(b, "  %s %-18s %s\n      selector %s matches %d\n", mark, p.Name, shorten(says), p.Selector, p.Elements)
		for _, n := range p.Near {
			fmt.Fprintf(b, "      near: %s\n", n)
		}
	}
}

// maxShown is how many characters of a page's text a person is shown.
const maxShown = 200

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown-1]) + "…"
}
