//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// dot is a GIF of one pixel; a number after its end makes it another object.
func dot(n int) string {
	return "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;" + fmt.Sprint(n)
}

// pictures serves images, and logs the requests for them; at is called before each answer.
func (w *world) pictures(host string, files map[string]string, at func(path string)) (log *[]string) {
	log = new([]string)
	w.sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		asked := strings.TrimSpace(r.URL.Path + " " + r.Header.Get("If-None-Match"))
		w.mu.Lock()
		*log = append(*log, asked)
		w.mu.Unlock()
		at(r.URL.Path)
		switch {
		case !ok:
			http.NotFound(rw, r)
		case body == "busy":
			http.Error(rw, body, http.StatusServiceUnavailable)
		case r.Header.Get("If-None-Match") != "":
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("ETag", `"1"`)
			_, _ = rw.Write([]byte(body))
		}
	}))
	return log
}

func withImages(e *engine.Engine) { e.Images = true }

// keys are the kept images.
func (w *world) keys() (keys []string) {
	for o, err := range w.store.List(w.t.Context(), raw.Images.Root()) {
		require.NoError(w.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func naming(n int, version string, addresses ...string) string {
	head := ""
	for _, at := range addresses {
		head += `<meta property="og:image" content="` + at + `">`
	}
	return strings.ReplaceAll(tale(head, n), "decided about", "decided "+version+" about")
}

// Images follow the articles, once whatever the number of their addresses and of the articles that name them, as the
// robots.txt of their hosts lets them; they go with their articles.
func TestImages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		pages := map[string]string{"/map.xml": locs, "/a/1": naming(1, "first", "https://cdn.example/1.gif", "https://cdn.example/logo.gif", "https://cdn.example/no/1.gif"),
			"/a/2": naming(2, "first", "https://cdn.example/same.gif", "https://cdn.example/logo.gif", "https://cdn.example/none.gif"),
			"/a/3": naming(3, "first", "https://cdn.example/page.html", "https://cdn.example/busy.gif")}
		w.serve("daily.example", pages)
		files := map[string]string{"/1.gif": dot(1), "/same.gif": dot(1), "/logo.gif": dot(2), "/page.html": "<p>no image", "/busy.gif": "busy", "/robots.txt": "User-agent: *\nDisallow: /no/\n"}
		log := w.pictures("cdn.example", files, func(string) {})
		took := func() []string {
			all := slices.DeleteFunc(slices.Sorted(slices.Values(*log)), func(at string) bool { return at == "/robots.txt" })
			*log = nil
			return slices.Compact(all)
		}
		p := declared(t, ofA)
		w.run(p)
		assert.Empty(t, took(), "only with --images")
		r := w.run(p, withImages)
		assert.Equal(t, map[string]int64{"images_fetched": 3, "images_failed": 4}, r.Images)
		assert.Equal(t, []string{"/1.gif", "/busy.gif", "/logo.gif", "/none.gif", "/page.html", "/same.gif"}, took(), "also those of articles that were stored before")
		assert.Len(t, w.keys(), 2)

		w.run(p, withImages)
		assert.Empty(t, took(), "too early")
		w.now = w.now.Add(2 * time.Hour)
		files["/busy.gif"] = dot(3)
		assert.Equal(t, map[string]int64{"images_fetched": 1}, w.run(p, withImages).Images)
		assert.Equal(t, []string{"/busy.gif"}, took(), "what may pass")

		w.now = w.now.Add(8 * 24 * time.Hour)
		pages["/a/1"] = naming(1, "second", "https://cdn.example/1.gif")
		pages["/map.xml"] = strings.ReplaceAll(locs, "/a/1</loc>", "/a/1</loc><lastmod>"+w.now.UTC().Format(time.RFC3339)+"</lastmod>")
		r = w.run(p, withImages)
		assert.EqualValues(t, 1, r.Changed)
		assert.EqualValues(t, 1, r.Images["images_unchanged"])
		assert.Contains(t, took(), `/1.gif "1"`, "conditionally, for the article that changed")

		var rows int
		delete(pages, "/a/2")
		_, err := w.db.ExecContext(t.Context(), `DELETE FROM news_articles WHERE url LIKE '%/a/2'`)
		require.NoError(t, err)
		require.NoError(t, raw.SweepImages(t.Context(), w.db, w.store))
		assert.Len(t, w.keys(), 2, "the logo's article is gone; the object of 1.gif and same.gif has another name left")
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM news_images WHERE url LIKE '%/logo.gif' OR url LIKE '%/same.gif'`).Scan(&rows))
		assert.Zero(t, rows)
		require.NoError(t, raw.Images.Audit(t.Context(), w.store, w.db, func(what, key, _ string) { t.Error(what, key) }))

		_, err = raw.Purge(t.Context(), w.db, w.now.Add(40*24*time.Hour))
		require.NoError(t, err)
		require.NoError(t, raw.SweepImages(t.Context(), w.db, w.store))
		assert.Empty(t, w.keys())
	})
}

// A run that is killed while an image is on its way leaves the articles stored; the next one requests that image again,
// and none that was received. To remove the publisher removes its images.
func TestImagesAfterAKill(t *testing.T) {
	w := once(t)
	var names []string
	files := map[string]string{}
	for n := range 6 {
		files[fmt.Sprintf("/%d.gif", n)] = dot(n)
		names = append(names, fmt.Sprintf("https://cdn.example/%d.gif", n))
	}
	w.serve("daily.example", map[string]string{"/map.xml": locs, "/a/1": naming(1, "", names[:2]...), "/a/2": naming(2, "", names[2:4]...), "/a/3": naming(3, "", names[4:]...)})
	ctx, kill := context.WithCancel(t.Context())
	served := 0
	log := w.pictures("cdn.example", files, func(path string) {
		if served++; path != "/robots.txt" && served == 4 {
			kill()
		}
	})
	p := declared(t, ofA)
	e := w.engine()
	e.Images = true
	_, err := e.Run(ctx, p)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 3, w.count("1 = 1"), "articles do not wait for images")
	first := *log
	assert.Len(t, first, 4)
	assert.Len(t, w.keys(), 2)
	*log = nil
	w.run(p, withImages)
	assert.Len(t, w.keys(), 6)
	for _, at := range *log {
		if at != first[3] && at != "/robots.txt" {
			assert.NotContains(t, first, at)
		}
	}
	removed, _, err := raw.Removal("news").Remove(t.Context(), removal.Source{DB: w.db, Store: w.store, Name: "daily-example"}, "", w.now)
	require.NoError(t, err)
	assert.EqualValues(t, 6, removed.Objects)
	assert.EqualValues(t, 6, removed.Rows["news_images"])
	assert.Empty(t, w.keys())
}
