package tree

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// pages are all HTML pages of the shared cases.
func pages(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(cases.Path(t, "."), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".html") {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(path, ".gz") {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(z)
			}
		}
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each shared page has the tree that html.Parse makes of it, and most of them are made here.
func TestPages(t *testing.T) {
	odd := 0
	set := pages(t)
	for path, page := range set {
		if got := quick(page); got == nil {
			odd++
		} else if d := difference(got, page); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	t.Logf("%d pages, %d of them odd", len(set), odd)
	if odd*8 > len(set) {
		t.Error("they are too many to be read twice")
	}
}

func TestTooDeep(t *testing.T) {
	_, err := Parse(strings.Repeat("<div>", 600))
	if err == nil {
		t.Error("600 elements in each other have a tree")
	}
}

// difference is the first difference from the tree of html.Parse.
func difference(got *html.Node, page string) string {
	want, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return err.Error()
	}
	return compare(got, want)
}

func compare(a, b *html.Node) string {
	for a != nil && b != nil {
		if a.Type != b.Type || a.Data != b.Data || a.DataAtom != b.DataAtom || a.Namespace != b.Namespace || len(a.Attr) != len(b.Attr) {
			return "nodes: got " + show(a) + " want " + show(b)
		}
		for i := range a.Attr {
			if a.Attr[i] != b.Attr[i] {
				return "attributes: got " + show(a) + " want " + show(b)
			}
		}
		if d := compare(a.FirstChild, b.FirstChild); d != "" {
			return d
		}
		if a.LastChild != nil && (a.LastChild.NextSibling != nil || a.LastChild.Parent != a) {
			return "links of " + show(a)
		}
		if a.NextSibling != nil && a.NextSibling.PrevSibling != a {
			return "links before " + show(a)
		}
		a, b = a.NextSibling, b.NextSibling
	}
	if (a == nil) != (b == nil) {
		return "siblings: got " + show(a) + " want " + show(b)
	}
	return ""
}

func show(n *html.Node) string {
	if n == nil {
		return "nothing"
	}
	var b strings.Builder
	_ = html.Render(&b, n)
	s := b.String()
	return n.Data + ": " + s[:min(len(s), 200)]
}
