package index_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// BenchmarkVectors is one search by vectors.
func BenchmarkVectors(b *testing.B) {
	databases := map[string]func() string{"sqlite": func() string { return dbtest.SQLite(b) }, "postgres": func() string { return dbtest.Postgres(b) }}
	for _, dimensions := range []int{384, 1536} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			for name, dsn := range databases {
				b.Run(fmt.Sprintf("%s/%dx%d", name, n, dimensions), func(b *testing.B) { benchmark(b, dsn(), n, dimensions) })
			}
		}
	}
}

func benchmark(b *testing.B, dsn string, n, dimensions int) {
	ctx := b.Context()
	d, err := db.Open(ctx, dsn)
	require.NoError(b, err)
	defer func() { _ = d.Close() }()
	x, err := index.Open(ctx, d, "random")
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(random.NormFloat64()) / 20
		}
		return v
	}
	for i := 0; i < n; {
		c := index.Change{At: time.Now(), Vectors: map[string][]float32{}}
		for ; i < n && len(c.Put) < 1000; i++ {
			id := fmt.Sprintf("%032x", i)
			c.Put = append(c.Put, index.Chunk{ID: id, Provider: "p", Text: "x"})
			c.Vectors[id] = vector()
		}
		require.NoError(b, x.Apply(ctx, c))
	}
	for way, x := range map[string]index.Index{"database": x, "memory": x.Keep()} {
		b.Run(way, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			q := index.Query{Vector: vector(), Limit: 5}
			_, err := x.Search(ctx, q)
			require.NoError(b, err)
			runtime.GC()
			runtime.ReadMemStats(&after)
			var used, then syscall.Rusage
			require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &then))
			for b.Loop() {
				_, err := x.Search(ctx, q)
				require.NoError(b, err)
			}
			require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
			// Without that of PostgreSQL; on a busy machine it says more than the time.
			b.ReportMetric(float64(used.Utime.Nano()+used.Stime.Nano()-then.Utime.Nano()-then.Stime.Nano())/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(max(0, float64(after.HeapAlloc)-float64(before.HeapAlloc))/1e6, "MB-kept")
		})
	}
}
