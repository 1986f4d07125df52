package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
)

func status(code int) error {
	return fmt.Errorf("writing: %w", &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: errors.New("x")})
}

func TestRetryable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{status(500), true}, {status(503), true}, {status(429), true}, {status(408), true},
		{status(501), false}, {status(400), false}, {status(403), false}, {status(404), false}, {status(412), false},
		{&googleapi.Error{Code: 503}, true}, {&googleapi.Error{Code: 403}, false},
		{fmt.Errorf("x: %w", ErrNotExist), false}, {ErrExist, false}, {ErrKey, false}, {fs.ErrPermission, false},
		{context.Canceled, false}, {context.DeadlineExceeded, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true}, {syscall.EPIPE, true}, {os.ErrDeadlineExceeded, true},
		{io.ErrUnexpectedEOF, false}, {fmt.Errorf("%w: %w", errConnectionBroken, io.ErrUnexpectedEOF), true},
		{syscall.ENOSPC, true}, {syscall.EROFS, false}, {errors.New("bad JSON"), false},
	} {
		require.Equal(t, c.want, Retryable(c.err), "%v", c.err)
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, errs ...error) (tries int, took time.Duration, err error) {
			start := time.Now()
			err = Retry(ctx, func() error { tries++; return errs[min(tries, len(errs))-1] })
			return tries, time.Since(start), err
		}
		tries, took, err := run(t.Context(), status(500), status(503), nil)
		require.NoError(t, err)
		require.Equal(t, 3, tries)
		require.True(t, took >= 300*time.Millisecond && took <= 900*time.Millisecond, "%v", took)
		tries, _, err = run(t.Context(), status(500))
		require.ErrorContains(t, err, "500")
		require.Equal(t, 1+Retries, tries)
		tries, took, err = run(t.Context(), ErrNotExist)
		require.ErrorIs(t, err, ErrNotExist)
		require.Equal(t, 1, tries)
		require.Zero(t, took)
		slow := &smithy.GenericAPIError{Code: "SlowDown"}
		for _, throttled := range []error{slow, status(429), &googleapi.Error{Code: 429}} {
			tries, took, err = run(t.Context(), throttled)
			require.ErrorIs(t, err, throttled)
			require.Equal(t, 1+throttledRetries, tries)
			require.True(t, took >= 25*time.Second && took <= 80*time.Second, "%v", took)
		}
		tries, _, err = run(t.Context(), slow, status(500), slow, slow, status(500), slow, slow, status(500), nil)
		require.NoError(t, err)
		require.Equal(t, 9, tries)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		tries, took, _ = run(ctx, status(500))
		require.Equal(t, 1, tries)
		require.Equal(t, 50*time.Millisecond, took)
	})
}

func TestSweepTemp(t *testing.T) {
	root := t.TempDir()
	old, young, data := filepath.Join(root, tempPrefix+"old"), filepath.Join(root, tempPrefix+"young"), filepath.Join(root, "data")
	now := time.Now()
	for path, age := range map[string]time.Duration{old: 2 * time.Hour, young: time.Minute, data: 2 * time.Hour} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	s, err := Open(t.Context(), root)
	require.NoError(t, err)
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, "data", o.Key)
	}
	n, err := SweepTemp(t.Context(), Counted(s, new(Calls)), now.Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoFileExists(t, old)
	require.FileExists(t, young)
	require.FileExists(t, data)
}

// A folder that cannot be read, such as the lost+found of a disk, does not end the sweep.
// Here its path is too long, which no user may read.
func TestSweepTempGoesOn(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	for _, dir := range []string{"a", "b", "c"} {
		path := filepath.Join(root, dir, tempPrefix+"old")
		require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-2*time.Hour), now.Add(-2*time.Hour)))
	}
	deep, err := os.OpenRoot(filepath.Join(root, "b"))
	require.NoError(t, err)
	for name := strings.Repeat("d", 250); ; {
		require.NoError(t, deep.Mkdir(name, 0o755))
		next, err := deep.OpenRoot(name)
		require.NoError(t, errors.Join(err, deep.Close()))
		if deep = next; len(deep.Name()) > 5000 {
			require.NoError(t, deep.Close())
			break
		}
	}
	s, err := Open(t.Context(), root)
	require.NoError(t, err)
	n, err := SweepTemp(t.Context(), s, now.Add(-time.Hour))
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	require.Equal(t, 3, n)
}

func TestOpenRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"":                                    "empty",
		filepath.Join(t.TempDir(), "missing"): "must exist",
		"s3://key:hunter2@bucket":             "credentials",
		"s3://b?secret=hunter2":               "unknown",
		"ftp://b":                             "scheme",
		"mem://":                              "missing",
		"s3://b%zz:hunter2@":                  "cannot be parsed",
	} {
		_, err := Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
