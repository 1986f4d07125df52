package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A draft finds the number of a product by its class, and reads whether it is in stock as a boolean.
func TestDraftFields(t *testing.T) {
	list := `<ul>` + `<li class=product><a href="/product/1">1</a><li class=product><a href="/product/2">2</a><li class=product><a href="/product/3">3</a></ul>`
	for name, tt := range map[string]struct {
		page     string // of a product: its number, and a word of its own
		words    [2]string
		want     []string
		unwanted string
	}{
		"a span alone": {`<h1>Lamp %[1]s</h1><span class=sku>L-%[1]s</span><p class="in-stock-%[1]s stock">%[2]s</p>`, [2]string{"In stock", "Out of stock"},
			[]string{"key: sku\n", "  sku: {selector: \"span.sku\"}\n", "  availability: {selector: \"p.stock\", volatile: true, type: boolean"}, ""},
		"WooCommerce": {`<h1>Lamp %[1]s</h1><p class="stock in-stock">%[2]s</p><span class="sku_wrapper">SKU: <span class="sku">L-%[1]s</span></span>`, [2]string{"12 in stock", "3 in stock"},
			[]string{"key: sku\n", "  sku: {selector: \"span.sku\"}\n", "volatile: true, type: boolean"}, "sku_wrapper"},
		"a label": {`<h1>Lamp %[1]s</h1><dl><dt>SKU<dd>L-%[1]s<dt>Availability<dd>%[2]s<dt>Pieces<dd>1</dl>`, [2]string{"Auf Lager", "Ausverkauft"},
			[]string{"  availability: {label: [\"availability\"], type: boolean, optional: true}\n", "  pieces: {label: [\"pieces\"], optional: true}\n"}, ""},
		"for machines": {`<h1>Lamp %[1]s</h1><script type="application/ld+json">{"@type":"Product","sku":"L-%[1]s","name":"Lamp %[1]s","offers":{"availability":"https://schema.org/%[2]s"}}</script>`,
			[2]string{"InStock", "SoldOut"}, []string{"path: 'offers[0].availability', volatile: true, type: boolean}\n"}, ""},
		"other words": {`<h1>Lamp %[1]s</h1><span class=sku>L-%[1]s</span><p class=stock>%[2]s</p>`, [2]string{"In stock", "In three weeks"},
			[]string{"  availability: {selector: \"p.stock\", volatile: true}\n"}, "boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := NewDraft("https://shop.example/lamps", list)
			require.NoError(t, err)
			text, err := d.Write(map[string]string{"https://shop.example/product/1": fmt.Sprintf(tt.page, "1", tt.words[0]), "https://shop.example/product/2": fmt.Sprintf(tt.page, "2", tt.words[1])})
			require.NoError(t, err)
			for _, want := range tt.want {
				assert.Contains(t, text, want)
			}
			if tt.unwanted != "" {
				assert.NotContains(t, text, tt.unwanted)
			}
		})
	}
}
