package seed

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// meanwhile does something before the next entry of a log is created.
type meanwhile struct {
	store.Store
	do func()
}

func (m *meanwhile) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if do := m.do; do != nil && strings.Contains(key, "/_delta_log/") {
		m.do = nil
		do()
	}
	return m.Store.PutIfAbsent(ctx, key, body, o)
}

// Two lanes replace rows of the same part: each loses its own row, and none comes back.
func TestTwoLanesReplaceRowsOfOnePart(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://two-lanes")
	require.NoError(t, err)
	in := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	row := func(name string, visit int) table.Row {
		return table.Row{Columns: table.Columns{RegistrableDomain: name, Country: in.Country, Category: in.Category, Date: in.Date,
			CollectedAt: time.UnixMilli(int64(visit)).UTC()}}
	}
	part := func(rows ...table.Row) []domaintable.Part {
		p, err := domaintable.Write(t.Context(), s, domaintable.Part{}, rows, nil)
		require.NoError(t, err)
		return []domaintable.Part{p}
	}
	begin := func(s store.Store, name string) *domaintable.Writer {
		all, err := domaintable.Open(t.Context(), s, "", nil)
		require.NoError(t, err)
		w, _, err := all.Begin(t.Context(), name)
		require.NoError(t, err)
		return w
	}
	between := &meanwhile{Store: s}
	first, second := begin(s, "first"), begin(between, "second")
	require.NoError(t, first.Commit(t.Context(), domaintable.Change{Add: part(row("a.sg", 1), row("b.sg", 1), row("c.sg", 1))}))
	again := func(w *domaintable.Writer, name string) {
		gone := Wanted{}
		gone.Add(in, name)
		re, err := replace(t.Context(), s, w, domaintable.Change{Add: part(row(name, 2))}, gone)
		require.NoError(t, err)
		require.EqualValues(t, 1, re.rows)
	}
	between.do = func() { again(first, "a.sg") }
	again(second, "b.sg")
	require.Nil(t, between.do)
	parts, err := domaintable.All(t.Context(), s)
	require.NoError(t, err)
	visits := map[string][]int64{}
	for _, p := range parts {
		rows, err := p.ReadRows(t.Context(), s)
		require.NoError(t, err)
		for _, r := range rows {
			visits[r.RegistrableDomain] = append(visits[r.RegistrableDomain], r.CollectedAt.UnixMilli())
		}
	}
	require.Equal(t, map[string][]int64{"a.sg": {2}, "b.sg": {2}, "c.sg": {1}}, visits)
}
