package embed

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/openai"
)

// endpoint answers with a vector of each text's length and position.
type endpoint struct {
	mu      sync.Mutex
	batches []int
	answers []int // statuses to give before it works
	header  http.Header
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var asked struct {
		Model string
		Input []string
	}
	if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Model != "small" {
		http.Error(w, "no", http.StatusNotFound)
		return
	}
	e.header = r.Header
	if len(e.answers) > 0 {
		status := e.answers[0]
		e.answers = e.answers[1:]
		http.Error(w, "not \x1b[2Jnow", status)
		return
	}
	e.batches = append(e.batches, len(asked.Input))
	var data []map[string]any
	for i := len(asked.Input) - 1; i >= 0; i-- { // in any order
		data = append(data, map[string]any{"index": i, "embedding": []float64{float64(len(asked.Input[i])), 3}})
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
		panic(err)
	}
}

func TestVectors(t *testing.T) {
	e := &endpoint{}
	s := httptest.NewServer(e)
	defer s.Close()
	c, err := New(s.URL+"/v1/", "small", "the key")
	require.NoError(t, err)
	var texts []string
	for i := range 2*batch + 1 {
		texts = append(texts, strings.Repeat("x", i))
	}
	e.answers = []int{503, 429}
	got, err := c.Vectors(t.Context(), texts)
	require.NoError(t, err)
	for i, v := range got {
		length := math.Hypot(float64(i), 3)
		assert.InDeltaSlice(t, []float32{float32(float64(i) / length), float32(3 / length)}, v, 1e-6)
	}
	assert.ElementsMatch(t, []int{batch, batch, 1}, e.batches, "a batch that failed is sent again, no other")
	assert.Equal(t, "Bearer the key", e.header.Get("Authorization"))

	e.answers = []int{401}
	_, err = c.Vectors(t.Context(), texts[:1])
	var status *openai.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, 401, status.Status)
	assert.NotContains(t, err.Error(), "\x1b")
	assert.NotContains(t, err.Error(), "the key")
	none, err := c.Vectors(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// An endpoint that stays down is asked four times, and is an error then.
func TestEndpointIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, err := New("https://endpoint.example/v1", "small", "")
		require.NoError(t, err)
		c.at.HTTP.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			asked++
			return nil, errDown
		})
		_, err = c.Vectors(t.Context(), []string{"a"})
		require.ErrorIs(t, err, errDown)
		assert.Equal(t, 4, asked)
	})
}

// While an endpoint asks for a pause no batch is sent, also none of those in parallel to the one that
// was refused. A pause that is too long to wait for is an error that names its end.
func TestEndpointAsksForPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		refusals := []string{"30", began.Add(2 * time.Minute).UTC().Format(http.TimeFormat)}
		c, err := New("https://endpoint.example/v1", "small", "")
		require.NoError(t, err)
		c.at.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent = append(sent, time.Since(began))
			w := httptest.NewRecorder()
			refused := len(refusals) > 0
			if refused {
				w.Header().Set("Retry-After", refusals[0])
				w.WriteHeader([]int{503, 429}[len(refusals)%2])
				refusals = refusals[1:]
			}
			mu.Unlock()
			if !refused {
				time.Sleep(time.Second) // of the bubble: a refusal comes sooner than an answer
				(&endpoint{}).ServeHTTP(w, r)
			}
			return w.Result(), nil
		})
		_, err = c.Vectors(t.Context(), []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{0, 30 * time.Second, 2 * time.Minute}, sent)

		sent, refusals, began = nil, []string{"60"}, time.Now()
		got, err := c.Vectors(t.Context(), slices.Repeat([]string{"a"}, (parallel+2)*batch))
		require.NoError(t, err)
		assert.Len(t, got, (parallel+2)*batch)
		early := slices.DeleteFunc(slices.Clone(sent), func(at time.Duration) bool { return at >= time.Minute })
		assert.LessOrEqual(t, len(early), parallel, "what was under way")
		assert.Len(t, sent, parallel+3)

		sent, refusals = nil, []string{"601"}
		_, err = c.Vectors(t.Context(), []string{"a"})
		var paused *openai.PausedError
		require.ErrorAs(t, err, &paused)
		_, err = c.Vectors(t.Context(), []string{"a"})
		require.ErrorAs(t, err, &paused)
		assert.Len(t, sent, 1)
		assert.ErrorContains(t, err, "it asks for no request before "+paused.Until.UTC().Format(time.RFC3339)+" (Retry-After); try again then")
		assert.WithinDuration(t, time.Now().Add(601*time.Second), paused.Until, time.Second)

		time.Sleep(time.Until(paused.Until)) // of the bubble
		sent, refusals = nil, []string{"20"}
		within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began = time.Now()
		_, err = c.Vectors(within, []string{"a"})
		require.ErrorAs(t, err, &paused)
		assert.Less(t, time.Since(began), time.Second, "a question does not wait for what comes too late")
	})
}

var errDown = errTimeout{}

type errTimeout struct{}

func (errTimeout) Error() string { return "it took too long" }
func (errTimeout) Timeout() bool { return true }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"", "x", "ftp://h/v1", "https://u:p@h/v1", "https://h/v1?k=1", "http://h/v1"} {
		_, err := New(bad, "small", "a key")
		assert.Error(t, err, bad)
	}
	_, err := New("https://h/v1", "", "")
	require.Error(t, err)
	for _, good := range []string{"https://h/v1", "http://127.0.0.1:8080/v1/", "http://localhost/v1/embeddings", "http://[::1]/v1"} {
		c, err := New(good, "small", "a key")
		require.NoError(t, err, good)
		assert.True(t, strings.HasSuffix(c.at.URL, "/v1/embeddings"), c.at.URL)
	}
}

func TestBadAnswers(t *testing.T) {
	for _, bad := range []string{"", "{}", `{"data":[]}`, `{"data":[{"index":1,"embedding":[1]}]}`, `{"data":[{"index":-1,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[]}]}`,
		`{"data":[{"index":0,"embedding":[0,0]}]}`, `{"data":[{"index":0,"embedding":[1e308,1e308]}]}`, `{"data":[{"index":0,"embedding":["1"]}]}`} {
		_, err := parse([]byte(bad), 1)
		assert.Error(t, err, bad)
	}
	_, err := parse([]byte(`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`), 2)
	assert.Error(t, err)
	_, err = parse(make([]byte, maxAnswer+1), 1)
	assert.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1e-9,2]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parse(b, 2)
		if err != nil {
			return
		}
		for _, v := range all {
			sum := 0.0
			for _, x := range v {
				sum += float64(x) * float64(x)
			}
			require.False(t, math.Abs(sum-1) > 1e-3, "%q has a vector of length %v", b, math.Sqrt(sum))
		}
	})
}
