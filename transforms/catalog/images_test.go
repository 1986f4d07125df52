package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	goimage "image"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane/images"
)

const imagesFile = `
name: shop
headers: {X-Api-Key: "${SITE_IMAGES_KEY}"}
list: {url: "https://shop.example/", product_link: {selector: a.p}}
key: id
fields:
  id: {selector: "#id"}
  pictures: {selector: img, type: image, many: true, volatile: true}
  variants:
    selector: li
    type: group
    many: true
    optional: true
    fields:
      swatch: {selector: li, attribute: data-swatch, type: image}
`

func drawn(t testing.TB, wide int, encode func(io.Writer, goimage.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, encode(&b, goimage.NewPaletted(goimage.Rect(0, 0, wide, 10), color.Palette{color.Black})))
	return b.Bytes()
}

func asPNG(w io.Writer, m goimage.Image) error { return png.Encode(w, m) }

func asJPEG(w io.Writer, m goimage.Image) error { return jpeg.Encode(w, m, nil) }

// gallery is a shop whose products name images, which are on its host and on another one.
type gallery struct {
	*shop
	files    map[string]http.HandlerFunc // by host and path
	requests []string                    // for images and for robots.txt of the other host, with If-None-Match
	secrets  int                         // images that were asked for with the site's own headers
}

func newGallery(t *testing.T, dsn string) *gallery {
	t.Setenv("SITE_IMAGES_KEY", "s3cret")
	g := &gallery{shop: newShop(t, dsn, imagesFile), files: map[string]http.HandlerFunc{}}
	g.cfg.Images = imaging{Fetch: true, Fetchers: 1}
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		text, ok := g.pages[r.URL.RequestURI()]
		g.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	})
	for _, host := range []string{"shop.example", "cdn.test", "far.test"} {
		g.web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serve := g.files[r.Host+r.URL.Path]
			if serve == nil && r.Host == "shop.example" {
				pages(w, r)
				return
			}
			g.mu.Lock()
			g.requests = append(g.requests, strings.TrimSpace(r.Host+r.URL.Path+" "+r.Header.Get("If-None-Match")))
			if r.Header.Get("X-Api-Key") != "" {
				g.secrets++
			}
			g.mu.Unlock()
			if serve == nil {
				http.NotFound(w, r)
				return
			}
			serve(w, r)
		}))
	}
	return g
}

// file is an answer with an ETag.
func file(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write(body)
	}
}

func (g *gallery) name(urls ...string) {
	g.lay(len(urls), func(i int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "<p id=id>K%02d<ul>", i)
		for at := range strings.FieldsSeq(urls[i]) {
			if swatch, is := strings.CutPrefix(at, "swatch:"); is {
				fmt.Fprintf(&b, "<li data-swatch=%q>", swatch)
				continue
			}
			fmt.Fprintf(&b, "<img src=%q>", at)
		}
		return b.String()
	})
}

func (g *gallery) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.requests)
	g.requests = nil
	slices.Sort(all)
	return all
}

// stored are the keys of the images in the store.
func (g *gallery) stored() (keys []string) {
	g.t.Helper()
	for o, err := range g.store.List(context.Background(), Images.Root()) {
		require.NoError(g.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func keyOf(b []byte, extension string) string {
	sum := sha256.Sum256(b)
	s := hex.EncodeToString(sum[:])
	return "images/sha256/" + s[:2] + "/" + s + "." + extension
}

func (g *gallery) count(total map[string]int64) [4]int64 {
	return [4]int64{total["images_fetched"], total["images_unchanged"], total["images_failed"], total["images_left_out"]}
}

func TestImages(t *testing.T) {
	eachDB(t, func(t *testing.T, dsn string) {
		g := newGallery(t, dsn)
		black, photo := drawn(t, 30, asPNG), drawn(t, 20, asJPEG)
		g.files["shop.example/own.jpg"] = file("image/jpeg", photo)
		g.files["cdn.test/a.png"] = file("image/png", black)
		g.files["cdn.test/b.png"] = file("application/octet-stream", black)
		g.files["cdn.test/robots.txt"] = file("text/plain", []byte("User-agent: *\nDisallow: /secret\n"))
		g.files["far.test/robots.txt"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		g.files["shop.example/moved"] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://cdn.test/a.png", http.StatusFound)
		}
		g.files["shop.example/to-secret"] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://cdn.test/secret/a.png", http.StatusFound)
		}
		g.files["cdn.test/x.svg"] = file("image/svg+xml", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"))
		g.files["cdn.test/liar.png"] = file("image/png", []byte("<html>no image"))
		g.files["cdn.test/page.png"] = file("text/html", black)
		g.files["cdn.test/large.png"] = file("image/png", append(slices.Clone(black), make([]byte, images.MaxBytes)...))
		tries := 0
		g.files["cdn.test/busy.png"] = func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries <= maxTries {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			file("image/png", black)(w, r)
		}
		g.name("/own.jpg https://cdn.test/a.png#big /own.jpg", "https://cdn.test/a.png swatch:https://cdn.test/b.png", "/moved /to-secret https://cdn.test/secret/b.png",
			"https://cdn.test/x.svg https://cdn.test/liar.png https://cdn.test/page.png https://cdn.test/large.png https://cdn.test/none.png http://10.0.0.1/a.png",
			"https://cdn.test/busy.png https://far.test/a.png", "data:image/png;base64,AAAA", "https://cdn.test/busy.png")
		total := g.run()
		assert.Equal(t, map[string]int64{"products_saved": 7, "failed_tasks": 0}, counted(total, "products_saved", "failed_tasks"), "each product is saved, whatever its images")
		assert.Equal(t, [4]int64{4, 0, 10, 0}, g.count(total.Counts))
		asked := g.asked()
		assert.Equal(t, []string{"cdn.test/a.png", "cdn.test/a.png", "cdn.test/b.png", "cdn.test/busy.png", "cdn.test/busy.png", "cdn.test/busy.png", "cdn.test/large.png", "cdn.test/liar.png",
			"cdn.test/none.png", "cdn.test/page.png", "cdn.test/robots.txt", "cdn.test/x.svg", "far.test/robots.txt", "far.test/robots.txt", "far.test/robots.txt", "shop.example/moved",
			"shop.example/own.jpg", "shop.example/to-secret"}, asked, "each once, with its host's robots.txt; a.png also through the redirect")
		assert.Zero(t, g.secrets, "no host gets the site's own headers with an image")
		want := []string{keyOf(black, "png"), keyOf(photo, "jpg")}
		slices.Sort(want)
		assert.Equal(t, want, g.stored(), "one object for equal bytes")
		got, err := store.ReadAll(t.Context(), g.store, keyOf(photo, "jpg"), images.MaxBytes)
		require.NoError(t, err)
		assert.Equal(t, photo, got)
		sum := strings.TrimSuffix(keyOf(photo, ""), ".")
		assert.Equal(t, fmt.Sprintf("%s image/jpeg %d 20x10 |", sum[len(sum)-64:], len(photo)), g.one(`SELECT hash || ' ' || type || ' ' || bytes || ' ' || width || 'x' || height || ' |' || failure FROM catalog_images WHERE url = 'https://shop.example/own.jpg'`))
		for at, failure := range map[string]string{"https://cdn.test/x.svg": "not_an_image: it has the type \"image/svg+xml\"", "https://cdn.test/liar.png": "not_an_image: it is no JPEG", "https://cdn.test/page.png": "not_an_image: it has the type \"text/html\"",
			"https://cdn.test/large.png": "too_large: ", "https://cdn.test/none.png": "http_404: ", "http://10.0.0.1/a.png": "robots_unreachable: robots.txt cannot be fetched: fetching http://10.0.0.1/robots.txt: blocked", "https://cdn.test/secret/b.png": "robots_disallowed: robots.txt, line 2",
			"https://shop.example/to-secret": "blocked: ", "https://cdn.test/busy.png": "http_503: ", "https://far.test/a.png": "robots_unreachable: "} {
			assert.True(t, strings.HasPrefix(g.one(`SELECT failure FROM catalog_images WHERE url = $1`, at), failure), "%s: %s", at, g.one(`SELECT failure FROM catalog_images WHERE url = $1`, at))
		}
		assert.Equal(t, "pictures 1", g.one(`SELECT field || ' ' || position FROM catalog_product_images WHERE product_key = 'K01' AND url = 'https://cdn.test/a.png'`))
		assert.Equal(t, "variants 2", g.one(`SELECT field || ' ' || position FROM catalog_product_images WHERE product_key = 'K01' AND url = 'https://cdn.test/b.png'`))

		assert.Equal(t, [4]int64{1, 0, 1, 0}, g.count(g.run().Counts), "only what may pass is asked for again")
		assert.Equal(t, []string{"cdn.test/busy.png", "cdn.test/robots.txt", "far.test/robots.txt", "far.test/robots.txt", "far.test/robots.txt"}, g.asked())

		_, err = g.db.ExecContext(t.Context(), `UPDATE catalog_images SET again_at = $1 WHERE hash <> ''`, 1) // a week later
		require.NoError(t, err)
		g.name("/own.jpg", "swatch:https://cdn.test/b.png")
		g.files["cdn.test/b.png"] = file("image/jpeg", photo) // other bytes, which the ETag does not say
		assert.Equal(t, [4]int64{0, 2, 0, 0}, g.count(g.run().Counts))
		assert.Equal(t, []string{`cdn.test/b.png "1"`, "cdn.test/robots.txt", `shop.example/own.jpg "1"`}, g.asked(), "conditionally")
		gone := func() string {
			return g.one(`SELECT count(*) || ' ' || min(gone_at) FROM catalog_product_images WHERE NOT ` + g.db.Never("gone_at") + ` AND gone_at >= first_seen AND product_key IN ('K00', 'K01')`)[:2]
		}
		assert.Equal(t, "2 ", gone(), "a.png of both products")
		g.name("/own.jpg https://cdn.test/a.png", "swatch:https://cdn.test/b.png")
		g.run()
		assert.Equal(t, "1 ", gone(), "one of them is back")
	})
}

// A product's images are bounded.
func TestManyImages(t *testing.T) {
	g := newGallery(t, "")
	var all strings.Builder
	for n := range images.Most + 3 {
		fmt.Fprintf(&all, "/%d.png ", n)
		g.files[fmt.Sprintf("shop.example/%d.png", n)] = file("image/png", drawn(t, n+1, asPNG))
	}
	g.name(all.String())
	assert.Equal(t, [4]int64{images.Most, 0, 0, 3}, g.count(g.run().Counts))
	assert.Len(t, g.asked(), images.Most)
}

// A crawl that is killed or stopped while it fetches images is resumed: no image that was
// received is fetched again, and no product is saved without its images.
func TestImagesAreResumed(t *testing.T) {
	eachDBs(t, func(t *testing.T, dsn func(testing.TB) string) {
		for name, end := range map[string]func(v *visit, kill func()){"killed": func(_ *visit, kill func()) { kill() }, "stopped": func(v *visit, _ func()) { v.control.stop(nil) }} {
			t.Run(name, func(t *testing.T) {
				g := newGallery(t, dsn(t))
				g.cfg.DetailFetchers, g.cfg.DetailParsers = 1, 1 // the products in their order
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				v := g.visitOf(g.config(), g.cfg.Sites[0])
				var names [6]string
				for n := range 12 {
					names[n/2] += fmt.Sprintf("/%d.png ", n)
					serve := file("image/png", drawn(t, n+1, asPNG))
					g.files[fmt.Sprintf("shop.example/%d.png", n)] = func(w http.ResponseWriter, r *http.Request) {
						if n == 5 {
							end(v, kill)
						}
						serve(w, r)
					}
				}
				g.name(names[:]...)
				if err := v.run(ctx); err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				first := g.asked()
				assert.Len(t, first, 6, "nothing is asked for after the stop")
				assert.LessOrEqual(t, len(g.products("shop")), 2)
				total := g.run()
				second := g.asked()
				assert.LessOrEqual(t, len(second), 7)
				for _, at := range second {
					if at != "shop.example/5.png" {
						assert.NotContains(t, first, at)
					}
				}
				assert.Len(t, g.products("shop"), 6)
				assert.Len(t, g.stored(), 12)
				assert.Zero(t, total.Counts["failed_tasks"])
				assert.Equal(t, "12", g.one(`SELECT count(*) FROM catalog_product_images`))
				assert.Zero(t, g.left())
			})
		}
	})
}

// resumer ends a pause as soon as somebody waits for its end.
type resumer struct {
	*hand
	resume func()
}

func (r *resumer) Proceed(ctx context.Context) bool {
	r.mu.Lock()
	resume := r.resume
	r.resume = nil
	r.mu.Unlock()
	if resume != nil {
		resume()
	}
	return r.hand.Proceed(ctx)
}

// A run that is paused between two images asks for the second one after the pause.
func TestNoImagesWhilePaused(t *testing.T) {
	g := newGallery(t, "")
	g.name("/a.png /b.png")
	v := g.visitOf(g.config(), g.cfg.Sites[0])
	h := &resumer{hand: newHand()}
	v.control = newSiteControl(h)
	v.state.Control, v.client.Control = v.control, v.control
	paused := true
	g.files["shop.example/a.png"] = func(w http.ResponseWriter, r *http.Request) {
		resume := h.pause()
		h.mu.Lock()
		h.resume = func() { paused = false; resume() }
		h.mu.Unlock()
		file("image/png", drawn(t, 1, asPNG))(w, r)
	}
	g.files["shop.example/b.png"] = func(w http.ResponseWriter, r *http.Request) {
		assert.False(t, paused)
		file("image/png", drawn(t, 2, asPNG))(w, r)
	}
	require.NoError(t, v.run(t.Context()))
	assert.Len(t, g.stored(), 2)
}

// A site without a field of images says so.
func TestSiteWithoutImages(t *testing.T) {
	g := newGallery(t, "")
	var err error
	g.cfg.Sites[0], err = ParseSite([]byte(shopFile))
	require.NoError(t, err)
	assert.Nil(t, g.visitOf(g.config(), g.cfg.Sites[0]).imageFetcher())
}
