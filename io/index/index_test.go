package index

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

var day = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// direction is a vector of length 1 at an angle.
func direction(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin)}
}

func ids(found []Found) (all []string) {
	for _, f := range found {
		all = append(all, f.ID)
	}
	return all
}

// What is put is found by its words, by its vector, and best by both; what is deleted is
// not. A text without known terms is shown by 200 characters.
func TestSearch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		x, err := Open(ctx, d, "small")
		require.NoError(t, err)
		long := "Refunds are paid back to the card. " + strings.Repeat("They take some days. ", 40)
		chunks := []Chunk{
			{ID: "a", Provider: "pay", URL: "https://pay.example/refunds", Anchor: "how", Title: "Refunds", Context: "Refunds > How", Language: "en", Text: long, FetchedAt: day},
			{ID: "b", Provider: "pay", URL: "https://pay.example/cards", Title: "Cards", Text: "A card has a number. Call payment.create_card() with max_retries=3."},
			{ID: "c", Provider: "mail", URL: "https://mail.example/send", Title: "Send", Text: "Sends a message to a person."},
			{ID: "d", Provider: "toss", URL: "https://toss.example/cancel", Title: "결제 취소", Text: "결제를 취소하려면 취소 API를 호출하세요."},
		}
		vectors := map[string][]float32{"a": direction(0), "b": direction(30), "c": direction(90), "d": direction(180)}
		lack, err := x.Lacking(ctx, chunks)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 3}, lack)
		require.NoError(t, x.Apply(ctx, Change{Put: chunks[:2], Vectors: vectors, At: day}))
		require.NoError(t, x.Apply(ctx, Change{Put: chunks[2:], Vectors: vectors, Whole: true, At: day}))

		search := func(q Query) []Found {
			t.Helper()
			if q.Limit == 0 {
				q.Limit = 10
			}
			found, err := x.Search(ctx, q)
			require.NoError(t, err)
			return found
		}
		for question, want := range map[string][]string{
			"how is a refund paid?": {"a"}, "the messages": {"c"}, "card": {"b", "a"}, "payment.create_card": {"b", "a"}, "max_retries": {"b"}, "create": {"b"},
			"결제 취소": {"d"}, "취소는": {"d"}, "API": {"d"}, "nothing of this": nil, "": nil, `"'* OR NOT (`: nil, "the of and": nil,
		} {
			assert.Equal(t, want, ids(search(Query{Text: question})), question)
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, ids(search(Query{Vector: direction(-10)})))
		assert.Equal(t, []string{"b", "a"}, ids(search(Query{Vector: direction(40), Provider: "pay"})))
		both := search(Query{Text: "messages", Vector: direction(20), Limit: 2})
		assert.Equal(t, []string{"c", "b"}, ids(both), "third by its vector, first by its words")
		assert.Equal(t, []int{1, 3}, []int{both[0].ByWords, both[0].ByVector})
		assert.InDelta(t, 1.0/61+1.0/63, both[0].Score, 1e-9)
		assert.Equal(t, "Sends a message to a person.", both[0].Whole)

		one := search(Query{Text: "refund"})[0]
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
		other, err := Open(ctx, d, "large")
		require.NoError(t, err)
		lack, err = other.Lacking(ctx, chunks)
		require.NoError(t, err)
		assert.Len(t, lack, 4)
		_, err = x.Search(ctx, Query{Vector: []float32{1}, Limit: 1})
		assert.ErrorContains(t, err, "another length")

		require.NoError(t, x.Apply(ctx, Change{Put: chunks[:1], Delete: []string{"b", "none"}, At: day.Add(time.Hour)}))
		assert.Equal(t, []string{"a"}, ids(search(Query{Text: "card"})))
		assert.Equal(t, []string{"a", "c", "d"}, ids(search(Query{Vector: direction(0)})))
		total, missing, err := x.Size(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int64{3, 0}, []int64{total, missing})
		require.NoError(t, x.Restrict(ctx, map[string]bool{"toss": true}))
		assert.Empty(t, search(Query{Text: "messages"})[0].Whole)
		assert.NotEmpty(t, search(Query{Text: "취소"})[0].Whole)
		require.NoError(t, Erase(ctx, x.DB))
		assert.Equal(t, []string{"a"}, ids(search(Query{Text: "card"})))
	})
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

func TestDone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x, err := Open(t.Context(), d, "small")
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, x.SetDone(t.Context(), "s1", day))
		}
		for name, c := range map[string]struct {
			x    Index
			want bool
		}{"s1": {x, true}, "s2": {x, false}} {
			got, err := c.x.Done(t.Context(), name)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		}
		got, err := Index{d, "large"}.Done(t.Context(), "s1")
		require.NoError(t, err)
		assert.False(t, got, "another model has read nothing")
	})
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"How do I open a File?":   "open file",
		"os.path.join(a, b)":      "os path join ospathjoin b",
		"max_retries=3":           "max retries maxretries 3",
		"결제를 취소":                  "결제 제를 취소",
		"API를 호출":                 "api 를 호출",
		"ｆｕｌｌ width":              "full width",
		"-- ... __init__":         "init",
		strings.Repeat("x", 65):   "",
		"naïve café":              "naïve café",
		"日本":                      "日本",
		"\x00 \xff \u202e letter": "letter",
	} {
		assert.Equal(t, want, strings.Join(words(text), " "), "%q", text)
	}
	assert.Equal(t, []string{"card", "number"}, terms("a card number, the Card"))
	assert.Equal(t, "a1 b2 c3", bag("c3 a1 b2"))
	assert.Len(t, terms(fmt.Sprint(func() (all []int) {
		for i := range 100 {
			all = append(all, i)
		}
		return all
	}())), maxTerms)
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{"os.path.join", "결제API를", "a\x00b\xff", "\"' OR NOT *", "ǅ ß ı̇"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := words(text)
		for _, w := range all {
			if w == "" || len(w) > maxWord || strings.ContainsAny(w, "\"'()*:^- \t\n\x00") {
				t.Errorf("%q has the word %q", text, w)
			}
		}
		if !slices.IsSorted(strings.Fields(bag(text))) {
			t.Errorf("%q: %q", text, bag(text))
		}
	})
}
