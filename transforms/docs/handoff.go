package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// handOffLine is a line of the hand-off for the embedding step. The comments of its fields
// are a page in docs/reference.
type handOffLine struct {
	// upsert: the chunk is new or changed; delete: remove what has this id.
	Op string `json:"op"`
	// Id of the chunk: a hash of the page's key, the text, and the number of the text among
	// equal texts of the page. So a text keeps its id wherever it moves.
	ID string `json:"id"`
	// Id of the provider.
	Provider string `json:"provider"`
	// The page's address.
	URL string `json:"url"`
	// The page's title.
	Title string `json:"title,omitempty"`
	// The headings above the chunk, outermost first.
	Path []string `json:"path,omitempty"`
	// The page's title and the headings above the chunk on one line, " > " between them: what to put before
	// the text for the embedding.
	Context string `json:"context,omitempty"`
	// The URL fragment of the chunk's section, without #. In a PDF the page on which the chunk begins, as page=12.
	Anchor string `json:"anchor,omitempty"`
	// Language of the page as it says itself, a BCP 47 tag such as en or pt-BR; absent: it does not say.
	Language string `json:"language,omitempty"`
	// When the page was fetched.
	FetchedAt *time.Time `json:"fetched_at,omitempty"`
	// Its place in the page, from 0.
	Ordinal int `json:"ordinal"`
	// Its length in tokens of cl100k_base.
	Tokens int `json:"tokens,omitempty"`
	// SHA-256 of the text, in hexadecimal.
	Hash string `json:"hash,omitempty"`
	// The whole text, as Markdown.
	Text string `json:"text,omitempty"`
}

// handOffPrefix is the prefix of the keys of a provider's hand-off.
func handOffPrefix(provider string) string { return "handoff/docs/" + provider + "/" }

// handOff writes what the embedding step must do for a page that changed. The object's
// key depends on the page and the session, so a second try writes the same object.
func (c *crawl) handOff(ctx context.Context, p *page, r *pageContent, old []string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	now := map[string]bool{}
	if r != nil {
		for _, k := range r.chunks {
			now[k.ID] = true
			line := handOffLine{"upsert", k.ID, c.policy.ProviderID, p.address, r.title, k.Path, k.Context(r.title), k.Anchor, r.language, &r.fetched, k.Ordinal, k.Tokens, k.Hash, k.Text}
			if err := e.Encode(line); err != nil {
				return fmt.Errorf("encoding a chunk: %w", err)
			}
		}
	}
	for _, id := range old {
		if !now[id] {
			if err := e.Encode(handOffLine{Op: "delete", ID: id, Provider: c.policy.ProviderID, URL: p.address}); err != nil {
				return fmt.Errorf("encoding a deletion: %w", err)
			}
		}
	}
	name := handOffName(p.key)
	if c.part.stats.Again {
		name += againSuffix // an earlier object of the session may have deletions
	}
	key := sessionPrefix(c.policy.ProviderID, c.part.session) + name + ".jsonl"
	if err := store.Write(ctx, c.w.Store, key, b.Bytes(), store.PutOptions{ContentType: "application/x-ndjson"}); err != nil {
		return fmt.Errorf("writing the hand-off of %s: %w", p.address, err)
	}
	return nil
}

// SweepHandOff removes hand-off objects and manifests that are older than the
// retention.
func SweepHandOff(ctx context.Context, s store.Store, before time.Time) (removed int, err error) {
	for _, prefix := range []string{"handoff/docs/", manifests} {
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				return removed, fmt.Errorf("listing the hand-off: %w", err)
			}
			if o.ModTime.Before(before) {
				if err := store.Remove(ctx, s, o.Key); err != nil {
					return removed, fmt.Errorf("removing %s: %w", o.Key, err)
				}
				removed++
			}
		}
	}
	return removed, nil
}
