package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const labelledSite = `
name: shop
list: {url: "https://shop.example/", product_link: {selector: a}}
detail: {lines: "li, tr, dt"}
key: id
fields:
  id: {selector: "#id"}
  size: {label: [Size, "Overall size:"], selector: .size, optional: true}
`

// A label and its value are found in each of the usual shapes, and compared whole.
func TestLabels(t *testing.T) {
	t.Parallel()
	r := compiled(t, labelledSite)
	f := func(page, want string) {
		t.Helper()
		p, err := r.readDetail("https://shop.example/1", "<b id=id>1</b>"+page, "")
		require.NoError(t, err)
		got, _ := p.Fields["size"].(string)
		for _, l := range p.lacks {
			got += l.why
		}
		assert.Equal(t, want, got, page)
	}
	f("<li><span>Size</span> <span>7 cm</span>", "7 cm")
	f("<li><b> SIZE : </b>7 cm", "7 cm")
	f("<li><b>Size</b>: <i>7</i> cm", "7 cm")
	f("<li>overall Size: 7: 8", "7: 8")
	f("<li><div><p><em>Size</em></p><p>7 cm</p></div>", "7 cm")
	f("<table><tr><th>Size<td>7 cm", "7 cm")
	f("<table><tr><td>Size<td>7 cm<td>a note", "7 cm")
	f("<dl><dt>Colour<dd>red<dt>Size<dd>7 cm</dl>", "7 cm")
	f("<li><b>Size</b>7 cm<li><b>Overall size</b> 7 cm", "7 cm")
	f("<li><b>Shoe size</b>7 cm", "")
	f("<li><b>Size chart</b>7 cm", "")
	f("<li>Size", "")
	f("<table><tr><td>Size<td> </table>", "")
	f("<p class=size>9 cm<li><b>Size</b>7 cm", "7 cm")
	f("<p class=size>9 cm<p class=size>8 cm<li><b>Shoe size</b>7 cm", "9 cm")
	f("<li><b>Size</b>7 cm<li><b>Overall size</b>9 cm",
		"different values stand under its labels: use many, or choose fewer lines by detail.lines or fewer labels: 7 cm, 9 cm")
	f("<dl><dt>Size<dd>7 cm<dd>9 cm</dl>",
		"different values stand under its labels: use many, or choose fewer lines by detail.lines or fewer labels: 7 cm, 9 cm")
}

// What stands under a label has a type, a regexp and an attribute as any text, and may be many.
func TestLabelsTyped(t *testing.T) {
	t.Parallel()
	r := compiled(t, strings.Replace(labelledSite, "fields:", `fields:
  since: {label: [Since, Made on], type: date, locale: en-US, optional: true}
  manual: {label: [Manual], type: url, optional: true}
  colours: {label: [Colour], many: true, optional: true}
  weight: {label: [Weight], type: number, regexp: 'net (.*)', optional: true}`, 1))
	p, err := r.readDetail("https://shop.example/1", `<b id=id>1</b><li><b>Since</b> 09/26/2025<li>Made on: 2025-09-26
		<li><b>Manual</b> <i>see</i> <a href="/m.pdf">here</a><li>Colour: red<li>Colour: blue
		<li>Weight: gross 9, net 7<li><b>Weight</b> <span>net 7</span>`, "")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"id": "1", "since": "2025-09-26", "manual": "https://shop.example/m.pdf",
		"colours": []any{"red", "blue"}, "weight": 7.0}, p.Fields)
	p, err = r.readDetail("https://shop.example/1",
		`<b id=id>1</b><li><b>Since</b> 09/26/2025<li>Made on: 2025-09-27<li>Weight: net <b>14</b><sup>99</sup>`, "")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"id": "1"}, without(p.Fields, "weight"), "two dates; the digits of two elements are not 1499")
	assert.NotEqual(t, 1499.0, p.Fields["weight"])
}

func without(m map[string]any, name string) map[string]any {
	delete(m, name)
	return m
}

// A trial names the labels for which a field looks, and those of the page.
func TestTryLabels(t *testing.T) {
	t.Parallel()
	const address = "https://shop.example/1"
	trial, err := compiled(t, labelledSite).try(address, address, "<b id=id>1</b><li>Shoe size: 7<li>Colour: red")
	require.NoError(t, err)
	assert.Equal(t, []TrialPart{{Name: "id", Selector: "#id", Elements: 1, Value: "1", Required: true},
		{Name: "size", Selector: "label Size | Overall size:, else .size", Why: "no line has its label",
			Near: []string{"label shoe size", "label colour"}}}, trial.Fields)
}

// What a label cannot mean is refused.
func TestErrorsOfLabels(t *testing.T) {
	t.Parallel()
	f := func(from, to, want string) {
		t.Helper()
		require.Contains(t, labelledSite, from)
		_, err := ParseSite([]byte(strings.Replace(labelledSite, from, to, 1)))
		assert.EqualError(t, err, want)
	}
	f(`detail: {lines: "li, tr, dt"}`, "detail: {}",
		"line 8: fields.size.label: it needs detail.lines, the selector of the lines in which labels and values stand")
	f(`"li, tr, dt"`, `"li["`, `line 4: detail.lines.selector "li[": expected identifier, found EOF instead`)
	f(`{lines: "li, tr, dt"}`, `{format: json, lines: li}`,
		"line 4: detail.lines: only an HTML page has lines; write detail.format: html, or leave it out")
	f(`[Size, "Overall size:"]`, `[Size, "size :"]`,
		`line 8: fields.size.label: "size :" is empty or there twice, case and colon apart: leave it out`)
	f(`[Size, "Overall size:"]`, `[":"]`,
		`line 8: fields.size.label: ":" is empty or there twice, case and colon apart: leave it out`)
	f(`[Size, "Overall size:"]`, `[]`, "line 8: fields.size.label: there is none; name at least one")
	f("label: [Size", "from: structured, path: sku, label: [Size",
		"line 8: fields.size.label: only an HTML page of a product has labels, without from and path")
	f("selector: .size", "type: group, selector: .size, fields: {a: {selector: b}}",
		"line 8: fields.size: attribute, regexp and label do not belong to a group, but an attribute with JSON that path reads; attribute and regexp belong to its fields")
}
