package catalogsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// ShopProducts is how many products each of the example shops has.
const ShopProducts = 45

// InstallShops adds the shops of transforms/catalog/sites/examples, in the layouts of
// hosted shops, of shop plug-ins and of shops behind an API. They are demo data too.
func InstallShops(handle func(host string, site http.Handler)) {
	for host, serve := range map[string]func(path string, r *http.Request) string{"bricks.example": bricks, "books.example": books, "lamps.example": lamps} {
		handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := serve(r.URL.Path, r)
			switch {
			case r.URL.Path == "/robots.txt":
				answer(w, "text/plain; charset=utf-8", "User-agent: *\nDisallow: /cart\n")
			case text == "":
				http.NotFound(w, r)
			case text[0] == '{':
				answer(w, "application/json", text)
			case strings.HasSuffix(r.URL.Path, ".xml"):
				answer(w, "application/xml", text)
			default:
				answer(w, "text/html; charset=utf-8", text)
			}
		}))
	}
	handle("cdn.bricks.example", http.HandlerFunc(brickPictures))
}

// brickPictures are small pictures of one colour each.
func brickPictures(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".jpg"))
	if err != nil || n < 1 || n > ShopProducts {
		http.NotFound(w, r)
		return
	}
	of := image.NewRGBA(image.Rect(0, 0, 48, 32))
	draw.Draw(of, of.Bounds(), image.NewUniform(color.RGBA{R: uint8(5 * n), G: 90, B: uint8(250 - 5*n), A: 255}), image.Point{}, draw.Src)
	var b strings.Builder
	if err := jpeg.Encode(&b, of, nil); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "image/jpeg", b.String())
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // maps of texts and numbers have none
		return ""
	}
	return string(b)
}

type object = map[string]any

func bricks(path string, r *http.Request) string {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if path != "/products.json" || err != nil {
		return ""
	}
	all := []object{}
	for n := (page-1)*20 + 1; n >= 1 && n <= min(page*20, ShopProducts); n++ {
		all = append(all, object{"id": 7_000_000_000_000 + n, "title": fmt.Sprintf("Brick %d", n), "vendor": companies[n%len(companies)], "tags": []string{"demo", "brick"},
			"images":   []object{{"src": fmt.Sprintf("//cdn.bricks.example/%d.jpg", n)}},
			"variants": []object{{"sku": fmt.Sprintf("B-%d-S", n), "price": fmt.Sprintf("%d.50", n), "grams": 10 * n}, {"sku": fmt.Sprintf("B-%d-L", n), "price": fmt.Sprintf("%d.90", n), "grams": 20 * n}}})
	}
	return encoded(object{"products": all})
}

func books(path string, _ *http.Request) string {
	if path == "/sitemap_index.xml" {
		return `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://books.example/page-sitemap.xml</loc></sitemap><sitemap><loc>https://books.example/product-sitemap.xml</loc></sitemap></sitemapindex>`
	}
	var b strings.Builder
	b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	switch path {
	case "/page-sitemap.xml":
		return b.String() + `<url><loc>https://books.example/about/</loc></url></urlset>`
	case "/product-sitemap.xml":
		for n := range ShopProducts {
			fmt.Fprintf(&b, "<url><loc>https://books.example/product/book-%d/</loc></url>", n+1)
		}
		return b.String() + "</urlset>"
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, "/product/book-"), "/"))
	if err != nil || n < 1 || n > ShopProducts {
		return ""
	}
	about := encoded(object{"@context": "https://schema.org/", "@graph": []object{{"@type": "Product", "name": fmt.Sprintf("Book %d", n), "sku": fmt.Sprintf("BK%03d", n),
		"offers": []object{{"@type": "Offer", "price": fmt.Sprintf("%d.90", n), "priceCurrency": "GBP", "availability": "https://schema.org/InStock"}}}}})
	return fmt.Sprintf(`<!DOCTYPE html><html><head><title>Book %d (demo data)</title><script type="application/ld+json">%s</script></head><body><h1>%s</h1><table class=attributes><tr><td class=pages>%d pages</table></body></html>`,
		n, about, html.EscapeString(fmt.Sprintf("Book %d", n)), 100+n)
}

func lamps(path string, r *http.Request) string {
	if path == "/api/search" && r.Method == http.MethodPost {
		var ask struct {
			After string
			Size  int
		}
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&ask); err != nil || ask.Size < 1 {
			return ""
		}
		after, err := strconv.Atoi(strings.TrimPrefix(cmp.Or(ask.After, "0"), "after:"))
		if err != nil {
			return ""
		}
		items := []object{}
		for n := after + 1; n <= min(after+ask.Size, ShopProducts); n++ {
			items = append(items, object{"id": n, "stock": n % 7})
		}
		data := object{"items": items}
		if after+ask.Size < ShopProducts {
			data["next"] = fmt.Sprintf("after:%d", after+ask.Size)
		}
		return encoded(object{"data": data})
	}
	n, err := strconv.Atoi(strings.TrimPrefix(path, "/api/lamps/"))
	if err != nil || n < 1 || n > ShopProducts {
		return ""
	}
	return encoded(object{"sku": fmt.Sprintf("L-%02d", n), "price": object{"amount": float64(n) + 0.5}, "updated": 1_772_542_800 + n*3600,
		"specs": []object{{"name": "color", "value": "white"}, {"name": "power", "value": fmt.Sprintf("%d W", n)}}})
}
