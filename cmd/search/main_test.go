package main

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/pipeline/cli"
)

type answer struct {
	code           int
	stdout, stderr string
}

// crawl runs the docs job on the simulated web.
func crawl(t *testing.T, args string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, cli.Program{}.Main(strings.Fields("--job=docs --web=demo --log-level=error "+args), &stdout, &stderr), "%s: %s%s", args, &stdout, &stderr)
}

// here runs the program in this process.
func here(t *testing.T, args string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.Fields(args), &stdout, &stderr)
	return answer{code, stdout.String(), stderr.String()}
}

func emptyEnv(t *testing.T) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SEED_") {
			t.Setenv(name, "")
		}
	}
}

// endpoint is an OpenAI-compatible endpoint for embeddings. The vector of a text counts
// its words. It counts the texts.
func endpoint(t *testing.T) (url string, e *fakeEndpoint) {
	t.Helper()
	e = &fakeEndpoint{}
	e.length.Store(256)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string
			Input []string
		}
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer sk-4711" || json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Model != "small" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		if e.down.Load() {
			http.Error(w, "not now", http.StatusBadRequest)
			return
		}
		e.requests.Add(1)
		var data []map[string]any
		for i, text := range asked.Input {
			e.texts.Add(1)
			v := make([]float64, e.length.Load())
			for word := range strings.FieldsSeq(strings.ToLower(text)) {
				h := fnv.New32a()
				_, _ = h.Write([]byte(word)) // it never fails
				v[int(h.Sum32())%len(v)]++
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // a client that is gone needs no answer
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", e
}

// fakeEndpoint is an endpoint with counters.
type fakeEndpoint struct {
	texts, requests atomic.Int64
	length          atomic.Int64 // of a vector
	down            atomic.Bool
}

// What the docs job hands over is found by words and vectors. Later sessions cost the
// vectors of changed chunks alone, a purged provider is gone, and of pages whose terms are
// not known the database has 200 characters.
func TestEmbedAndSearch(t *testing.T) {
	emptyEnv(t)
	t.Setenv(embed.KeyVariable, "sk-4711")
	url, e := endpoint(t)
	dir := filepath.Join(t.TempDir(), "b")
	require.NoError(t, os.Mkdir(dir, 0o700))
	run := func(line string, code int) answer {
		t.Helper()
		a := here(t, line+" --store="+dir)
		require.Equal(t, code, a.code, "%s: %s%s", line, a.stdout, a.stderr)
		return a
	}
	model := " --embed-model=small --embed-url=" + url
	assert.Contains(t, run("embed", 2).stderr, "run the docs job first")
	demo := "--store=" + dir + " --provider=openai,stripe --demo-edition="
	crawl(t, demo+"1")
	assert.Contains(t, run("ask card", 0).stdout, "nothing is found")
	numbers := regexp.MustCompile(`indexed (\d+) hand-offs: (\d+) chunks put, (\d+) deleted, (\d+) vectors made`)
	embed := func(flags string) []string {
		t.Helper()
		m := numbers.FindStringSubmatch(run("embed"+flags, 0).stdout)
		require.NotNil(t, m)
		return m[1:]
	}
	first := embed(model)
	assert.Equal(t, "1", first[0])
	assert.Equal(t, first[1], first[3], "each chunk has a vector")
	assert.Equal(t, []string{"0", "0", "0", "0"}, embed(model), "nothing is done twice")
	all := e.texts.Load()
	assert.Greater(t, all, int64(64))
	assert.Equal(t, (all+63)/64, e.requests.Load(), "64 texts in a request, of whatever pages")

	crawl(t, demo+"2")
	second := embed(model)
	assert.NotEqual(t, "0", second[2], "chunks are deleted")
	assert.NotEqual(t, "0", second[3])
	assert.Less(t, e.texts.Load(), all*3/2, "only what changed costs a vector")

	found := run("ask the limits of requests --limit=3"+model, 0).stdout
	assert.Regexp(t, `(?s)^1\. .*\n   https://.*\n   .*\n2\. .*3\. `, found)
	only := run("ask the limits of requests --limit=50 --provider=stripe"+model, 0).stdout
	assert.Contains(t, only, "stripe.com/")
	assert.NotContains(t, only, "openai.com/")
	var printed struct {
		Results   []index.Found
		ByVectors bool `json:"by_vectors"`
	}
	require.NoError(t, json.Unmarshal([]byte(run("ask --json --question=--limits --limit=2"+model, 0).stdout), &printed))
	assert.True(t, printed.ByVectors)
	require.Len(t, printed.Results, 2)
	assert.NotEmpty(t, printed.Results[0].Excerpt)
	assert.Empty(t, printed.Results[0].Whole)
	long := regexp.MustCompile(`(?m)^   (.*)$`)
	for _, line := range long.FindAllStringSubmatch(only, -1) {
		assert.LessOrEqual(t, len([]rune(line[1])), 200)
	}

	e.down.Store(true)
	without := run("ask --json --question=--limits --limit=2"+model, 0)
	require.NoError(t, json.Unmarshal([]byte(without.stdout), &printed))
	assert.False(t, printed.ByVectors, "words are searched without the endpoint")
	assert.Len(t, printed.Results, 2)
	assert.Contains(t, without.stderr, "by words alone: asking "+url+"/embeddings for embeddings: status 400: not now")
	e.down.Store(false)

	e.length.Store(128)
	assert.Contains(t, run("ask the limits"+model, 0).stderr, "`search embed` makes all of them again")
	crawl(t, demo+"1")
	again := embed(model)
	assert.Equal(t, "3", again[0], "another model under the same name: all hand-offs are read again")
	assert.Empty(t, run("ask the limits"+model, 0).stderr)

	crawl(t, "--store="+dir+" --purge-provider=stripe")
	assert.NotEqual(t, "0", embed(model)[2])
	assert.NotContains(t, run("ask the limits of requests --limit=50"+model, 0).stdout, "stripe.com/")

	other := embed(" --embed-model=small --embed-url=" + url)
	assert.Equal(t, []string{"0", "0", "0", "0"}, other)
	b, err := os.ReadFile(dir + ".db")
	require.NoError(t, err)
	assert.NotContains(t, string(b), "sk-4711")
	for line, says := range map[string]string{
		"ask": "write a question", "ask x --limit=51": "1 to 50", "embed x": "nothing but flags", "embed --embed-url=x --embed-model=m": "https://host/v1",
		"embed --embed-url=http://far.example/v1 --embed-model=m": "without encryption", "embed --embed-url=" + url: "name the endpoint's model",
	} {
		assert.Contains(t, run(line, 2).stderr, says, line)
	}
}
