package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// A model tags each product once, only with what the site allows, and again when the
// product has changed; without an answer the product is saved all the same.
func TestTagging(t *testing.T) {
	t.Setenv(TagKey, "k3y")
	var mu sync.Mutex
	var asked []string
	broken := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var ask struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		b, _ := io.ReadAll(r.Body)
		if json.Unmarshal(b, &ask) != nil || ask.Model != "m" || r.Header.Get("Authorization") != "Bearer k3y" || r.URL.Path != "/v1/chat/completions" || !strings.HasSuffix(ask.Messages[0].Content, ": cheap, dear") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked = append(asked, ask.Messages[1].Content)
		if broken {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		says, _ := json.Marshal(`{"tags": ["Cheap", "stolen", "cheap", "dear\u0000"]}`)
		fmt.Fprintf(w, `{"choices": [{"message": {"content": %s}}]}`, says)
	}))
	defer s.Close()
	j := newJob(t, "", webtest.Options{})
	j.shelf(t, "tags: [cheap, dear]\n"+strings.Replace(shelves(t)["next link of an API"].File, "type: number", "type: number, volatile: true", 1))
	j.cfg.Tagging = Tagging{Endpoint: s.URL + "/v1", Model: "m", Taggers: 2}
	assert.Equal(t, map[string]int64{"products_saved": shelfProducts, "products_tagged": shelfProducts, "products_untagged": 0}, counted(j.run(), "products_saved", "products_tagged", "products_untagged"))
	assert.Len(t, asked, shelfProducts)
	assert.Contains(t, asked, `{"sku":"S-07"}`, "without the price, which is volatile")
	one := func(query string) (v string) {
		require.NoError(t, j.db.QueryRowContext(t.Context(), query).Scan(&v))
		return v
	}
	assert.Equal(t, `["cheap","dear"] m`, one(`SELECT tags || ' ' || model FROM catalog_tags WHERE product_key = 'S-07'`))

	assert.Equal(t, map[string]int64{"products_saved": shelfProducts, "products_tagged": 0}, counted(j.run(), "products_saved", "products_tagged"))
	assert.Len(t, asked, shelfProducts, "nothing is asked twice")

	broken = true
	_, err := j.db.ExecContext(t.Context(), `UPDATE catalog_tags SET asked = '' WHERE product_key <> 'S-01'`)
	require.NoError(t, err)
	j.cfg.Tagging.Taggers = 1
	total := j.run()
	assert.Equal(t, map[string]int64{"products_saved": shelfProducts, "products_tagged": 0, "products_untagged": shelfProducts - 1, "failed_tasks": 0}, counted(total, "products_saved", "products_tagged", "products_untagged", "failed_tasks"))
	assert.Len(t, asked, shelfProducts+maxTagFailures, "then it is asked no more")
	assert.Equal(t, []ledger.Warning{{Kind: "products_untagged", Source: "shelf", Count: shelfProducts - 1}}, total.Warnings)
	assert.Equal(t, "23", one(`SELECT count(*) FROM catalog_tags WHERE tags = '["cheap","dear"]'`), "the earlier tags stay")
	broken = false
	assert.Equal(t, map[string]int64{"products_tagged": shelfProducts - 1}, counted(j.run(), "products_tagged"), "the next crawl tries again")
	checked := j.cfg.Tagging
	checked.Endpoint = "http://far.example/v1"
	assert.ErrorContains(t, checked.Check(), "without encryption")
}

func TestReadTags(t *testing.T) {
	t.Parallel()
	f := func(answer string, want []string, wrong string) {
		t.Helper()
		got, err := readTags(json.RawMessage(answer), nil)
		if wrong != "" {
			assert.ErrorContains(t, err, wrong)
		}
		assert.Equal(t, want, got)
	}
	f(`{"tags": []}`, []string{}, "")
	f(`{"tags": ["A\n b", "", "`+strings.Repeat("x", 61)+`", "a b"]}`, []string{"a b"}, "")
	f(`{"tags": ["1","2","3","4","5","6","7","8","9","10","11"]}`, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, "")
	f(`{"tags": "a"}`, nil, "the model's answer has no tags")
	f(`{"labels": ["a"]}`, nil, "the model's answer has no tags")
	f(`[]`, nil, "the model's answer has no tags")
}
