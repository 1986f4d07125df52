package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// One title and text at several addresses is no article, but a wall, a notice or a page for
// removed articles. A page that does not say when it was published is held until the next pages
// have been read; one that does is stored, and the second such page is compared with it. After a
// kill, held pages are requested again.

const (
	// maxHeld is how many pages are held at most.
	maxHeld = 20
	// minSame is how many pages with one text, and none with another, end the publisher.
	minSame = 3
)

// held is a page that was read and is not yet stored.
type held struct {
	e         raw.Evidence
	letter    ledger.DeadLetter
	a         provider.Article
	u         *url.URL
	asked     string // see addresses
	canonical string
	text      string // identifies title and text
}

// hold stores an article, at once or when other pages are known not to show the same.
func (k *keeper) hold(ctx context.Context, h held) error {
	if h.a.Body == "" || h.a.Paywalled {
		if !h.a.Paywalled || k.policy.Teasers {
			canonical, _, err := k.identity(ctx, h.u, h.a, k.limits())
			if err = errors.Join(err, k.keep(ctx, canonical, h.e)); err != nil {
				return err
			}
		}
		h.e.HTML, h.e.More = nil, nil // they may be large
		return k.ifOpen(ctx, func(ctx context.Context) error { return k.put(ctx, h) })
	}
	if k.Reparse {
		return k.put(ctx, h)
	}
	h.text = raw.Hash("same_text\x00" + h.a.Title + "\x00" + h.a.Body)
	h.canonical = k.canonical(h.u, h.a.Canonical)
	if !h.a.Published.IsZero() {
		k.differ = true
		return k.keepText(ctx, h)
	}
	if !k.KeepHTML {
		h.e.HTML, h.e.More = nil, nil // they may be large
	}
	same := 1
	for _, o := range k.held {
		switch {
		case o.text != h.text:
			k.differ = true
		case !k.oneArticle(o.u, h.u) && o.canonical != h.canonical && (h.a.ExternalID == "" || o.a.ExternalID != h.a.ExternalID):
			same++
		}
	}
	k.held = append(k.held, h)
	if same > 1 {
		if err := raw.NoteNotice(ctx, k.DB, k.p.ID(), h.text, k.now()); err != nil {
			return err
		}
	}
	if same >= minSame && !k.differ {
		k.oneText = fmt.Sprintf("its pages show one text in place of articles: %.100q, as at %.200s", h.a.Title, ledger.Redact(h.e.URL))
		return &errStop{Stopped, k.oneText, "duplicate"}
	}
	if len(k.held) > maxHeld {
		first := k.held[0]
		k.held = k.held[1:]
		return k.keepText(ctx, first)
	}
	return nil
}

// settleAll stores what is held.
func (k *keeper) settleAll(ctx context.Context) error {
	for _, h := range k.held {
		if err := k.keepText(ctx, h); err != nil {
			return err
		}
	}
	k.held = nil
	return nil
}

// keepText stores a page that is an article. One with the title and text of a stored article is
// that article if both say the same time or their addresses differ in parameters alone.
func (k *keeper) keepText(ctx context.Context, h held) error {
	notice, err := raw.IsNotice(ctx, k.DB, k.p.ID(), h.text)
	if err != nil {
		return err
	}
	if !notice {
		there, err := raw.SameText(ctx, k.DB, k.p.ID(), h.a, k.Config.RawTextMaxLength, h.canonical, h.asked)
		if err != nil {
			return err
		}
		if there.ID == "" {
			return k.put(ctx, h)
		}
		at, err := url.Parse(there.URL)
		if err == nil && k.oneArticle(at, h.u) || !h.a.Published.IsZero() && h.a.Published.Equal(there.Published) {
			k.result.Same++
			k.stored = true
			k.leftOut(h.e.URL, "duplicate", "it is stored from "+there.URL)
			row := raw.Row{Source: k.p.ID(), SitemapAt: h.e.SitemapAt, FetchedAt: h.e.FetchedAt}
			return raw.Alias(ctx, k.DB, row, h.asked, raw.Same)
		}
		if err := raw.NoteNotice(ctx, k.DB, k.p.ID(), h.text, k.now()); err != nil {
			return err
		}
	}
	k.notices++
	h.letter.Stage, h.letter.Kind, h.letter.Retryable = "Parse", "same_text", true
	return k.failed(ctx, h.letter, fmt.Errorf("other addresses show the same title and text (%.100q): it is no article", h.a.Title))
}

// oneArticle reports whether two addresses differ only in parameters that do not make them an
// article's.
func (r reader) oneArticle(a, b *url.URL) bool {
	bare := *b
	bare.RawQuery = ""
	return len(r.policy.Keep) == 0 && provider.Hosts(a.String(), b) && r.p.IsArticleURL(&bare) &&
		strings.TrimSuffix(a.Path, "/") == strings.TrimSuffix(b.Path, "/")
}
