package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// One is one article as it was read. Nothing of it is stored.
type One struct {
	URL      string        `json:"url"` // after redirects
	Provider string        `json:"provider"`
	Rights   rights.Rights `json:"rights"` // a record of preferences
	provider.Article
	Cut bool `json:"body_cut,omitempty"` // the body is longer than rawTextMaxLength
}

// One fetches one article of a provider, as a crawl would, and reads it. A provider that
// a run is crawling gets no request.
func (e *Engine) One(ctx context.Context, p provider.Provider, address string) (one One, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading %s: %w", address, err)
		}
	}()
	v := e.visit(p)
	within, release, err := v.acquire(ctx)
	if err != nil {
		return one, err
	}
	defer release()
	if v.base, err = url.Parse(p.BaseURL()); err != nil {
		return one, err
	}
	v.client = v.newClient()
	defer v.client.Close()
	if err := v.robots(within); err != nil {
		return one, err
	}
	r, _, err := v.page(within, address, false)
	if err != nil {
		return one, err
	}
	u, err := url.Parse(r.FinalURL)
	if err != nil {
		return one, err
	}
	received := raw.Evidence{URL: r.FinalURL, ContentType: r.Header.Get("Content-Type"), HTML: r.Body, Header: r.Header, FetchedAt: v.now()}
	if _, err := v.more(within, &received); err != nil {
		return one, err
	}
	said := v.saidOf(received)
	if d := said.Decision(v.Purpose); d != nil {
		return one, d
	}
	a, err := v.storable(received, u)
	if err != nil {
		return one, err
	}
	most := cmp.Or(e.Config.RawTextMaxLength, provider.Defaults().RawTextMaxLength)
	one = One{URL: r.FinalURL, Provider: p.ID(), Rights: said, Article: a, Cut: utf8.RuneCountInString(a.Body) > most}
	one.Body = raw.Cut(a.Body, most)
	return one, nil
}

// storable reads an article that has a text to store.
func (r reader) storable(e raw.Evidence, u *url.URL) (provider.Article, error) {
	a, err := r.whole(e, u)
	switch a = clean(a, u); {
	case err != nil:
	case a.Paywalled && !r.policy.Teasers:
		err = errPaywalled
	case a.Body == "":
		err = errNoText
	}
	return a, err
}

var (
	errPaywalled = errors.New("the page says that the article is not free, and shows only its beginning; such articles are not kept")
	errNoText    = errors.New("no text of an article was found in the page; a publisher's file can name its selectors (docs/add-a-publisher.md)")
)
