package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
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
	// The headings above the chunk, outermost first, and the list items and terms that it continues.
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

// againSuffix ends the name of a page that is handed over again.
const againSuffix = "-again"

// handOffName is the name of a page's objects in the hand-off, without its ending.
func handOffName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// handOff writes what the embedding step must do for a page that changed. The object's
// key depends on the page and the session, so a second try writes the same object.
func (s *provider) handOff(ctx context.Context, p *page, r *pageContent, old []string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	now := map[string]bool{}
	if r != nil {
		for _, k := range r.chunks {
			now[k.ID] = true
			line := handOffLine{"upsert", k.ID, s.id, p.address, r.title, k.Path, k.Context(r.title), k.Anchor, r.language, &r.fetched, k.Ordinal,
				k.Tokens, k.Hash, k.Text}
			if err := e.Encode(line); err != nil {
				return fmt.Errorf("encoding a chunk: %w", err)
			}
		}
	}
	for _, id := range old {
		if !now[id] {
			if err := e.Encode(handOffLine{Op: "delete", ID: id, Provider: s.id, URL: p.address}); err != nil {
				return fmt.Errorf("encoding a deletion: %w", err)
			}
		}
	}
	name := handOffName(p.key)
	if s.part.stats.Again {
		name += againSuffix // an earlier object of the session may have deletions
	}
	key := sessionPrefix(s.id, s.part.session) + name + ".jsonl"
	if err := store.Write(ctx, s.w.Store, key, b.Bytes(), store.PutOptions{ContentType: "application/x-ndjson"}); err != nil {
		return fmt.Errorf("writing the hand-off of %s: %w", p.address, err)
	}
	return nil
}

// wholePages is the part of a key by which the whole pages of a provider differ from what a session handed over.
const wholePages = "/pages/"

// keep stores the whole page with its links, if its policy allows to show it, so that a folder of Markdown needs no second crawl. It
// removes the one of a page that has no content any more, or whose policy does not allow it any more.
func (s *provider) keep(ctx context.Context, p *page, e ending) error {
	key := s.wholePrefix() + handOffName(p.key) + ".md"
	var err error
	switch {
	case e.read != nil && s.policy.Terms == policy.Allowed:
		err = store.Write(ctx, s.w.Store, key, []byte(e.read.linked), store.PutOptions{ContentType: "text/markdown; charset=utf-8"})
	case e.gone || e.read != nil && p.contentHash != "":
		var kept bool
		if kept, err = s.keepsWhole(ctx); kept {
			err = store.Remove(ctx, s.w.Store, key)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping the whole page %s: %w", p.address, err)
	}
	return nil
}

func (s *provider) wholePrefix() string {
	return strings.TrimSuffix(handOffPrefix(s.id), "/") + wholePages
}

// keepsWhole reports whether whole pages may be there. The policy says so, or the store, which is asked once: an earlier policy may have
// allowed them.
func (s *provider) keepsWhole(ctx context.Context) (bool, error) {
	if s.policy.Terms == policy.Allowed {
		return true, nil
	}
	if s.whole == nil {
		var keys []string
		if err := store.Retry(ctx, func() (err error) { keys, err = store.Keys(ctx, s.w.Store, s.wholePrefix()); return err }); err != nil {
			return false, err
		}
		s.whole = new(len(keys) > 0)
	}
	return *s.whole, nil
}

// sweepHandOff removes hand-off objects and manifests that are older than the
// retention. Whole pages stay as long as the page.
func sweepHandOff(ctx context.Context, s store.Store, before time.Time) (removed int, err error) {
	for _, prefix := range []string{"handoff/docs/", manifests} {
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				return removed, fmt.Errorf("listing the hand-off: %w", err)
			}
			if o.ModTime.Before(before) && !strings.Contains(o.Key, wholePages) {
				if err := store.Remove(ctx, s, o.Key); err != nil {
					return removed, fmt.Errorf("removing %s: %w", o.Key, err)
				}
				removed++
			}
		}
	}
	return removed, nil
}

// manifests is the prefix of the keys of the sessions' manifests.
const manifests = "handoff/manifests/docs/"

// manifest says that a session has ended, and lists what it handed over. It is written last. The comments of the fields are a page in
// docs/reference.
type manifest struct {
	// Id of the session.
	Session string `json:"session"`
	// When it ended.
	CompletedAt time.Time `json:"completed_at"`
	// Every provider is done.
	Complete  bool              `json:"complete"`
	Providers []providerHandOff `json:"providers"`
}

// providerHandOff is what a session handed over for a provider.
type providerHandOff struct {
	// Id of the provider.
	Provider string `json:"provider"`
	// done, open, out_of_budget, held or unreachable, or of a site that is not open: blocked, moved, closed or thin.
	State State `json:"state"`
	// Why it has this state; absent: none was needed.
	Reason string `json:"reason,omitempty"`
	// All pages were handed over, not only those that changed.
	Again bool `json:"again"`
	// What was handed over, by key.
	Objects []handOffObject `json:"objects"`
}

// handOffObject is one object of the hand-off.
type handOffObject struct {
	// Key of the object in the store.
	Key string `json:"key"`
	// Its bytes.
	Size int64 `json:"size"`
}

// sessionPrefix is the prefix of the keys of what a session hands over for a provider.
func sessionPrefix(provider, session string) string { return handOffPrefix(provider) + session + "/" }

// parts returns a session's providers, sorted by id, without their objects.
func parts(ctx context.Context, d *db.DB, session string) (out []providerHandOff, err error) {
	for h, err := range db.Select(ctx, d, func(r *sql.Rows) (providerHandOff, error) {
		h, text := providerHandOff{Objects: []handOffObject{}}, ""
		if err := r.Scan(&h.Provider, &h.State, &h.Reason, &text); err != nil {
			return h, err
		}
		var s stats
		err := json.Unmarshal([]byte(text), &s)
		h.Again = s.Again
		return h, err
	}, `SELECT provider, state, reason, stats FROM docs_runs WHERE session = $1 ORDER BY provider`, session) {
		if err != nil {
			return nil, fmt.Errorf("reading the states of the providers of session %s: %w", session, err)
		}
		out = append(out, h)
	}
	return out, nil
}

// writeManifest ends a session's hand-off.
func writeManifest(ctx context.Context, s store.Store, session string, parts []providerHandOff, now time.Time) error {
	m := manifest{Session: session, CompletedAt: now.UTC(), Complete: true, Providers: parts}
	for i, p := range parts {
		m.Complete = m.Complete && p.State == Done
		for o, err := range s.List(ctx, sessionPrefix(p.Provider, session)) {
			if err != nil {
				return fmt.Errorf("listing what session %s handed over: %w", session, err)
			}
			parts[i].Objects = append(parts[i].Objects, handOffObject{o.Key, o.Size})
		}
	}
	return store.WriteJSON(ctx, s, manifests+session+".json", m)
}
