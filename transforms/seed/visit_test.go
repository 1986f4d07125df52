package seed

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// slowListing is a store that lists what is under one prefix only after release.
type slowListing struct {
	store.Store
	under          string
	begun, release chan struct{}
}

func (s *slowListing) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if strings.HasPrefix(prefix, s.under) {
		close(s.begun)
		<-s.release
	}
	return s.Store.List(ctx, prefix)
}

// The first visit to one partition does not wait for the listing of another one; each
// partition is listed once, and what the lane writes there does not change its answer.
func TestFreshListsEachPartitionByItself(t *testing.T) {
	mem, err := store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	news := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	policy := hive.Partition{Country: "sg", Category: "policy", Date: "2026-01-28"}
	write := func(p hive.Partition) {
		require.NoError(t, store.Write(t.Context(), mem, metadataKey(p, "gov.sg"), []byte("{}"), store.PutOptions{}))
	}
	write(policy)
	slow := &slowListing{Store: mem, under: "processing/country=sg/category=news/", begun: make(chan struct{}), release: make(chan struct{})}
	l := past{listed: new(listings), w: &lane.Worker{Store: slow}}
	answer := make(chan bool)
	go func() { answer <- l.fresh(t.Context(), news) }()
	<-slow.begun
	require.False(t, l.fresh(t.Context(), policy))
	close(slow.release)
	require.True(t, <-answer)
	write(news)
	require.True(t, l.fresh(t.Context(), news))
}
