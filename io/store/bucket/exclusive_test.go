package bucket

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// oldS3 is the part of an S3 server that creating objects needs. It honours
// If-None-Match, or ignores it as some servers and gateways do.
type oldS3 struct {
	ignores bool
	breaks  bool // the connection, in the body of a refusal

	mu      sync.Mutex
	objects map[string]string
	puts    int
}

func (s *oldS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, there := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPut:
		s.puts++
		b, _ := io.ReadAll(r.Body) // a body cut off is the test's failure by itself
		if there && !s.ignores && r.Header.Get("If-None-Match") == "*" {
			if s.breaks {
				w.Header().Set("Content-Length", "1000")
			}
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `<Error><Code>PreconditionFailed</Code></Error>`)
			return
		}
		s.objects[r.URL.Path] = string(b)
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
	case there:
		fmt.Fprint(w, body)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
	}
}

func TestExclusive(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for ignores, want := range map[bool]error{true: store.ErrNotExclusive, false: nil} {
		old := &oldS3{ignores: ignores, objects: map[string]string{}}
		server := httptest.NewServer(old)
		defer server.Close()
		s, err := store.Open(t.Context(), "s3://bucket?endpoint="+server.URL)
		require.NoError(t, err)
		for range 2 {
			assert.ErrorIs(t, store.Exclusive(t.Context(), store.Counted(s, new(store.Calls))), want, "ignores If-None-Match %v", ignores)
		}
		assert.Empty(t, old.objects, "the probe left")
		assert.True(t, ignores || old.puts == 2, "%d requests to create objects, want one probe", old.puts)
		// The response to an earlier attempt did not arrive: the object is this
		// writer's, or another's.
		for there, want := range map[string]error{"mine\n": nil, "another's\n": store.ErrExist} {
			old.objects["/bucket/a"] = there
			err := store.Create(t.Context(), s, "a", []byte("mine\n"), store.PutOptions{})
			assert.True(t, ignores || errors.Is(err, want), "creating what is there as %q: %v, want %v", strings.TrimSpace(there), err, want)
		}
	}
}

// The status of an answer says that an object exists, whether its body arrives whole or not.
func TestExistsInABrokenAnswer(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	server := httptest.NewServer(&oldS3{breaks: true, objects: map[string]string{"/bucket/a": ""}})
	defer server.Close()
	s, err := store.Open(t.Context(), "s3://bucket?endpoint="+server.URL)
	require.NoError(t, err)
	assert.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", strings.NewReader("x"), store.PutOptions{}), store.ErrExist)
}
