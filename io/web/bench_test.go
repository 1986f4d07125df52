package web

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkGet compares Get with a bare transport on the same server.
func BenchmarkGet(b *testing.B) {
	page := make([]byte, 2000)
	s := serve(b, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(page) })
	b.Run("client", func(b *testing.B) {
		c := client(b, Config{AllowPrivate: true, Concurrency: 64})
		var conns Conns
		b.ReportAllocs()
		for b.Loop() {
			_, err := c.Get(b.Context(), Request{URL: s.URL, Conns: &conns})
			require.NoError(b, err)
		}
	})
	b.Run("plain", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{}}
		b.ReportAllocs()
		for b.Loop() {
			r, err := c.Get(s.URL)
			require.NoError(b, err)
			_, err = io.ReadAll(r.Body)
			require.NoError(b, err)
			_ = r.Body.Close()
		}
	})
}
