package domaintable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// BenchmarkRollback takes back a forced run over a million rows, in parts of 500 rows as lanes write that work for long.
func BenchmarkRollback(b *testing.B) {
	s, err := store.Open(b.Context(), b.TempDir())
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	t, err := Open(b.Context(), s, "", nil)
	require.NoError(b, err)
	w, _, err := t.Begin(b.Context(), "writer")
	require.NoError(b, err)
	parts := func(run string) (all []Part) {
		for i := range 2000 {
			p := Part{ID: fmt.Sprintf("%s-%d", run, i), RunID: run, Count: 500, Rows: Object{"x", 1}}
			require.NoError(b, store.Write(b.Context(), s, p.Key(), []byte("x"), store.PutOptions{}))
			all = append(all, p)
		}
		return all
	}
	first := parts("first")
	require.NoError(b, w.Commit(b.Context(), Change{Operation: "WRITE", RunID: "first", Add: first}))
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		run := fmt.Sprint("forced", i)
		_, err := w.Parts(b.Context()) // of the rollback before
		require.NoError(b, err)
		require.NoError(b, w.Commit(b.Context(), Change{Operation: "PROMOTE", RunID: run, Add: parts(run), Remove: first}))
		b.StartTimer()
		t, err := Open(b.Context(), s, "", nil)
		require.NoError(b, err)
		_, err = t.Back(b.Context(), run)
		require.NoError(b, err)
	}
}
