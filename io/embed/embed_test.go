package embed

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
			if math.Abs(sum-1) > 1e-3 {
				t.Errorf("%q has a vector of length %v", b, math.Sqrt(sum))
			}
		}
	})
}
