package pipeline

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// On a cluster a lane has at most a MiB of the raw files that are open, in one process 4
// MiB, unless the user gave a number of lanes.
func TestLanesByInput(t *testing.T) {
	const url = "mem://lanes-by-input"
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	const day = "datasets/country=sg/category=news/date=2026-01-28/"
	for _, f := range []struct {
		name string
		size int
	}{{"raw_0001.json", 40 << 20}, {"raw_0002.json", 10<<20 + 1}, {"raw_0003.json", 30 << 20}, {"raw_0003.json.success", 0}} {
		require.NoError(t, store.Write(t.Context(), s, day+f.name, bytes.Repeat([]byte(" "), f.size), store.PutOptions{}))
	}
	for _, tt := range []struct {
		name string
		c    RunOptions
		want int
	}{
		{"by the open files", RunOptions{Lanes: 32, LanesByInput: true}, 51},
		{"never fewer than the slots need", RunOptions{Lanes: 64, LanesByInput: true}, 64},
		{"as the user said", RunOptions{Lanes: 7}, 7},
		{"one, as the user said", RunOptions{Lanes: 1}, 1},
		{"in one process", RunOptions{Lanes: 1, LanesByInput: true}, 13},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Store = url
			require.NoError(t, seedJob().Accept(t.Context(), s, &tt.c))
			require.Equal(t, tt.want, tt.c.Lanes)
		})
	}
	t.Run("packed, a power of two", func(t *testing.T) {
		c := RunOptions{Lanes: 32, LanesByInput: true, Store: url}
		o := seedOptions{Config: seed.Config{Layout: "table"}}
		require.NoError(t, o.accept(t.Context(), s, &c))
		require.Equal(t, 64, c.Lanes)
		c = RunOptions{Lanes: 1, LanesByInput: true, Store: url}
		require.NoError(t, o.accept(t.Context(), s, &c))
		require.Equal(t, 16, c.Lanes)
	})
}
