package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const (
	// minBreak pages in a row without a field are a layout break where no page
	// of the crawl had it, or where their products had it before.
	minBreak = 3
	// minAnyBreak pages in a row without a field are one in any case.
	minAnyBreak = 10
	// minCollisions pages with the key of another page, and no fewer than one in
	// three, say that the key field does not tell products apart.
	minCollisions = 10
	// minNeverMatched pages without a field, and none with it, are worth an alert.
	minNeverMatched = 3
)

// What is observed of a page besides its fields.
const (
	aspectKey  = "\x00key"
	aspectPage = "\x00page" // it exists
)

// layout notices that a site's pages are no longer read as its file says.
type layout struct {
	mu       sync.Mutex
	aspects  map[string]aspect
	saved    int
	collided int
}

// aspect is one field over the pages of a crawl.
type aspect struct {
	pages int // that were read
	had   int // of them
	row   int // pages in a row that lack it though they should have it
	drops int // of the row: their products had it before
}

// observation is what one page says of one field.
type observation struct {
	aspect   string
	has      bool
	expected bool // it should have it
	drop     bool // its product had it before
	url, why string
}

// observe adds what pages say. The error is a layout break.
func (l *layout) observe(all ...observation) error {
	seen, err := l.judge(all)
	l.commit(seen)
	return err
}

// judge gives what the aspects come to with what pages say, for commit. The error
// is a layout break, and then nothing of these pages is to be saved.
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
		if a.row >= minAnyBreak || a.row >= minBreak && (a.had == 0 || a.drops >= minBreak) {
			return nil, broken(s, a)
		}
	}
	return seen, nil
}

// commit keeps what judge gave. Parallel workers may overwrite a page's
// observation of each other, which moves a break by a page.
func (l *layout) commit(seen map[string]aspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aspects == nil {
		l.aspects = map[string]aspect{}
	}
	maps.Copy(l.aspects, seen)
}

func broken(s observation, a aspect) error {
	f := &failure{kind: "layout_break", final: true}
	const nothing = "nothing was saved over"
	switch s.aspect {
	case aspectKey:
		f.err = fmt.Errorf("%d product pages in a row do not give the key (the last is %s: %s); %s; mend the key's field in the site's file and start the same command again", a.row, s.url, s.why, nothing)
	case aspectPage:
		f.err = fmt.Errorf("%d product pages in a row are not there (the last is %s: %s); see whether the site has moved them, mend list.product_link in its file, and start the same command again", a.row, s.url, s.why)
	default:
		f.err = fmt.Errorf("%d product pages in a row lack a field that they should have (the last is %s: %s); %s; mend fields.%s in the site's file, or make it optional, or volatile where products lose it, and start the same command again",
			a.row, s.url, s.why, nothing, s.aspect)
	}
	return f
}

// keys adds how many pages were saved, and how many could not be as their key
// is that of another page.
func (l *layout) keys(saved, collided int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved, l.collided = l.saved+saved, l.collided+collided
	if collided == 0 || l.collided < minCollisions || 2*l.collided < l.saved {
		return nil
	}
	return &failure{kind: "key_collisions", final: true, err: fmt.Errorf(
		"%d of %d product pages have the key of another page with other values, so the key field does not tell products apart; choose another in the site's file and start the same command again", l.collided, l.collided+l.saved)}
}

// never gives the fields that no page of the crawl had.
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
