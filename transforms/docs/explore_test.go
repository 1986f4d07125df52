package docs

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
)

// A page's whole text is shown only where the terms allow it and the hand-off has it.
func TestWholeTextIsShown(t *testing.T) {
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	w := newWorld(t, d)
	const end = "These are the last words of the page."
	w.set("/docs", doc(strings.Repeat("A sentence in the middle. ", 60)+end))
	w.run()
	s, err := store.Open(t.Context(), w.dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	show := func(allowed bool) explore.Part {
		for _, k := range Finds(func(context.Context, explore.Source, string) (bool, error) { return allowed, nil }) {
			if k.Name == "pages" {
				src := explore.Source{Store: s, DB: d}
				list, err := k.Search(t.Context(), src, explore.Query{"provider": "p"})
				require.NoError(t, err)
				require.Len(t, list.Items, 1)
				item, err := k.Show(t.Context(), src, list.Items[0].Key)
				require.NoError(t, err)
				return item.Parts[0]
			}
		}
		t.Fatal("there is no kind pages")
		return explore.Part{}
	}
	whole := show(true)
	require.Contains(t, whole.Text, end)
	require.Empty(t, whole.Note)
	short := show(false)
	require.Len(t, []rune(short.Text), 200)
	require.True(t, strings.HasPrefix(whole.Text, strings.TrimSuffix(short.Text, "…")[:100]))

	for o, err := range s.List(t.Context(), "handoff/") {
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), o.Key))
	}
	gone := show(true)
	require.Len(t, []rune(gone.Text), 200)
	require.Contains(t, gone.Note, "no longer in the hand-off")
}
