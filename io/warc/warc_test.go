package warc

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var at = time.Date(2026, 1, 28, 9, 30, 0, 120e6, time.FixedZone("KST", 9*3600))

func file(t *testing.T) (all []byte, ends []int) {
	t.Helper()
	all, err := AppendInfo(nil, at, "a.warc.gz", [][2]string{{"software", "seed"}, {"format", "WARC File Format 1.1"}})
	require.NoError(t, err)
	ends = append(ends, len(all))
	for _, r := range []Response{
		{URI: "https://moh.gov.sg/robots.txt", At: at, Status: 200, Body: []byte("User-agent: *\r\n\r\nDisallow:\n"),
			Header: http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"br"}, "Content-Length": {"3"}, "Set-Cookie": {"a=1", "b=2"}, "X": {"a\r\nb: c"}},
			Fields: [][2]string{{"Domain-Id", "gov:sg:moh.gov.sg"}, {"Domain-Id", "org:sg:moh.gov.sg"}}},
		{URI: "https://moh.gov.sg/sitemap.xml", At: at, Status: 299, Body: nil, Truncated: true},
	} {
		all, err = AppendResponse(all, r)
		require.NoError(t, err)
		ends = append(ends, len(all))
	}
	return all, ends
}

func TestWritten(t *testing.T) {
	all, ends := file(t)
	var got []record
	for r, err := range Records(bytes.NewReader(all)) {
		require.NoError(t, err)
		got = append(got, r)
	}
	require.Len(t, got, 3)
	require.Equal(t, "warcinfo", got[0].Type)
	require.Equal(t, "software: seed\r\nformat: WARC File Format 1.1\r\n", string(got[0].Block))
	require.Equal(t, "2026-01-28T00:30:00.120Z", got[1].Header.Get("WARC-Date"))
	require.Equal(t, "https://moh.gov.sg/robots.txt", got[1].Header.Get("WARC-Target-URI"))
	require.Equal(t, []string{"gov:sg:moh.gov.sg", "org:sg:moh.gov.sg"}, got[1].Header.Values("Domain-Id"))
	require.Regexp(t, `^<urn:uuid:[0-9a-f-]{36}>$`, got[1].Header.Get("WARC-Record-ID"))
	require.Equal(t, "HTTP/1.1 200 OK\r\nX-Crawl-Content-Encoding: br\r\nX-Crawl-Content-Length: 3\r\nContent-Type: text/plain\r\n"+
		"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX: a  b: c\r\nContent-Length: 27\r\n\r\nUser-agent: *\r\n\r\nDisallow:\n", string(got[1].Block))
	require.Equal(t, "length", got[2].Header.Get("WARC-Truncated"))
	for i, want := range []string{"User-agent: *\r\n\r\nDisallow:\n", ""} {
		r, err := Read(all[ends[i]:ends[i+1]])
		require.NoError(t, err)
		body, err := r.Body()
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
	_, err := got[0].Body()
	require.ErrorContains(t, err, "no response")
}

func TestBroken(t *testing.T) {
	pack := func(s string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(s))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	all, ends := file(t)
	for name, c := range map[string]struct {
		member []byte
		want   string
	}{
		"cut":         {all[ends[0] : ends[1]-9], "EOF"},
		"no gzip":     {[]byte("WARC/1.1\r\n\r\n"), "invalid header"},
		"no WARC":     {pack("HTTP/1.1 200 OK\r\n\r\n"), `it begins with "HTTP/1.1 200 OK"`},
		"no length":   {pack("WARC/1.1\r\nWARC-Type: response\r\n\r\n\r\n\r\n"), `Content-Length is ""`},
		"too long":    {pack("WARC/1.1\r\nContent-Length: 99999999999\r\n\r\n"), "want 0 to"},
		"short":       {pack("WARC/1.1\r\nContent-Length: 5\r\n\r\nabc\r\n\r\n"), "not the 5 bytes"},
		"long":        {pack("WARC/1.1\r\nContent-Length: 2\r\n\r\nabc\r\n\r\n"), "not the 2 bytes"},
		"much more":   {pack("WARC/1.1\r\nContent-Length: 2\r\n\r\n" + strings.Repeat("a", 9000)), "not the 2 bytes"},
		"other":       {pack("WARC/1.1\r\nContent-Length: 1\r\nWARC-Block-Digest: sha1:AAAA\r\n\r\na\r\n\r\n"), "digest of its block"},
		"empty":       {nil, "EOF"},
		"half a line": {pack("WARC/1.1\r\nConten"), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.member)
			require.ErrorContains(t, err, c.want)
		})
	}
	r, err := Read(pack("WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 3\r\nWARC-Payload-Digest: sha1:AAAA\r\n\r\nabc\r\n\r\n"))
	require.NoError(t, err)
	_, err = r.Body()
	require.ErrorContains(t, err, "no HTTP response")
	r.Block = []byte("HTTP/1.1 200 OK\r\n\r\nabc")
	_, err = r.Body()
	require.ErrorContains(t, err, "digest of its payload")
}

func FuzzRecords(f *testing.F) {
	all, err := AppendResponse(nil, Response{URI: "https://a.sg/", At: at, Status: 200, Body: []byte("body")})
	require.NoError(f, err)
	f.Add(all)
	f.Add(append(all[:len(all):len(all)], all...))
	f.Fuzz(func(t *testing.T, b []byte) {
		body, _, err := Beginning(bytes.NewReader(b), 100)
		assert.True(t, err != nil || len(body) <= 100, "%d bytes", len(body))
		for r, err := range Records(bytes.NewReader(b)) {
			if err == nil {
				_, _ = r.Body()
			}
		}
	})
}

// FuzzResponse reads back what it writes of a stranger's bytes.
func FuzzResponse(f *testing.F) {
	f.Add("https://a.sg/", 200, "X-A", "v", []byte("body"))
	f.Add("https://a.sg/\r\nWARC-Type: x", 999, "", "\x00\r\n\r\nv", []byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, uri string, status int, name, value string, body []byte) {
		if status < 100 || status > 999 { // net/http returns no other
			return
		}
		if name = http.CanonicalHeaderKey(name); strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r > '~' }) || name == "" { // net/http refuses them
			return
		}
		member, err := AppendResponse(nil, Response{URI: uri, At: at, Status: status, Header: http.Header{name: {value}}, Body: body})
		require.NoError(t, err)
		r, err := Read(member)
		require.NoError(t, err)
		got, err := r.Body()
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, body) && r.Type == TypeResponse && len(r.Header.Values("WARC-Type")) == 1,
			"wrote %q, read %q of %v", body, got, r.Header)
	})
}

// Beginning reads the same body as Read, or its first bytes.
func TestBeginning(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 1000))
	member, err := AppendResponse(nil, Response{URI: "https://a.com/robots.txt", At: time.Now(), Status: 200, Header: http.Header{"X-A": {"b"}}, Body: body})
	require.NoError(t, err)
	two := append(slices.Clone(member), member...)
	for limit, whole := range map[int64]bool{1: false, 9_999: false, 10_000: true, 20_000: true} {
		got, all, err := Beginning(bytes.NewReader(two), limit)
		require.NoError(t, err)
		require.Equal(t, whole, all)
		require.Equal(t, body[:min(limit, 10_000)], got)
	}
	_, _, err = Beginning(bytes.NewReader(member[:len(member)/2]), 10_000)
	require.Error(t, err)
	info, err := AppendInfo(nil, time.Now(), "", [][2]string{{"software", "x"}})
	require.NoError(t, err)
	_, _, err = Beginning(bytes.NewReader(info), 10)
	require.Error(t, err)
}
