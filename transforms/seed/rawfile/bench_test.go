//go:build unix

package rawfile

import (
	"bytes"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRead compares Read with the standard library's decoder, which also reads
// the records one at a time. cpu-MB/s is by the process's CPU time, because on a busy
// machine the wall clock says nothing. The goals are 350 MB/s on one core (-cpu=1) and five times
// the standard library.
func BenchmarkRead(b *testing.B) {
	text := generate(20 << 20)
	b.Run("ours", func(b *testing.B) {
		measure(b, text, func() {
			_, err := Read(bytes.NewReader(text), func(r Record) error { return r.Err })
			require.NoError(b, err)
		})
	})
	b.Run("encoding-json", func(b *testing.B) {
		measure(b, text, func() {
			d := json.NewDecoder(bytes.NewReader(text))
			// The records are the first array.
			for t, err := d.Token(); t != json.Delim('['); t, err = d.Token() {
				require.NoError(b, err)
			}
			for d.More() {
				var r struct {
					RawURL           string `json:"raw_url"`
					NormalizedDomain string `json:"normalized_domain"`
					DomainID         string `json:"domain_id"`
				}
				require.NoError(b, d.Decode(&r))
			}
		})
	})
}

func measure(b *testing.B, text []byte, read func()) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		read()
	}
	b.ReportMetric(float64(b.N*len(text))/1e6/(cpu(b)-before).Seconds(), "cpu-MB/s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
