package openai

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer has as many bytes as the caller takes, and no more.
func TestLargeAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer s.Close()
	e, err := At(s.URL, "/x", "m", "n", "", time.Minute)
	require.NoError(t, err)
	defer e.Close()
	b, err := e.Post(t.Context(), "q", 1<<20)
	require.NoError(t, err)
	assert.Len(t, b, 1<<20)
	_, err = e.Post(t.Context(), "q", 1<<19)
	assert.ErrorContains(t, err, "its answer is over 0 MB")
}
