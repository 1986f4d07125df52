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

// Ranges have at most so many of the names that they were planned with, and a name that
// was not among them has a range, too.
func TestNameRanges(t *testing.T) {
	tests := []struct {
		names string
		most  int
		want  string
		other string // name/beginning of its range
	}{
		{"a/ ab/ abc/ b/", 4, "a/ ab/ abc/ b/", "x/:"},
		{"a/ ab/ abc/ b/", 3, "a/ ab/ abc/|b/", "x/:x"},
		{"a/ ab/ abc/ b/", 1, "a/|ab/|abc/|b/", "abx/:abx"},
		{"site-1/ site-10/ site-11/ site-2/ site-30/", 3, "site-1/ site-10/ site-11/|site-2/|site-30/", "sitter/:sitt"},
		{"a/ a/ a/", 1, "a/ a/ a/", "a/:a/"},
	}
	for _, tt := range tests {
		l := new(listings).of(hive.Partition{})
		l.split = map[string]bool{}
		names := strings.Fields(tt.names)
		l.splitAt(names, 0, tt.most)
		var got strings.Builder
		for i, name := range names {
			switch {
			case i > 0 && l.rangeOf(name) == l.rangeOf(names[i-1]):
				got.WriteByte(' ')
			case i > 0:
				got.WriteByte('|')
			}
			got.WriteString(name)
		}
		require.Equal(t, tt.want, got.String())
		other, begin, _ := strings.Cut(tt.other, ":")
		require.Equal(t, begin, l.rangeOf(other).begin)
	}
}
