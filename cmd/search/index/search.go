package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/io/db"
)

// Query is a question.
type Query struct {
	Text     string
	Vector   []float32 // of the text, of length 1; nil: search by words alone
	Provider string    // only of this one; "" for all
	Limit    int
}

// Found is a chunk that answers a question. Whole is empty unless the provider's terms
// allow to show it.
type Found struct {
	ID        string    `json:"id"`
	Provider  string    `json:"provider"`
	URL       string    `json:"url"` // with the anchor of the section
	Title     string    `json:"title"`
	Context   string    `json:"context"`
	Language  string    `json:"language,omitempty"`
	Excerpt   string    `json:"excerpt"`
	Whole     string    `json:"text,omitempty"`
	FetchedAt time.Time `json:"fetched_at,omitzero"`
	Score     float64   `json:"score"`
	ByWords   int       `json:"rank_by_words,omitempty"`  // 1 is the best; 0: not among the best
	ByVector  int       `json:"rank_by_vector,omitempty"` // the same
}

const (
	// candidates is how many chunks each of the two ways gives.
	candidates = 100
	// fusion is the constant of reciprocal rank fusion (Cormack, Clarke and Büttcher,
	// SIGIR 2009): each way adds 1/(fusion + rank).
	fusion = 60
)

// Answer is what answers a question.
type Answer struct {
	Results   []Found `json:"results"`
	ByVectors bool    `json:"by_vectors"` // else by words alone
	Failure   error   `json:"-"`          // why it is by words alone although there is an endpoint
}

// maxWait is how long a question waits for its vector.
const maxWait = 10 * time.Second

// Ask is Search with the question's vector from an endpoint for embeddings; nil: by words
// alone. So it is where the endpoint fails, or has another model than the index.
func (x Index) Ask(ctx context.Context, c *embed.Client, q Query) (a Answer, err error) {
	if c != nil {
		within, cancel := context.WithTimeout(ctx, maxWait)
		vectors, err := c.Vectors(within, []string{q.Text})
		cancel()
		if ctx.Err() != nil {
			return a, err
		}
		if a.Failure = err; err == nil {
			q.Vector = vectors[0]
		}
	}
	if a.Results, err = x.Search(ctx, q); errors.Is(err, ErrOtherLength) {
		a.Failure, q.Vector = err, nil
		a.Results, err = x.Search(ctx, q)
	}
	a.ByVectors = q.Vector != nil
	return a, err
}

// Search returns the chunks that answer a question best, by words and by vectors
// together.
func (x Index) Search(ctx context.Context, q Query) ([]Found, error) {
	byWords, err := x.byWords(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("searching by words: %w", err)
	}
	var byVector []string
	if q.Vector != nil {
		if byVector, err = x.byVector(ctx, q); err != nil {
			return nil, fmt.Errorf("searching by vectors: %w", err)
		}
	}
	all := fuse(byWords, byVector)
	all = all[:min(len(all), q.Limit)]
	out := make([]Found, 0, len(all))
	for _, f := range all {
		var anchor string
		var fetched int64
		err := x.DB.QueryRowContext(ctx, `SELECT provider, url, anchor, title, context, language, excerpt, whole, fetched_at FROM search_chunks WHERE id = $1`, f.ID).
			Scan(&f.Provider, &f.URL, &anchor, &f.Title, &f.Context, &f.Language, &f.Excerpt, &f.Whole, &fetched)
		if err == sql.ErrNoRows {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("reading a chunk: %w", err)
		}
		if anchor != "" {
			f.URL += "#" + anchor
		}
		if fetched != 0 {
			f.FetchedAt = db.Time(fetched)
		}
		out = append(out, f)
	}
	return out, nil
}

// fuse merges two lists of ids, each with the best first.
func fuse(byWords, byVector []string) []Found {
	found := map[string]*Found{}
	for way, ids := range [][]string{byWords, byVector} {
		for i, id := range ids {
			f := found[id]
			if f == nil {
				f = &Found{ID: id}
				found[id] = f
			}
			f.Score += 1 / float64(fusion+i+1)
			if way == 0 {
				f.ByWords = i + 1
			} else {
				f.ByVector = i + 1
			}
		}
	}
	all := make([]Found, 0, len(found))
	for _, f := range found {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return all
}

// byWords are the ids of the chunks with the best words.
func (x Index) byWords(ctx context.Context, q Query) ([]string, error) {
	ts := terms(q.Text)
	if len(ts) == 0 {
		return nil, nil
	}
	if x.DB.Dialect == db.SQLite {
		quoted := `"` + strings.Join(ts, `" OR "`) + `"` // a term has letters and digits alone
		return db.Texts(ctx, x.DB, `SELECT c.id FROM search_words JOIN search_chunks c ON c.n = search_words.rowid
			WHERE search_words MATCH $1 AND ($2 = '' OR c.provider = $2) ORDER BY bm25(search_words), c.id LIMIT $3`, quoted, q.Provider, candidates)
	}
	return x.rareWords(ctx, ts, q.Provider)
}

// rareWords ranks by PostgreSQL's ts_rank of each term, weighted by how rare the term is,
// which ts_rank does not know.
func (x Index) rareWords(ctx context.Context, ts []string, provider string) ([]string, error) {
	var all float64
	if err := x.DB.QueryRowContext(ctx, `SELECT COUNT(*) FROM search_chunks`).Scan(&all); err != nil {
		return nil, err
	}
	var score, match []string
	args := []any{provider, candidates}
	for _, t := range ts {
		var n float64
		if err := x.DB.QueryRowContext(ctx, `SELECT COUNT(*) FROM search_chunks WHERE words @@ plainto_tsquery('english', $1)`, t).Scan(&n); err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		args = append(args, t, math.Log(1+(all-n+0.5)/(n+0.5)))
		term := fmt.Sprintf("plainto_tsquery('english', $%d)", len(args)-1)
		score = append(score, fmt.Sprintf("$%d::float8 * ts_rank(words, %s, 1)", len(args), term))
		match = append(match, "words @@ "+term)
	}
	if len(match) == 0 {
		return nil, nil
	}
	return db.Texts(ctx, x.DB, `SELECT id FROM search_chunks WHERE (`+strings.Join(match, " OR ")+`) AND ($1 = '' OR provider = $1)
		ORDER BY `+strings.Join(score, " + ")+` DESC, id LIMIT $2`, args...)
}
