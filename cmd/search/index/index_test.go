package index_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/removal"
)

// An index does the same in each database.
func TestIndex(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Run("done", func(t *testing.T) { done(t, d) })
		t.Run("near", func(t *testing.T) { near(t, d) })
		t.Run("search", func(t *testing.T) { search(t, d) })
		t.Run("length", func(t *testing.T) { length(t, d) })
	})
}

func open(t *testing.T, d *db.DB, model string) index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), d, model)
	require.NoError(t, err)
	return x
}

// length changes the length of a model's vectors. At its end the index is as before.
func length(t *testing.T, d *db.DB) {
	ctx, x, other := t.Context(), open(t, d, "grows"), open(t, d, "stays")
	put := func(x index.Index, v ...float32) error {
		return x.Apply(ctx, index.Change{At: day, Put: []index.Chunk{{ID: "l", Provider: "l", URL: "https://l.example/", Text: "lengthy"}}, Vectors: map[string][]float32{"l": v}})
	}
	nearest := func(v ...float32) ([]string, error) {
		found, err := x.Search(ctx, index.Query{Text: "?", Vector: v, Provider: "l", Limit: 1})
		return ids(found), err
	}
	require.NoError(t, put(x, 1, 0))
	require.NoError(t, put(other, 1, 0))
	require.NoError(t, x.SetDone(ctx, "h", day))
	require.ErrorIs(t, put(x, 1, 0, 0), index.ErrOtherLength)
	_, err := nearest(1, 0, 0)
	require.ErrorIs(t, err, index.ErrOtherLength)
	require.NoError(t, x.Forget(ctx))
	was, err := x.Done(ctx, "h")
	require.NoError(t, err)
	assert.False(t, was)
	require.NoError(t, put(x, 1, 0, 0))
	all, err := nearest(1, 0, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"l"}, all)
	lacking, err := other.Lacking(ctx, []index.Chunk{{ID: "l", Text: "lengthy"}})
	require.NoError(t, err)
	assert.Empty(t, lacking, "the vectors of other models stay")
	require.NoError(t, x.Apply(ctx, index.Change{At: day, Delete: []string{"l"}}))
}

// near puts 300 chunks of two providers with vectors of 96 numbers into an index, changes
// and removes some, and finds the same ones that a comparison with each finds, in the same
// order. At its end the index is empty.
func near(t *testing.T, d *db.DB) {
	ctx := t.Context()
	x, kept := open(t, d, "random"), open(t, d, "random").Keep()
	random := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, 96)
		sum := 0.0
		for i := range v {
			v[i] = float32(random.NormFloat64())
			sum += float64(v[i] * v[i])
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(sum))
		}
		return v
	}
	have := map[string][]float32{}
	provider := func(id string) string { return "p" + id[len(id)-1:] }
	put := func(n int, text string) {
		c := index.Change{At: day, Vectors: map[string][]float32{}}
		for i := range n {
			id := fmt.Sprintf("%02x-%d", i*7919%300, i%2)
			have[id], c.Vectors[id] = vector(), nil
			c.Vectors[id] = have[id]
			c.Put = append(c.Put, index.Chunk{ID: id, Provider: provider(id), URL: "https://x.example/" + id, Text: text})
		}
		require.NoError(t, x.Apply(ctx, c))
	}
	check := func(when string) {
		for range 5 {
			q := vector()
			for _, only := range []string{"", "p1", "none"} {
				var want []string
				for id := range have {
					if only == "" || provider(id) == only {
						want = append(want, id)
					}
				}
				product := func(id string) (sum float64) {
					for i, v := range have[id] {
						sum += float64(v) * float64(q[i])
					}
					return sum
				}
				slices.SortFunc(want, func(a, b string) int { return cmp.Or(cmp.Compare(product(b), product(a)), cmp.Compare(a, b)) })
				want = want[:min(len(want), 100)]
				for _, way := range []index.Index{x, kept} {
					found, err := way.Search(ctx, index.Query{Vector: q, Provider: only, Limit: 100})
					require.NoError(t, err)
					assert.Equal(t, want, ids(found), "%s, %q", when, only)
				}
			}
		}
	}
	check("empty")
	put(300, "one")
	check("filled")
	put(100, "two")
	check("changed")
	var gone []string
	for id := range have {
		if provider(id) == "p0" || len(gone) < 50 {
			gone = append(gone, id)
			delete(have, id)
		}
	}
	require.NoError(t, x.Apply(ctx, index.Change{Delete: gone, At: day}))
	check("smaller")
	n, err := removal.FromSearch(ctx, d, "p1")
	require.NoError(t, err)
	assert.EqualValues(t, len(have), n)
	clear(have)
	check("empty again")
}

var day = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// direction is a vector of length 1 at an angle.
func direction(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin)}
}

func ids(found []index.Found) (all []string) {
	for _, f := range found {
		all = append(all, f.ID)
	}
	return all
}

// What is put is found by its words, by its vector, and best by both; what is deleted is
// not. A text without known terms is shown by 200 characters.
func search(t *testing.T, d *db.DB) {
	ctx := t.Context()
	x, kept := open(t, d, "small"), open(t, d, "small").Keep()
	long := "Refunds are paid back to the card. " + strings.Repeat("They take some days. ", 40)
	chunks := []index.Chunk{
		{ID: "a", Provider: "pay", URL: "https://pay.example/refunds", Anchor: "how", Title: "Refunds", Context: "Refunds > How", Language: "en", Text: long, FetchedAt: day},
		{ID: "b", Provider: "pay", URL: "https://pay.example/cards", Title: "Cards", Text: "A card has a number. Call payment.create_card() with max_retries=3."},
		{ID: "c", Provider: "mail", URL: "https://mail.example/send", Title: "Send", Text: "Sends a message to a person."},
		{ID: "d", Provider: "toss", URL: "https://toss.example/cancel", Title: "결제 취소", Text: "결제를 취소하려면 취소 API를 호출하세요."},
	}
	vectors := map[string][]float32{"a": direction(0), "b": direction(30), "c": direction(90), "d": direction(180)}
	lack, err := x.Lacking(ctx, chunks)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, lack)
	require.NoError(t, x.Apply(ctx, index.Change{Put: chunks[:2], Vectors: vectors, At: day}))
	require.NoError(t, x.Apply(ctx, index.Change{Put: chunks[2:], Vectors: vectors, Whole: true, At: day}))

	search := func(q index.Query) []index.Found {
		t.Helper()
		if q.Limit == 0 {
			q.Limit = 10
		}
		found, err := x.Search(ctx, q)
		require.NoError(t, err)
		same, err := kept.Search(ctx, q)
		require.NoError(t, err)
		assert.Equal(t, found, same, "vectors in memory give the same")
		return found
	}
	for question, want := range map[string][]string{
		"how is a refund paid?": {"a"}, "the messages": {"c"}, "card": {"b", "a"}, "payment.create_card": {"b", "a"}, "max_retries": {"b"}, "create": {"b"},
		"결제 취소": {"d"}, "취소는": {"d"}, "API": {"d"}, "nothing of this": nil, "": nil, `"'* OR NOT (`: nil, "the of and": nil,
	} {
		assert.Equal(t, want, ids(search(index.Query{Text: question})), question)
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, ids(search(index.Query{Vector: direction(-10)})))
	assert.Equal(t, []string{"b", "a"}, ids(search(index.Query{Vector: direction(40), Provider: "pay"})))
	both := search(index.Query{Text: "messages", Vector: direction(20), Limit: 2})
	assert.Equal(t, []string{"c", "b"}, ids(both), "third by its vector, first by its words")
	assert.Equal(t, []int{1, 3}, []int{both[0].ByWords, both[0].ByVector})
	assert.InDelta(t, 1.0/61+1.0/63, both[0].Score, 1e-9)
	assert.Equal(t, "Sends a message to a person.", both[0].Whole)

	one := search(index.Query{Text: "refund"})[0]
	assert.Equal(t, "https://pay.example/refunds#how", one.URL)
	assert.Len(t, []rune(one.Excerpt), 200)
	assert.True(t, strings.HasPrefix(one.Excerpt, "Refunds are paid back to the card. They"))
	assert.Empty(t, one.Whole)
	assert.Equal(t, day, one.FetchedAt.UTC())
	assert.NotContains(t, stored(t, d), "They take some days. They take some days. They take some days. They take some days. They take some days. They take some days. They take some days. They take some days. They take some days. They", "the whole text is nowhere")

	chunks[0].Context = "Refunds > When"
	lack, err = x.Lacking(ctx, chunks)
	require.NoError(t, err)
	assert.Equal(t, []int{0}, lack, "a vector is made again when what it is made of has changed")
	other := open(t, d, "large")
	lack, err = other.Lacking(ctx, chunks)
	require.NoError(t, err)
	assert.Len(t, lack, 4)
	for _, x := range []index.Index{x, kept} {
		_, err = x.Search(ctx, index.Query{Vector: []float32{1}, Limit: 1})
		assert.ErrorContains(t, err, "another length")
	}

	require.NoError(t, x.Apply(ctx, index.Change{Put: chunks[:1], Delete: []string{"b", "none"}, At: day.Add(time.Hour)}))
	assert.Equal(t, []string{"a"}, ids(search(index.Query{Text: "card"})))
	assert.Equal(t, []string{"a", "c", "d"}, ids(search(index.Query{Vector: direction(0)})))
	total, missing, err := x.Size(ctx)
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 0}, []int64{total, missing})
	require.NoError(t, x.Restrict(ctx, map[string]bool{"toss": true}))
	assert.Empty(t, search(index.Query{Text: "messages"})[0].Whole)
	assert.NotEmpty(t, search(index.Query{Text: "취소"})[0].Whole)
	require.NoError(t, removal.EraseSearch(ctx, x.DB))
	assert.Equal(t, []string{"a"}, ids(search(index.Query{Text: "card"})))
}

// stored is all text in the columns of the index.
func stored(t *testing.T, d *db.DB) string {
	t.Helper()
	all, err := db.Texts(t.Context(), d, `SELECT title || context || excerpt || whole FROM search_chunks WHERE provider = 'pay'`)
	require.NoError(t, err)
	if d.Dialect == db.Postgres {
		more, err := db.Texts(t.Context(), d, `SELECT words::text FROM search_chunks`)
		require.NoError(t, err)
		all = append(all, more...)
	}
	return strings.Join(all, "\n")
}

func done(t *testing.T, d *db.DB) {
	x := open(t, d, "small")
	for range 2 {
		require.NoError(t, x.SetDone(t.Context(), "s1", day))
	}
	for name, c := range map[string]struct {
		x    index.Index
		want bool
	}{"s1": {x, true}, "s2": {x, false}} {
		got, err := c.x.Done(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	got, err := open(t, d, "large").Done(t.Context(), "s1")
	require.NoError(t, err)
	assert.False(t, got, "another model has read nothing")
}
