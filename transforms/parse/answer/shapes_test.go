package answer_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/hostile"
)

type shape struct {
	Name, Type, URL, Final, Body, Vendor string
	Status                               int
	Kind, Want                           answer.Kind
	Header                               map[string][]string
}

func (s shape) response() answer.Response {
	header := map[string][]string{"Content-Type": {s.Type}}
	for name, values := range s.Header {
		header[name] = values
	}
	return answer.Response{Status: s.Status, Header: header, URL: s.URL, Final: s.Final, Body: []byte(s.Body), Want: s.Want}
}

func shapes(t testing.TB) (all []shape) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "shapes.jsonl"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s shape
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
		all = append(all, s)
	}
	require.NoError(t, lines.Err())
	return all
}

var walls = []answer.Kind{answer.Challenge, answer.Consent, answer.Login, answer.Paywall, answer.Soft404, answer.Maintenance, answer.Parked,
	answer.ErrorPage, answer.Empty, answer.OtherType}

// The figures of docs/operations.md are those of the shapes.
func TestShapes(t *testing.T) {
	of, known := map[answer.Kind]int{}, map[answer.Kind]int{}
	near, wrong := 0, 0
	for _, s := range shapes(t) {
		v := answer.Classify(s.response())
		assert.True(t, v.Kind == s.Kind && (s.Vendor == "" || v.Vendor == s.Vendor), "%s %q is called %+v", s.Kind, s.Name, v)
		if strings.HasPrefix(s.Name, "near: ") {
			if near++; v.Kind != s.Kind {
				wrong++
			}
			continue
		}
		if of[s.Kind]++; v.Kind == s.Kind {
			known[s.Kind]++
		}
		assert.NotEqual(t, "", v.Evidence, "%s %q has no evidence", s.Kind, s.Name)
	}
	table := ""
	for _, k := range walls {
		table += fmt.Sprintf("| `%s` | %d of %d |\n", k, known[k], of[k])
	}
	table += fmt.Sprintf("| content called a wall | %d of %d |\n", wrong, near)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), table, "docs/operations.md has other figures than\n%s", table)
}

func TestHostile(t *testing.T) {
	for name, unit := range map[string]string{"tags": "<div>", "hidden": "<div hidden>", "headings": "<h1>404", "links": "<a href=x>", "open": "<",
		"entities": "&amp;", "titles": "<title>404 - ", "letters": "a", "wide": "가", "quotes": `<a b="`, "scripts": "<script>a</script>"} {
		body := []byte(strings.Repeat(unit, 8<<20/len(unit)))
		for _, want := range []answer.Kind{"", answer.Robots, answer.Sitemap} {
			assert.NoError(t, hostile.Parse(t, func() error {
				v := answer.Classify(answer.Response{Status: 200, Body: body, Want: want})
				if len(v.Evidence) > 200 || v.Kind == "" {
					return fmt.Errorf("%+v", v)
				}
				return nil
			}), name)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range shapes(f) {
		f.Add(s.Status, s.Type, s.URL, s.Final, []byte(s.Body), string(s.Want))
	}
	f.Fuzz(func(t *testing.T, status int, media, address, final string, body []byte, want string) {
		v := answer.Classify(answer.Response{Status: status, Header: map[string][]string{"Content-Type": {media}}, URL: address, Final: final,
			Body: body, Want: answer.Kind(want)})
		assert.True(t, v.Kind != "" && len(v.Evidence) <= 200 && !strings.ContainsAny(v.Evidence, "\n\x00\x1b"), "%+v", v)
		assert.True(t, !v.Kind.Wall() || v.Evidence != "", "%+v has no evidence", v)
	})
}
