package catalog

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A number of JSON keeps all of its digits, and can be compared where that is exact.
func TestPaths(t *testing.T) {
	t.Parallel()
	f := func(expression, text string, want ...scalar) {
		t.Helper()
		q, err := compilePath(expression)
		require.NoError(t, err)
		data, err := parseJSON(text)
		require.NoError(t, err)
		assert.Equal(t, want, slices.Collect(q.scalars(data)), expression)
	}
	f("a", `{"a": 12345678901234567890}`, scalar{"12345678901234567890", true})
	f("a", `{"a": 12.50}`, scalar{"12.50", true})
	f("a", `{"a": 0.1}`, scalar{"0.1", true})
	f("a", `{"a": 1e3}`, scalar{"1e3", true})
	f("a", `{"a": null}`)
	f("a", `{"a": {"b": 1}}`)
	f("a", `{"a": ["x", [true, null, {"y": 1}]]}`, scalar{text: "x"}, scalar{text: "true"})
	f("a[?n > `2`].n", `{"a": [{"n": 1}, {"n": 3}, {}, null]}`, scalar{"3", true})
	f("variants[?sku=='b'].price | [0]", `{"variants": [{"sku": "a", "price": 1}, {"sku": "b", "price": 2}]}`, scalar{"2", true})
	f("max_by(a, &n).n", `{"a": [{"n": 1}, null]}`) // an error of the expression is no value
	for _, bad := range []string{`{"a": 1} x`, `{"a": 1`, "", "<html>"} {
		_, err := parseJSON(bad)
		assert.ErrorContains(t, err, "parsing JSON", bad)
	}
}

func FuzzPaths(f *testing.F) {
	f.Add("a[?b > `1`].c | [0]", `{"a": [{"b": 2, "c": 3}, null]}`)
	f.Add("max_by(a, &b)", `{"a": [null, 1]}`)
	f.Add("join(',', a[].b)", `{"a": [{"b": 1e99}]}`)
	f.Add("a[1:9:2].*.b[]", `{"a": [[], {"c": {"b": [1]}}]}`)
	f.Fuzz(func(t *testing.T, expression, text string) {
		q, err := compilePath(expression)
		if err != nil {
			return
		}
		data, err := parseJSON(text)
		if err != nil {
			return
		}
		before, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		for s := range q.scalars(data) {
			if s.plain && !json.Valid([]byte(s.text)) {
				t.Errorf("%q is no number", s.text)
			}
		}
		if after, err := json.Marshal(data); err != nil || string(after) != string(before) {
			t.Errorf("%q changes its data", expression)
		}
	})
}
