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

// Selectors run in HTML that a text of JSON has, in a product's fields and in the parts of
// a group; --try says what such HTML lacks.
func TestHTMLInJSON(t *testing.T) {
	t.Parallel()
	s, err := ParseSite([]byte(`
name: shop
locale: de-DE
list: {url: "https://shop.example/", format: json, rows: {path: "items[].card", selector: div}, product_link: {selector: a}}
detail: {format: json}
key: id
fields:
  id: {path: id}
  badge: {from: row, selector: .badge}
  weight: {path: body, selector: ".weight", type: number}
  manual: {path: body, selector: a.manual, type: url}
  color: {path: body, selector: "[data-color]", attribute: data-color, regexp: "^\\w+"}
  sizes:
    path: "blocks[].html"
    selector: tr
    type: group
    many: true
    fields:
      name: {selector: th}
      picture: {selector: img, type: image}
  none: {path: body, selector: .none, optional: true}
`))
	require.NoError(t, err)
	r, err := s.compile()
	require.NoError(t, err)
	list, err := r.readList("https://shop.example/", `{"items": [{"card": "<div><a href=/p/1>A</a><b class=badge>new</b></div>"}, {"card": "<div><a href='/p/2'>B</a></div>"}, {"card": 7}]}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"https://shop.example/p/1", "https://shop.example/p/2"}, list.products)
	const page = `{"id": 1, "body": "<p class=weight>2,5 kg</p><a class=manual href='m.pdf'>x</a><i data-color='red and blue'></i>",
		"blocks": [{"html": "<tr><th>S<td><img src=/s.jpg>"}, {"html": "<tr><th>M</tr><tr><th>L"}]}`
	p, err := r.readDetail("https://shop.example/p/1", page, list.rows["https://shop.example/p/1"])
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"id": "1", "badge": json.RawMessage(`"new"`), "weight": 2.5, "manual": "https://shop.example/p/m.pdf", "color": "red",
		"sizes": []any{map[string]any{"name": "S", "picture": "https://shop.example/s.jpg"}, map[string]any{"name": "M"}, map[string]any{"name": "L"}}}, p.Fields)
	trial, err := r.try("https://shop.example/p/1", "https://shop.example/p/1", page)
	require.NoError(t, err)
	for _, f := range trial.Fields {
		if f.Name == "none" {
			assert.Equal(t, TrialPart{Name: "none", Selector: ".none | body", Why: "no element matches the selector"}, f)
		}
	}
}
