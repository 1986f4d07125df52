package docs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
)

const (
	maxChunks = 1000      // of a page that are shown
	maxText   = 256 << 10 // of a page, where its provider allows it
)

// maxSessions is how many sessions are counted.
const maxSessions = 20

// byProvider are the fields of a search that a list is counted by.
var byProvider = append([]explore.By{{Field: "provider", Column: "p.provider"}, {Field: "status", Column: "p.status"}}, permit.By("p.")...)

// countPages counts the pages that sessions requested, and what changed, by provider.
func countPages(ctx context.Context, src explore.Source, q explore.Query) (c explore.Counts, err error) {
	c.At = src.DB.Now()
	_, facets, err := explore.GroupsOf(ctx, src.DB, explore.Counted{From: "docs_pages p"}, q, byProvider...)
	if c.Facets = facets; err != nil || facets == nil || len(explore.ChosenBy(q, byProvider[1:]...)) > 0 {
		return c, err
	}
	p := &explore.Picture{Title: "Pages and changes a session by provider", Row: "provider", Column: "session", Over: true,
		Measures: []explore.Measure{{Name: "changes", Title: "Changes"}, {Name: "pages", Title: "Pages requested"}, {Name: "new", Title: "New"},
			{Name: "updated", Title: "Updated"}, {Name: "deleted", Title: "Deleted"}}}
	var sessions []string
	for s, err := range db.Select(ctx, src.DB, func(r *sql.Rows) (s [2]string, err error) {
		var at int64
		err = r.Scan(&s[0], &at)
		s[1] = db.Time(at).Format("2006-01-02 15:04")
		return s, err
	}, fmt.Sprintf(`SELECT id, started_at FROM docs_sessions ORDER BY started_at DESC LIMIT %d`, maxSessions)) {
		if err != nil {
			return c, fmt.Errorf("listing sessions: %w", err)
		}
		sessions, p.Columns = append([]string{s[0]}, sessions...), append([]string{s[1]}, p.Columns...)
	}
	type part struct {
		provider, session, stats string
		requested, at            int64
	}
	and, _, args := db.Look{Equal: explore.Chosen("provider", q["provider"])}.SQL()
	for r, err := range db.Select(ctx, src.DB, func(r *sql.Rows) (p part, err error) {
		return p, r.Scan(&p.provider, &p.session, &p.stats, &p.requested, &p.at)
	}, `SELECT provider, session, stats, requested, active_at FROM docs_runs WHERE session IN (SELECT id FROM docs_sessions ORDER BY started_at DESC LIMIT `+
		strconv.Itoa(maxSessions)+`)`+and+` ORDER BY provider, session`, args...) {
		if err != nil {
			return c, fmt.Errorf("reading sessions: %w", err)
		}
		var s stats
		if err := json.Unmarshal([]byte(r.stats), &s); err != nil {
			return c, fmt.Errorf("reading the counts of %s in session %s: %w", r.provider, r.session, err)
		}
		i := slices.Index(sessions, r.session)
		if i < 0 {
			continue // it has just begun
		}
		figures := []int64{s.New + s.Updated + s.Deleted, r.requested, s.New, s.Updated, s.Deleted}
		for m, n := range figures {
			p.Add(r.provider, i, p.Measures[m].Name, n).See(db.Time(r.at))
		}
	}
	c.Picture = p
	return c, nil
}

// Finds are the pages and their chunks, for those who look at one. allowed reports whether
// a provider's terms allow to show a whole page.
func Finds(allowed func(ctx context.Context, src explore.Source, provider string) (bool, error)) []explore.Kind {
	provider := explore.Field{Name: "provider", Label: "Provider", Hint: "its id"}
	one := provider
	one.Required = true
	key := explore.Field{Name: "key", Label: "Page", About: "The page's key.", Required: true}
	return []explore.Kind{{Name: "pages", Title: "Docs pages", One: "page", SQL: true, About: "Pages of API documentation by a part of their title or their URL, each with its text and its chunks.",
		Fields: append([]explore.Field{{Name: "text", Label: "Text in the title or the URL"}, provider, {Name: "status", Label: "Status"}}, permit.Fields()...),
		Keys:   []explore.Field{one, key},
		Shown:  []string{"provider", "status", "chunks", "fetched_at", "url"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.ChosenBy(q, byProvider...), Text: q["text"], Columns: []string{"p.title", "p.address", "p.key"}}
			return explore.Rows(ctx, src.DB, "docs_pages p", q, look, []db.Match{{Column: "p.provider"}, {Column: "p.key"}}, func(l db.Look) iter.Seq2[pageRow, error] { return pageRows(ctx, src.DB, rows.Filter{Look: l}) },
				func(p pageRow) []string { return []string{p.Provider, p.Key} }, pageItem)
		},
		Count: countPages,
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (explore.Item, error) {
			return showPage(ctx, src, q, allowed)
		},
	}, {Name: "chunks", Title: "Chunks", One: "chunk", SQL: true, About: "Chunks of those pages, by a part of their first words or of their page's URL.",
		Fields: []explore.Field{{Name: "text", Label: "Text in the chunk or its page's URL"}, provider},
		Keys:   []explore.Field{one, key, {Name: "ordinal", Label: "Place in the page", Required: true}},
		Shown:  []string{"provider", "heading", "tokens", "preview"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.Chosen("c.provider", q["provider"]), Text: q["text"], Columns: []string{"c.preview", "p.address"}}
			order := []db.Match{{Column: "c.provider"}, {Column: "c.key"}, {Column: "c.ordinal", Value: int64(0)}}
			return explore.Rows(ctx, src.DB, "docs_chunks c", q, look, order, func(l db.Look) iter.Seq2[chunkRow, error] { return chunkRows(ctx, src.DB, rows.Filter{Look: l}) },
				func(c chunkRow) []string { return []string{c.Provider, c.Key, strconv.FormatInt(c.Ordinal, 10)} }, chunkItem)
		},
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
			n, err := strconv.ParseInt(q["ordinal"], 10, 64)
			if err != nil {
				return item, explore.Unknown("ordinal: that is no number")
			}
			c, err := explore.One(chunkRows(ctx, src.DB, rows.Filter{Look: db.Look{Equal: []db.Match{{Column: "c.provider", Value: q["provider"]}, {Column: "c.key", Value: q["key"]}, {Column: "c.ordinal", Value: n}}}}))
			if err != nil {
				return item, err
			}
			item = chunkItem(c)
			p, err := explore.One(pageRows(ctx, src.DB, rows.Filter{Look: pageLook(q)}))
			if err == nil {
				item.At = pageItem(p).At
				item.Parts = []explore.Part{{Name: "page", Title: "Its page", Kind: "pages", Items: []explore.Item{pageItem(p)}, Shown: []string{"url", "status"}}}
			}
			return item, err
		},
	}}
}

func pageLook(q explore.Query) db.Look {
	return db.Look{Equal: []db.Match{{Column: "p.provider", Value: q["provider"]}, {Column: "p.key", Value: q["key"]}}}
}

func pageItem(p pageRow) explore.Item {
	at := p.DiscoveredAt
	if p.FetchedAt != nil {
		at = *p.FetchedAt
	}
	return explore.Item{Key: explore.Query{"provider": p.Provider, "key": p.Key}, Title: cmp.Or(p.Title, p.URL), Record: rows.Record(p), URL: p.URL, At: at, Failures: p.URL}
}

func chunkItem(c chunkRow) explore.Item {
	ordinal := strconv.FormatInt(c.Ordinal, 10)
	return explore.Item{Key: explore.Query{"provider": c.Provider, "key": c.Key, "ordinal": ordinal}, Title: cmp.Or(strings.Join(c.Heading, " › "), c.Key) + " #" + ordinal, Record: rows.Record(c), URL: c.URL, Failures: c.URL}
}

func showPage(ctx context.Context, src explore.Source, q explore.Query, allowed func(context.Context, explore.Source, string) (bool, error)) (item explore.Item, err error) {
	p, err := explore.One(pageRows(ctx, src.DB, rows.Filter{Look: pageLook(q)}))
	if err != nil {
		return item, err
	}
	item = pageItem(p)
	whole, err := allowed(ctx, src, p.Provider)
	if err != nil {
		return item, err
	}
	if p.ContentHash != "" {
		text, err := textOf(ctx, src, p, whole)
		if err != nil {
			return item, err
		}
		part := explore.Part{Name: "text", Title: "Text", Text: untrusted.Text(text.Text, maxText), Bytes: int64(len(text.Text)), Truncated: len(text.Text) > maxText}
		switch {
		case !whole:
			part.Note = "The first 200 characters: the provider's policy does not say tos: allowed."
		case !text.Whole:
			part.Note = "The first 200 characters: its text is no longer in the hand-off."
		}
		item.Parts = append(item.Parts, part)
	}
	look := pageLook(q)
	look.Limit = maxChunks
	chunks := explore.Part{Name: "chunks", Title: "Chunks", Kind: "chunks", Shown: []string{"heading", "tokens", "preview"}}
	for c, err := range chunkRows(ctx, src.DB, rows.Filter{Look: look}) {
		if err != nil {
			return item, err
		}
		chunks.Items = append(chunks.Items, chunkItem(c))
	}
	if len(chunks.Items) == 0 {
		chunks.Note = "It has none."
	}
	item.Parts = append(item.Parts, chunks)
	return item, nil
}

// textOf reads a page's text, from the hand-off if the whole may be shown.
func textOf(ctx context.Context, src explore.Source, p pageRow, whole bool) (text pageText, err error) {
	stored := storedPage{pageText: pageText{Provider: p.Provider, URL: p.URL}, key: p.Key}
	if !whole {
		return stored.read(ctx, src.DB, src.Store, nil, false)
	}
	handed, err := handedOver(ctx, src.Store, p.Provider)
	if err != nil {
		return text, err
	}
	return stored.read(ctx, src.DB, src.Store, handed, false)
}
