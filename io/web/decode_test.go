package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func pack(t testing.TB, coding string, plain []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "zlib":
		w = zlib.NewWriter(&buf)
	case "flate":
		w, err = flate.NewWriter(&buf, 6)
	case "br":
		w = brotli.NewWriter(&buf)
	case "zstd":
		w, err = zstd.NewWriter(&buf)
	}
	require.NoError(t, err)
	_, err = w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func unpack(raw []byte, limit int64, header ...string) (body []byte, cut bool, err error) {
	r, _, free := newDecoder(bytes.NewReader(raw), header)
	defer free()
	return readBody(r, limit)
}

func TestDecode(t *testing.T) {
	plain := []byte(strings.Repeat("User-agent: *\nDisallow: /private\n", 3000))
	binary := bytes.Repeat([]byte{0x89, 'P', 'N', 'G', 0, 1, 2, 0xff}, 100)
	zip := pack(t, "gzip", plain)
	tests := []struct {
		name, header string
		raw, want    []byte
	}{
		{"plain", "", plain, plain},
		{"identity", "identity", plain, plain},
		{"gzip", "gzip", zip, plain},
		{"x-gzip", "X-GZip", zip, plain},
		{"deflate zlib", "deflate", pack(t, "zlib", plain), plain},
		{"deflate raw", "deflate", pack(t, "flate", plain), plain},
		{"br", "br", pack(t, "br", plain), plain},
		{"zstd", "zstd", pack(t, "zstd", plain), plain},
		{"small br", "br", pack(t, "br", []byte("hello")), []byte("hello")},
		{"small zstd", "zstd", pack(t, "zstd", []byte("hello")), []byte("hello")},
		{"two", "gzip, br", pack(t, "br", zip), plain},
		{"four", "gzip, gzip, gzip, gzip", zip, zip},
		{"unknown", "utf-8", plain, plain},
		{"empty gzip", "gzip", nil, nil},
		{"members", "gzip", append(bytes.Clone(zip), zip...), append(bytes.Clone(plain), plain...)},
		{"padding", "gzip", append(bytes.Clone(zip), make([]byte, 512)...), plain},
		{"line end behind gzip", "gzip", append(bytes.Clone(zip), '\r', '\n'), plain},
		{"mark behind gzip", "gzip", append(bytes.Clone(zip), "\x1f\x8b and more than a header"...), plain},
		{"line end behind br", "br", append(pack(t, "br", plain), '\n'), plain},
		{"parameter", `"gzip";q=1`, zip, plain},
		{"no coding behind one", "gzip, utf-8", zip, plain},
		{"not gzip", "gzip", plain, plain},
		{"not deflate", "deflate", plain, plain},
		{"not br", "br", plain, plain},
		{"not zstd", "zstd", plain, plain},
		{"binary, not gzip", "gzip", binary, binary},
		{"binary, not br", "br", binary, binary},
		{"binary, not deflate", "deflate", binary, binary},
		{"binary, not zstd", "zstd", binary, binary},
		{"gzip, said br", "br", zip, zip},
	}
	for range 2 { // the second time with pooled decoders
		for _, tt := range tests {
			body, cut, err := unpack(tt.raw, 1<<20, tt.header)
			assert.True(t, err == nil && !cut && bytes.Equal(body, tt.want),
				"%s: %d bytes %.20q, cut %v, %v, want %d bytes", tt.name, len(body), body, cut, err, len(tt.want))
		}
	}
}

func TestDecodeTruncated(t *testing.T) {
	plain := make([]byte, 300_000)
	for i := range plain {
		plain[i] = byte(i*i>>7 ^ i)
	}
	for coding, header := range map[string]string{"gzip": "gzip", "zlib": "deflate", "flate": "deflate", "br": "br", "zstd": "zstd"} {
		raw := pack(t, coding, plain)
		body, _, err := unpack(raw[:len(raw)-20], 1<<20, header)
		assert.True(t, err != nil && len(body) != 0 && bytes.HasPrefix(plain, body),
			"%s cut: %d bytes, %v, want the beginning and an error", coding, len(body), err)
		body, cut, err := unpack(raw, 1000, header)
		assert.True(t, err == nil && cut && bytes.Equal(body, plain[:1000]), "%s: %d bytes, cut %v, %v, want 1000", coding, len(body), cut, err)
		body, cut, err = unpack(raw, int64(len(plain)), header)
		assert.True(t, err == nil && !cut && bytes.Equal(body, plain), "%s: %d bytes, cut %v, %v, want all", coding, len(body), cut, err)
	}
	body, _, err := unpack(pack(t, "gzip", plain)[:10], 1000, "gzip")
	assert.True(t, err != nil && len(body) == 0, "a gzip header alone: %d bytes, %v, want none and an error", len(body), err)
}

func TestDecodeCases(t *testing.T) {
	ran := 0
	for _, row := range cases.Rows[json.RawMessage](t, "charset/cases.jsonl") {
		var c struct {
			ID, Kind, File string
			Coding         string `json:"content_encoding"`
			Sum            string `json:"plain_sha256"`
			Bytes          int    `json:"plain_bytes"`
		}
		if err := json.Unmarshal(row, &c); err != nil {
			continue // other kinds have other fields
		}
		if c.Kind != "content-encoding" && c.Kind != "decompression-bomb" {
			continue
		}
		ran++
		body, cut, err := unpack(cases.File(t, "charset/"+c.File), 1<<20, c.Coding)
		sum := sha256.Sum256(body)
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.ID, err)
		case c.Kind == "decompression-bomb":
			assert.True(t, cut && len(body) == 1<<20, "%s: %d bytes, cut %v, want 1 MiB", c.ID, len(body), cut)
		case cut || len(body) != c.Bytes || hex.EncodeToString(sum[:]) != c.Sum:
			t.Errorf("%s: %d bytes, want %d", c.ID, len(body), c.Bytes)
		}
	}
	assert.GreaterOrEqual(t, ran, 7)
}

func FuzzDecode(f *testing.F) {
	for _, coding := range []string{"gzip", "zlib", "flate", "br", "zstd"} {
		f.Add(pack(f, coding, []byte("hello, hello, hello")), coding)
	}
	f.Add([]byte("plain text"), "deflate, gzip")
	f.Fuzz(func(t *testing.T, raw []byte, header string) {
		body, cut, _ := unpack(raw, 4096, header)
		assert.True(t, len(body) <= 4096 && (!cut || len(body) == 4096), "%d bytes, cut %v", len(body), cut)
	})
}
