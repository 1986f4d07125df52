package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const (
	// minBreak pages in a row without a field are a layout break if no page
	// of the crawl had it, or if their products had it before.
	minBreak = 3
	// minAnyBreak pages in a row without a field are always a layout break.
	minAnyBreak = 10
	// minMoved pages in a row that do not exist mean that the site has moved its pages.
	minMoved = 20
	// minCollisions pages with the key of another page, if they are at least a third of
	// all pages, mean that the key field does not distinguish products.
	minCollisions = 10
	// minNeverMatched pages without a field, and none with it, raise an alert.
	minNeverMatched = 3
)

// What is observed on a page in addition to its fields.
const (
	aspectKey  = "\x00key"
	aspectPage = "\x00page" // the page exists
)

// layout detects that a site's pages can no longer be read as its file says.
type layout struct {
	mu       sync.Mutex
	aspects  map[string]aspect
	saved    int
	collided int
}

// aspect has the figures of one field over the pages of a crawl.
type aspect struct {
	pages int // number of pages that were read
	had   int // how many of them had it
	row   int // pages in a row that lack it but should have it
	drops int // how many pages of the row had it in an earlier crawl
}

// observation says whether one page has one field.
type observation struct {
	aspect   string
	has      bool
	expected bool // the page should have it
	drop     bool // the product had it before
	url, why string
}

// observe adds observations. The error is a layout break.
func (l *layout) observe(all ...observation) error {
	seen, err := l.judge(all)
	l.commit(seen)
	return err
}

// judge returns the aspects with these observations added, for commit. The error is a
// layout break, and then nothing of these pages may be saved.
func (l *layout) judge(all []observation) (seen map[string]aspect, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen = map[string]aspect{}
	for _, s := range all {
		a, ok := seen[s.aspect]
		if !ok {
			a = l.aspects[s.aspect]
		}
		a.pages++
		switch {
		case s.has:
			a.had++
			a.row, a.drops = 0, 0
		case s.expected || s.drop:
			a.row++
			if s.drop {
				a.drops++
			}
		}
		seen[s.aspect] = a
		any, first := minAnyBreak, minBreak
		if s.aspect == aspectPage { // removed products may be at the head of a list
			any, first = minMoved, minMoved
		}
		if a.row >= any || a.row >= first && (a.had == 0 || a.drops >= minBreak) {
			return nil, broken(s, a)
		}
	}
	return seen, nil
}

// commit stores the aspects that judge returned. Parallel workers may overwrite an
// observation of each other, which detects a break one page later.
func (l *layout) commit(seen map[string]aspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aspects == nil {
		l.aspects = map[string]aspect{}
	}
	maps.Copy(l.aspects, seen)
}

// whereMoved says what to do about pages that do not exist.
const whereMoved = "check whether the site has moved them, correct list.product_link in its file, and start the same command again"

func broken(s observation, a aspect) error {
	f := &failure{kind: "layout_break", final: true}
	const nothing = "nothing was overwritten"
	switch s.aspect {
	case aspectKey:
		f.err = fmt.Errorf("%d product pages in a row do not have the key (the last is %s: %s); %s; correct the key's field in the site's file and start the same command again", a.row, s.url, s.why, nothing)
	case aspectPage:
		f.err = fmt.Errorf("%d product pages in a row do not exist (the last is %s: %s); %s", a.row, s.url, s.why, whereMoved)
	default:
		f.err = fmt.Errorf("%d product pages in a row lack a field that they should have (the last is %s: %s); %s; correct fields.%s in the site's file, or make it optional, or volatile if products lose it, and start the same command again",
			a.row, s.url, s.why, nothing, s.aspect)
	}
	return f
}

// keys adds how many pages were saved, and how many were not saved because of a key
// collision.
func (l *layout) keys(saved, collided int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved, l.collided = l.saved+saved, l.collided+collided
	if collided == 0 || l.collided < minCollisions || 2*l.collided < l.saved {
		return nil
	}
	return &failure{kind: "key_collisions", final: true, err: fmt.Errorf(
		"%d of %d product pages have the key of another page with other values, so the key field does not distinguish products; choose another in the site's file and start the same command again", l.collided, l.collided+l.saved)}
}

// savedPages returns how many pages were saved.
func (l *layout) savedPages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved
}

// never returns the fields that no page of the crawl had.
func (l *layout) never() (fields []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, a := range l.aspects {
		if name != aspectKey && name != aspectPage && a.had == 0 && a.pages >= minNeverMatched {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}
