// Package storetest is the conformance suite of store.Store, and the real
// servers that tests run stores against. No promise: see docs/library.md.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/stretchr/testify/require"
)

// Run checks that the stores open returns keep the contract of store.Store. open
// is called once a test, and must return an empty store each time; Run closes it.
func Run(t *testing.T, open func() store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"round trip", roundTrip},
		{"odd keys", oddKeys},
		{"refused keys", refusedKeys},
		{"order and prefixes", order},
		{"paging", paging},
		{"put if absent", putIfAbsent},
		{"race", race},
		{"absent", absent},
		{"metadata", metadata},
		{"content types", contentTypes},
		{"failing body", failingBody},
		{"large", large},
		{"etag", etag},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open()
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			c.test(t, s)
		})
	}
}

func put(t *testing.T, s store.Store, key, content string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), key, strings.NewReader(content), store.PutOptions{}))
}

func read(t *testing.T, s store.Store, key string) string {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(data)
}

func keys(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	got := []string{}
	for o, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		got = append(got, o.Key)
	}
	return got
}

func roundTrip(t *testing.T, s store.Store) {
	require.Empty(t, keys(t, s, ""))
	put(t, s, "a/b.json", `{"n":1}`)
	put(t, s, "a/b.json.success", "")
	require.Equal(t, `{"n":1}`, read(t, s, "a/b.json"))
	require.Equal(t, "", read(t, s, "a/b.json.success"))

	head, err := s.Head(t.Context(), "a/b.json")
	require.NoError(t, err)
	require.Equal(t, "a/b.json", head.Key)
	require.EqualValues(t, 7, head.Size)
	require.NotEmpty(t, head.ETag)
	require.False(t, head.ModTime.IsZero())
	for o, err := range s.List(t.Context(), "a/b.json") {
		require.NoError(t, err)
		require.Equal(t, head.ETag, o.ETag, "List and Head must agree")
		require.Equal(t, head.Size, o.Size)
		break // and a listing can be left
	}
	put(t, s, "a/b.json", "replaced, and longer")
	require.Equal(t, "replaced, and longer", read(t, s, "a/b.json"))
	put(t, s, "a/b.json", "")
	require.Equal(t, "", read(t, s, "a/b.json"))
	require.NoError(t, s.Delete(t.Context(), "a/b.json"))
	require.Equal(t, []string{"a/b.json.success"}, keys(t, s, ""))
}

func oddKeys(t *testing.T, s store.Store) {
	want := []string{
		"country=kr/category=a_b/date=2026-01-28/raw_0001.json",
		"q?x=1&y=2", "frag#ment", "100%", "per%2Fcent%20", "a+b", "with space/and more ", "한국/뉴스.json", "ünï/é", "é/combining",
		"emoji/😀", "semi;colon,comma", "quote\"s'", "back\\slash", "brackets[1]{2}", "star*", "tilde~", "dollar$@!", "colon:x", "pipe|<>^`",
		"__0x2f__", "dots/..a", "dots/a..", "dots/...", ".hidden/.file", "UPPER/lower", strings.Repeat("long/", 100) + "x",
	}
	for _, k := range want {
		put(t, s, k, "content of "+k)
	}
	slices.Sort(want)
	require.Equal(t, want, keys(t, s, ""))
	for _, k := range want {
		require.Equal(t, "content of "+k, read(t, s, k))
		o, err := s.Head(t.Context(), k)
		require.NoError(t, err)
		require.Equal(t, k, o.Key)
		require.Equal(t, []string{k}, keys(t, s, k))
		require.ErrorIs(t, s.PutIfAbsent(t.Context(), k, strings.NewReader("x"), store.PutOptions{}), store.ErrExist)
		require.NoError(t, s.Delete(t.Context(), k))
	}
	require.Empty(t, keys(t, s, ""))
}

func refusedKeys(t *testing.T, s store.Store) {
	for _, k := range []string{"", "/", "/abs", "../up", "..", ".", "a/../../b", "a/..", "a//b", "a/", "./a", "a/./b", "nul\x00", "line\nfeed", "bad\xff", strings.Repeat("x", 1025)} {
		_, headErr := s.Head(t.Context(), k)
		_, existsErr := store.Exists(t.Context(), s, k)
		_, openErr := s.Open(t.Context(), k)
		for _, err := range []error{headErr, existsErr, openErr,
			s.Put(t.Context(), k, strings.NewReader("x"), store.PutOptions{}),
			s.PutIfAbsent(t.Context(), k, strings.NewReader("x"), store.PutOptions{}),
			s.Delete(t.Context(), k),
		} {
			require.ErrorIs(t, err, store.ErrKey, "%q", k)
			require.False(t, store.Retryable(err))
		}
	}
	require.Empty(t, keys(t, s, "../"))
	require.Empty(t, keys(t, s, "a/../../"))
	require.Empty(t, keys(t, s, ""))
}

func order(t *testing.T, s store.Store) {
	want := []string{"a-b", "a.json", "a.json.success", "a/b", "a/b-c", "a/b.x/y", "a0", "a=1/x", "a=1/y/z", "a=10/x", "a=2/x", "b", "é"}
	for _, k := range slices.Backward(want) {
		if k == "a/b" {
			continue // no folder of its own: "a/b.x" only begins alike
		}
		put(t, s, k, "x")
	}
	put(t, s, "a/b", "x")
	require.True(t, slices.IsSorted(want))
	require.Equal(t, want, keys(t, s, ""))
	for _, prefix := range []string{"a", "a/", "a/b", "a/b.", "a/b.x/", "a=1", "a=1/", "a=1/y/z", "a=1/y/zz", "none", "none/", "b/", "é", "a.json"} {
		filtered := []string{}
		for _, k := range want {
			if strings.HasPrefix(k, prefix) {
				filtered = append(filtered, k)
			}
		}
		require.Equal(t, filtered, keys(t, s, prefix), "prefix %q", prefix)
	}
}

func paging(t *testing.T, s store.Store) {
	const n = 2005
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				if err := s.Put(t.Context(), fmt.Sprintf("p/d%02d/%05d", i/100, i), strings.NewReader(""), store.PutOptions{}); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	got := keys(t, s, "p/")
	require.Len(t, got, n)
	for i, k := range got {
		require.Equal(t, fmt.Sprintf("p/d%02d/%05d", i/100, i), k)
	}
}

func putIfAbsent(t *testing.T, s store.Store) {
	ctx := t.Context()
	require.NoError(t, s.PutIfAbsent(ctx, "lease/x/000001", strings.NewReader("first"), store.PutOptions{}))
	err := s.PutIfAbsent(ctx, "lease/x/000001", strings.NewReader("second"), store.PutOptions{})
	require.ErrorIs(t, err, store.ErrExist)
	require.False(t, store.Retryable(err))
	require.Equal(t, "first", read(t, s, "lease/x/000001"))
	require.NoError(t, s.Delete(ctx, "lease/x/000001"))
	require.NoError(t, s.PutIfAbsent(ctx, "lease/x/000001", strings.NewReader(""), store.PutOptions{}))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "lease/x/000001", strings.NewReader(""), store.PutOptions{}), store.ErrExist)
	require.Equal(t, []string{"lease/x/000001"}, keys(t, s, ""))
}

func race(t *testing.T, s store.Store) {
	const rounds, racers = 10, 16
	for round := range rounds {
		key := fmt.Sprintf("new-folder-%d/lease", round)
		errs := make([]error, racers)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				<-start
				errs[i] = s.PutIfAbsent(t.Context(), key, strings.NewReader(fmt.Sprint(i)), store.PutOptions{Metadata: map[string]string{"racer": fmt.Sprint(i)}})
			})
		}
		close(start)
		wg.Wait()
		var winners []string
		for i, err := range errs {
			if err == nil {
				winners = append(winners, fmt.Sprint(i))
				continue
			}
			require.ErrorIs(t, err, store.ErrExist)
		}
		require.Len(t, winners, 1)
		require.Equal(t, winners[0], read(t, s, key))
		o, err := s.Head(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, winners[0], o.Metadata["racer"])
	}
}

func absent(t *testing.T, s store.Store) {
	put(t, s, "a/b/c", "x")
	there, err := store.Exists(t.Context(), s, "a/b/c")
	require.NoError(t, err)
	require.True(t, there)
	for _, k := range []string{"none", "none/at/all", "a", "a/b", "a/b/c/d"} {
		_, err := s.Head(t.Context(), k)
		require.ErrorIs(t, err, store.ErrNotExist, "Head %q", k)
		require.False(t, store.Retryable(err))
		there, err := store.Exists(t.Context(), s, k)
		require.NoError(t, err)
		require.False(t, there, "Exists %q", k)
		_, err = s.Open(t.Context(), k)
		require.ErrorIs(t, err, store.ErrNotExist, "Open %q", k)
		require.NoError(t, s.Delete(t.Context(), k))
	}
	require.NoError(t, s.Delete(t.Context(), "a/b/c"))
	require.NoError(t, s.Delete(t.Context(), "a/b/c"))
	require.Empty(t, keys(t, s, ""))
}

func metadata(t *testing.T, s store.Store) {
	ctx := t.Context()
	md := map[string]string{"domain_id": "gov:kr:example.go.kr", "category": "a b+c/한국", "date": "2026-01-28"}
	require.NoError(t, s.Put(ctx, "m/x.json", strings.NewReader("{}"), store.PutOptions{ContentType: "application/ld+json", Metadata: md}))
	o, err := s.Head(ctx, "m/x.json")
	require.NoError(t, err)
	require.Equal(t, "application/ld+json", o.ContentType)
	require.Equal(t, md, o.Metadata)
	require.Equal(t, []string{"m/x.json"}, keys(t, s, ""), "metadata must not be listed")
	put(t, s, "m/x.json", "{}") // an overwrite replaces it all
	o, err = s.Head(ctx, "m/x.json")
	require.NoError(t, err)
	require.Equal(t, "application/json", o.ContentType)
	require.Empty(t, o.Metadata)
	require.NoError(t, s.Put(ctx, "m/x.json", strings.NewReader("{}"), store.PutOptions{Metadata: map[string]string{"UPPER": "x"}}))
	o, err = s.Head(ctx, "m/x.json")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"upper": "x"}, o.Metadata)
	require.NoError(t, s.Delete(ctx, "m/x.json")) // and nothing is inherited
	require.NoError(t, s.PutIfAbsent(ctx, "m/x.json", strings.NewReader("{}"), store.PutOptions{}))
	o, err = s.Head(ctx, "m/x.json")
	require.NoError(t, err)
	require.Empty(t, o.Metadata)
}

func contentTypes(t *testing.T, s store.Store) {
	for key, want := range map[string]string{
		"a.json": "application/json", "robots.txt": "text/plain", "sitemap.xml": "application/xml", "a.json.success": "text/plain", "other": "application/octet-stream",
	} {
		put(t, s, key, "<html>")
		o, err := s.Head(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, want, o.ContentType, key)
	}
}

func failingBody(t *testing.T, s store.Store) {
	broken := errors.New("the source broke")
	body := func() io.Reader {
		return io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { return 0, broken }))
	}
	put(t, s, "kept", "whole")
	require.Error(t, s.Put(t.Context(), "kept", body(), store.PutOptions{}))
	require.Error(t, s.PutIfAbsent(t.Context(), "new", body(), store.PutOptions{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.Put(ctx, "kept", strings.NewReader("late"), store.PutOptions{}))
	require.Equal(t, "whole", read(t, s, "kept"))
	require.Equal(t, []string{"kept"}, keys(t, s, ""))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func large(t *testing.T, s store.Store) {
	data := bytes.Repeat([]byte("0123456789abcde\n"), 12<<20/16)
	want := sha256.Sum256(data)
	// Without the type of a bytes.Reader: bodies come from anywhere.
	require.NoError(t, s.PutIfAbsent(t.Context(), "large", io.MultiReader(bytes.NewReader(data)), store.PutOptions{}))
	got := sha256.Sum256([]byte(read(t, s, "large")))
	require.Equal(t, want, got)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "large", io.MultiReader(bytes.NewReader(data)), store.PutOptions{}), store.ErrExist)
	o, err := s.Head(t.Context(), "large")
	require.NoError(t, err)
	require.EqualValues(t, len(data), o.Size)
}

func etag(t *testing.T, s store.Store) {
	seen := map[string]string{}
	for _, content := range []string{"one", "two", "three", "four", ""} {
		put(t, s, "e", content)
		o, err := s.Head(t.Context(), "e")
		require.NoError(t, err)
		require.NotContains(t, seen, o.ETag, "the ETag of %q", content)
		require.NotContains(t, o.ETag, `"`)
		seen[o.ETag] = content
	}
}
