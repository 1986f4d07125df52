package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/feed"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

const (
	maxDraftSitemaps = 8 // that are read for a draft, indexes too
	maxDraftFeeds    = 2
	draftEntries     = 1000 // of one source
	draftArticles    = 2
)

// usualPlaces are asked where robots.txt and the front page name nothing: the address that
// most sitemaps have, that of the most used plug-in for them, and the feeds of the most used
// publishing systems.
var usualPlaces = []string{"/sitemap.xml", "/sitemap_index.xml", "/feed", "/rss.xml"}

// Discover makes a publisher's file of what its site shows, tries it on one article or two,
// and says in its comments what was read. It stores nothing and needs no database.
func (e *Engine) Discover(ctx context.Context, base *url.URL) (file string, err error) {
	// Nothing is known about the site.
	p, err := provider.Declared(fmt.Appendf(nil, "id: discover\nbaseUrl: %q\narticleUrl: .\nzone: UTC\n", base.String()))
	if err != nil {
		return "", err
	}
	d := drafting{e.visit(p), provider.Draft{Base: base, Now: e.now()}}
	d.base, d.client = base, d.newClient()
	defer d.client.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("discovering %s: %w", base, err)
		}
	}()
	if err := d.robots(ctx); err != nil {
		return "", err
	}
	home, err := d.home(ctx)
	if err == nil {
		err = d.sources(ctx, home)
	}
	if err != nil {
		return "", err
	}
	file, err = d.Write()
	if err != nil {
		if rule := d.rules.Check(base.JoinPath("/")); rule != nil {
			err = fmt.Errorf("%w; its front page: %w", err, rule)
		}
		return "", err
	}
	tried, err := d.try(ctx, file)
	return file + tried, err
}

// drafting is a visit of a site to make its file.
type drafting struct {
	*visit
	provider.Draft
}

// home reads the front page, and follows it to the host where it is.
func (d *drafting) home(ctx context.Context) (page []byte, err error) {
	at := d.base.JoinPath("/")
	if d.rules.Check(at) != nil {
		return nil, nil
	}
	r, _, err := d.front(ctx)
	switch {
	case errors.As(err, new(*errStop)) || errors.As(err, new(*refusedError)) || ctx.Err() != nil:
		return nil, err
	case err != nil || r.Status != http.StatusOK || !isPage(r):
		return nil, nil // sitemaps may be there all the same
	}
	final, err := url.Parse(r.FinalURL)
	if err != nil {
		return nil, err
	}
	if !provider.Hosts(d.base.String(), final) {
		return nil, fmt.Errorf("its front page is on another host: discover %s://%s", final.Scheme, final.Host)
	}
	d.Base = &url.URL{Scheme: final.Scheme, Host: final.Host}
	if p, err := article.Parse(r.Body, r.Header.Get("Content-Type")); err == nil {
		d.Press, d.Lang = untrusted.Line(p.Meta("og:site_name"), maxName), untrusted.Line(p.Lang(), 35)
	}
	return r.Body, nil
}

// sources reads the sitemaps and feeds that the site names, or else those in usual places.
func (d *drafting) sources(ctx context.Context, home []byte) error {
	var queue []child
	for _, address := range d.rules.File.Sitemaps() {
		queue = append(queue, child{address: address, invited: true})
	}
	// Those of news are for the newest articles: they are read first.
	slices.SortStableFunc(queue, func(a, b child) int { return newsFirst(a.address) - newsFirst(b.address) })
	asked := map[string]bool{}
	for len(queue) > 0 && len(asked) < maxDraftSitemaps {
		next := queue[0]
		queue = queue[1:]
		if asked[next.address] {
			continue
		}
		asked[next.address] = true
		by := "robots.txt names it"
		if next.depth > 0 {
			by = "of an index that robots.txt names"
		}
		children, err := d.source(ctx, next, by)
		if err != nil {
			return err
		}
		arrange(children, d.policy.Zone, d.now())
		slices.SortStableFunc(children, func(a, b child) int { return newsFirst(a.address) - newsFirst(b.address) })
		queue = append(children[:min(len(children), 2)], queue...)
	}
	found := feed.Discover(home, d.Base.JoinPath("/"))
	found = found[:min(len(found), maxDraftFeeds)]
	for _, address := range found {
		if _, err := d.source(ctx, child{address: address}, "the front page links to it"); err != nil {
			return err
		}
	}
	for _, path := range usualPlaces {
		if slices.ContainsFunc(d.Sources, func(s provider.Source) bool { return len(s.Entries) > 0 }) {
			break
		}
		children, err := d.source(ctx, child{address: d.Base.JoinPath(path).String()}, "a usual place")
		arrange(children, d.policy.Zone, d.now())
		for _, c := range children[:min(len(children), 2)] {
			if err == nil {
				_, err = d.source(ctx, c, "of an index in a usual place, "+path)
			}
		}
		if err != nil {
			return err
		}
		if len(children) > 0 { // the index is what the file names: it has tomorrow's sitemaps too
			for i := range d.Sources {
				d.Sources[i].URL = d.Base.JoinPath(path).String()
			}
		}
	}
	if !slices.ContainsFunc(d.Sources, func(s provider.Source) bool { return len(s.Entries) > 0 }) {
		if s := provider.Front(home, d.Base.JoinPath("/")); len(s.Entries) > 0 {
			d.Sources = append(d.Sources, s)
		}
	}
	return nil
}

func newsFirst(address string) int {
	if strings.Contains(strings.ToLower(address), "news") {
		return 0
	}
	return 1
}

// source reads one sitemap or feed into the draft, and returns the children of an index. One
// that cannot be read is left out.
func (d *drafting) source(ctx context.Context, c child, by string) (children []child, err error) {
	r, _, base, err := d.getSitemap(ctx, c)
	if errors.As(err, new(*errStop)) || ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // it is left out
	}
	s := provider.Source{URL: c.address, Kind: "sitemap", By: by, Named: c.invited}
	var lastmod []string
	news := false
	read, err := sitemap.ScanAny(r.Body, func(e sitemap.Entry) bool {
		u, err := canonical.Address(base, e.Loc, []string{"*"})
		if err != nil {
			return true
		}
		at := e.LastMod
		if e.News.PublicationDate != "" {
			at, news = e.News.PublicationDate, true
		}
		s.Entries, lastmod = append(s.Entries, provider.Entry{URL: u, At: at}), append(lastmod, e.LastMod)
		return len(s.Entries) < draftEntries
	})
	switch {
	case err != nil:
		return nil, nil
	case read.Kind == sitemap.Index:
		for i, e := range s.Entries {
			at, _ := article.ParseTime(lastmod[i], d.policy.Zone)
			children = append(children, child{address: e.URL.String(), at: at, depth: c.depth + 1, invited: c.invited})
		}
		return children, nil
	case read.Kind == sitemap.RSS:
		s.Kind, s.Feed = "RSS feed", true
	case read.Kind == sitemap.Atom:
		s.Kind, s.Feed = "Atom feed", true
	case read.Kind == sitemap.JSON:
		s.Kind, s.Feed = "JSON feed", true
	case news:
		s.Kind = "news sitemap"
	}
	d.Sources = append(d.Sources, s)
	return nil, nil
}

// try reads one article or two by a draft, and returns what was read as comments of it.
func (d *drafting) try(ctx context.Context, file string) (string, error) {
	p, err := provider.Declared([]byte(file))
	if err != nil {
		return "", err
	}
	v := d.Engine.visit(p)
	v.base, v.client, v.rules = d.Base, d.client, d.rules
	var b strings.Builder
	tried := 0
	for _, address := range d.Newest() {
		if tried == draftArticles {
			break
		}
		if !p.IsArticleURL(address) {
			continue
		}
		tried++
		r, _, err := v.page(ctx, address.String(), false)
		if errors.As(err, new(*errStop)) || ctx.Err() != nil {
			return "", err
		}
		said := ""
		if err == nil {
			said, err = v.said(r)
		}
		if err != nil {
			said = "NOT READ: " + err.Error()
		}
		fmt.Fprintf(&b, "# tried: %s\n#   %s\n", untrusted.Line(address.String(), 300), untrusted.Line(said, 500))
	}
	if tried == 0 {
		b.WriteString("# tried: nothing, because no address of the sources is an article by this file\n")
	}
	return b.String(), nil
}

// said tells what was read of an article's page.
func (r reader) said(resp *web.Response) (string, error) {
	u, err := url.Parse(resp.FinalURL)
	if err != nil {
		return "", err
	}
	a, err := r.storable(raw.Evidence{URL: resp.FinalURL, ContentType: resp.Header.Get("Content-Type"), HTML: resp.Body}, u)
	if err != nil {
		return "", err
	}
	published := "no time of publication"
	if !a.Published.IsZero() {
		published = "published " + a.Published.Format("2006-01-02T15:04:05Z07:00")
	}
	return fmt.Sprintf("title %q, %s, language %q, a text of %d characters", a.Title, published, a.Language, utf8.RuneCountInString(a.Body)), nil
}
