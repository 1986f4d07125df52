package price

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of https://cloud.google.com/storage/pricing-examples: 50 GB of storage 1.00,
// 10,000 class A calls 0.05, 50,000 class B calls 0.02, 1 GB of traffic 0.12.
func TestGooglesExample(t *testing.T) {
	got := Public()["gs"].Of(Calls{Reads: 50_000, Lists: 4_000, Writes: 6_000, Deletes: 1_000_000}, 50e9, 1e9)
	require.InDelta(t, 0.07, got.Calls, 1e-9)
	require.InDelta(t, 1.00, got.Storage, 1e-9)
	require.InDelta(t, 0.12, got.Egress, 1e-9)
}

// By hand: 2 reads and 1 list and 3 writes at 1, 10, 100 dollars each, and deletes at 1000.
func TestOf(t *testing.T) {
	l := List{Reads: 1e6, Lists: 10e6, Writes: 100e6, Deletes: 1000e6, Storage: 2, Egress: 3}
	calls := Classes(map[string]int64{"head": 1, "open": 1, "list": 1, "put": 2, "put_if_absent": 1, "delete": 4})
	require.Equal(t, Calls{Reads: 2, Lists: 1, Writes: 3, Deletes: 4}, calls)
	require.Equal(t, Price{Calls: 2 + 10 + 300 + 4000, Storage: 10, Egress: 21}, l.Of(calls, 5e9, 7e9))
}

func TestScheme(t *testing.T) {
	for url, want := range map[string]string{"out": "file", "/data/bucket": "file", "file:///data": "file", "s3://bucket/prefix": "s3", "r2://b": "r2", "gs://b": "gs", "mem://x": "mem"} {
		require.Equal(t, want, Scheme(url), url)
	}
}

func TestCheck(t *testing.T) {
	require.NoError(t, Public().Check())
	for name, tt := range map[string]struct {
		l    Lists
		want string
	}{
		"nothing":    {Lists{}, "lists no prices"},
		"no scheme":  {Lists{"http": {}}, `"http" is no scheme of a store`},
		"negative":   {Lists{"s3": {Reads: -1}}, "s3: reads_million is -1"},
		"not finite": {Lists{"gs": {Egress: math.Inf(1)}}, "gs: egress_gb is +Inf"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, tt.l.Check(), tt.want) })
	}
}
