package bucket

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// Without keys an endpoint is named for what it is: dead, or one that needs them.
func TestEndpointWithoutKeys(t *testing.T) {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // restored at the end
			require.NoError(t, os.Unsetenv(name))
		}
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true") // as where nobody answers at that address
	live := httptest.NewServer(http.NotFoundHandler())
	defer live.Close()
	dead := httptest.NewServer(nil)
	dead.Close()

	_, err := store.Open(t.Context(), "s3://bucket?endpoint="+live.URL)
	require.ErrorContains(t, err, "there are no keys for the endpoint "+live.URL+"; set AWS_ACCESS_KEY_ID")
	require.False(t, store.Retryable(err))
	require.NotContains(t, err.Error(), "IMDS")

	_, err = store.Open(t.Context(), "s3://bucket?endpoint="+dead.URL)
	require.ErrorContains(t, err, "the endpoint "+dead.URL+" does not answer")
	require.True(t, store.Retryable(err), "%v", err)
	require.NotContains(t, err.Error(), "IMDS")

	t.Setenv("R2_ENDPOINT", dead.URL)
	_, err = store.Open(t.Context(), "r2://bucket")
	require.ErrorContains(t, err, "the endpoint "+dead.URL+" does not answer")
	require.NotContains(t, err.Error(), "IMDS")
}

func TestOpenRefuses(t *testing.T) {
	t.Setenv("R2_ENDPOINT", "")
	t.Setenv("R2_ACCOUNT_ID", "")
	for url, want := range map[string]string{
		"s3://b?endpoint=http://k:hunter2@h": "without credentials",
		"r2://b":                             "R2_ACCOUNT_ID",
	} {
		_, err := store.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
