package catalog

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

const (
	matterList    = "https://csa-iot.org/csa-iot_products/page/2/"
	matterProduct = "https://csa-iot.org/csa_product/orbit-plug-30/"
)

// A product's page in the shape that the register's other readers document.
func TestMatterPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/matter-product.html")
	require.NoError(t, err)
	r, err := site(t, "matter").compile()
	require.NoError(t, err)
	p, err := r.readDetail(matterProduct, string(text), "")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"certificate_id": "CSA25030MAT40030-24", "name": "Orbit Plug 30", "manufacturer": "Quill & Ember Inc.",
		"device_type":        "On/Off Plug-in Unit",
		"certification_date": "2025-09-26", "vid": "0x1102", "pid": "0x801E", "firmware_version": "1.0.30", "hardware_version": "v0",
		"family_id": "FAM00030", "family_sku": "SKU-30", "tis_trp_tested": "Yes", "specification_version": "1.3", "transport": "Wi-Fi, Bluetooth",
		"primary_device_type_id": "0x010A", "compliance_document_url": "https://csa-iot.org/wp-content/uploads/doc.zip"}, p.Fields)
	list, err := r.readList(matterProduct, string(text))
	require.NoError(t, err)
	assert.Empty(t, list.products, "related products are no list")
}

// A list page, its thousandth page and a link to a company.
func TestMatterList(t *testing.T) {
	t.Parallel()
	r, err := site(t, "matter").compile()
	require.NoError(t, err)
	for _, around := range []string{`<div class="post-feed item-count-3"><div class=inner>%s</div></div>`,
		`<div class=wp-block-crown-blocks-product-index>%s</div>`} {
		p, err := r.readList(matterList, fmt.Sprintf(around, `<article class="post-103277 product type-product">
			<a href="https://csa-iot.org/members/quill/">Quill</a>
			<a href="https://csa-iot.org/csa_product/wi-fi-plug-27/"><p class="entry-company notranslate">Quill</p></a>
			<a href="/csa_product/wi-fi-plug-27/">Learn more</a></article>`)+`<div class=pagination-wrapper><nav><div><a href=x><span>1</span></a>
			<a href=x><span>1,002</span></a><a href=x><span>Next</span></a></div></nav></div>`)
		require.NoError(t, err)
		assert.Equal(t, []string{"https://csa-iot.org/csa_product/wi-fi-plug-27/"}, p.products)
		assert.Equal(t, 1002, p.last)
	}
}

// Each label that the register's other readers know is read, as the label of an item and of
// a table's row, whatever its case and whether a colon follows; a longer one is another one.
func TestMatterLabels(t *testing.T) {
	t.Parallel()
	s := site(t, "matter")
	s.Key, s.Fields["number"] = "number", Field{Select: Select{Selector: "#number"}}
	r, err := s.compile()
	require.NoError(t, err)
	shapes := map[string]string{
		"item": `<div class=entry-product-details><div><ul><li class=item><span class=label>%s</span> ` +
			`<span class=value>%s</span></li></ul></div></div>`,
		"row": `<table class=product-certificates-table><tr><td>%s</td><td>%s</td></tr></table>`}
	read := func(place, label, value string) map[string]any {
		p, err := r.readDetail(matterProduct, `<b id=number>1</b>`+fmt.Sprintf(shapes[place], label, value), "")
		require.NoError(t, err)
		delete(p.Fields, "number")
		return p.Fields
	}
	table, err := os.ReadFile("testdata/matter-labels.tsv")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		rows++
		col := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, col, 4, line)
		field, place, label, value := col[0], col[1], col[2], "X-1"
		if field == "certification_date" {
			value = "2024-01-15"
		}
		want := map[string]any{field: value}
		assert.Equal(t, want, read(place, label, value), line)
		assert.Equal(t, want, read(place, strings.ToUpper(label)+" : ", value), line)
		assert.Empty(t, read(place, "Former "+label, value), line)
	}
	assert.Equal(t, 44, rows)
}

// The documented page itself, fifty times with other numbers, is a site whose products are all saved.
func TestMatterCrawlOfDocumentedPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/matter-product.html")
	require.NoError(t, err)
	j := newJob(t, "", webtest.Options{}, "matter")
	j.web.Handle(catalogsim.MatterHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		var page, n int
		if _, err := fmt.Sscanf(r.URL.Path, "/csa_product/orbit-plug-%d/", &n); err == nil {
			number := fmt.Sprintf("%05d", n)
			own := strings.NewReplacer("25030MAT40030", number+"MAT"+number, "Orbit Plug 30", "Orbit Plug "+number)
			_, _ = io.WriteString(w, own.Replace(string(text)))
			return
		}
		if _, err := fmt.Sscanf(r.URL.Path, "/csa-iot_products/page/%d/", &page); err != nil || page > 5 {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `<div class="post-feed item-count-10"><div class="inner">`)
		for n := range 10 {
			_, _ = fmt.Fprintf(w, `<article class="product type-product"><a href="/csa_product/orbit-plug-%d/">x</a></article>`, 10*page+n)
		}
		_, _ = io.WriteString(w, `</div></div><div class="pagination-wrapper"><nav><div><a href="x"><span>5</span></a></div></nav></div>`)
	}))
	total := j.run()
	assert.Equal(t, map[string]int64{"products_saved": 50, "failed_tasks": 0, "sites_held": 0, "sites_failed": 0},
		counted(total, "products_saved", "failed_tasks", "sites_held", "sites_failed"))
	products := j.products("matter")
	assert.Len(t, products, 50)
	assert.Equal(t, "2025-09-26", products["CSA00010MAT00010-24"].Detail["certification_date"])
}
