package pdf

import (
	"strings"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
)

// entry is an entry of a document's outline.
type entry struct {
	title string
	depth int // from 0
	page  int // from 0
}

const (
	maxOutline      = 5_000 // entries
	maxOutlineDepth = 20
)

// outline reads a document's outline. One that is larger, or a circle, is as if there
// were none: GetBookmarks follows all of it.
func (d *document) outline() (out []entry) {
	if left := maxOutline; !d.bounded(nil, 0, &left) {
		return nil
	}
	tree, err := d.in.GetBookmarks(&requests.GetBookmarks{Document: d.ref})
	if err != nil { // it is damaged; the text is read all the same
		return nil
	}
	var walk func([]responses.GetBookmarksBookmark, int)
	walk = func(of []responses.GetBookmarksBookmark, depth int) {
		for _, b := range of {
			title := strings.TrimSpace(strings.Trim(b.Title, "\x00"))
			if b.DestInfo != nil && b.DestInfo.PageIndex >= 0 && title != "" {
				out = append(out, entry{title, depth, b.DestInfo.PageIndex})
			}
			walk(b.Children, depth+1)
		}
	}
	walk(tree.Bookmarks, 0)
	return out
}

// bounded reports whether what is below an entry ends, within the limits.
func (d *document) bounded(above *references.FPDF_BOOKMARK, depth int, left *int) bool {
	first, err := d.in.FPDFBookmark_GetFirstChild(&requests.FPDFBookmark_GetFirstChild{Document: d.ref, Bookmark: above})
	if err != nil || depth > maxOutlineDepth {
		return false
	}
	for at := first.Bookmark; at != nil; {
		if *left--; *left < 0 || !d.bounded(at, depth+1, left) {
			return false
		}
		next, err := d.in.FPDFBookmark_GetNextSibling(&requests.FPDFBookmark_GetNextSibling{Document: d.ref, Bookmark: *at})
		if err != nil {
			return false
		}
		at = next.Bookmark
	}
	return true
}
