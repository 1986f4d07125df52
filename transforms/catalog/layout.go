package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const (
	// breakAtOnce pages in a row without a field are a layout break where no page
	// of the crawl had it, or where their products had it before.
	breakAtOnce = 3
	// breakAnyway pages in a row without a field are one in any case.
	breakAnyway = 10
	// collisionsHeld pages with the key of another page, and no fewer than one in
	// three, say that the key field does not tell products apart.
	collisionsHeld = 10
	// neverMatched is how many pages without a field are worth a word.
	neverMatched = 3
)

// What is watched of a page besides its fields.
const (
	aspectKey  = "\x00key"
	aspectPage = "\x00page" // it is there
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
	lost  int // of the row: their products had it before
}

// sight is what one page says of one field.
type sight struct {
	aspect   string
	has      bool
	expected bool // it should have it
	lost     bool // its product had it before
	url, why string
}

// note takes pages' sights. The error is a layout break.
func (l *layout) note(sights []sight) error {
	seen, err := l.look(sights)
	l.take(seen)
	return err
}

// look gives what the aspects come to with pages' sights, for take. The error is
// a layout break, and then nothing of these pages is to be saved.
func (l *layout) look(sights []sight) (seen map[string]aspect, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen = map[string]aspect{}
	for _, s := range sights {
		a, ok := seen[s.aspect]
		if !ok {
			a = l.aspects[s.aspect]
		}
		a.pages++
		switch {
		case s.has:
			a.had++
			a.row, a.lost = 0, 0
		case s.expected || s.lost:
			a.row++
			if s.lost {
				a.lost++
			}
		}
		seen[s.aspect] = a
		if a.row >= breakAnyway || a.row >= breakAtOnce && (a.had == 0 || a.lost >= breakAtOnce) {
			return nil, broken(s, a)
		}
	}
	return seen, nil
}

// take notes what look gave. Workers side by side may take a page's from each
// other, which moves a break by a page.
func (l *layout) take(seen map[string]aspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aspects == nil {
		l.aspects = map[string]aspect{}
	}
	maps.Copy(l.aspects, seen)
}

func broken(s sight, a aspect) error {
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

// keys takes how many pages were saved, and how many could not be as their key
// is that of another page.
func (l *layout) keys(saved, collided int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved, l.collided = l.saved+saved, l.collided+collided
	if collided == 0 || l.collided < collisionsHeld || 2*l.collided < l.saved {
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
		if name != aspectKey && name != aspectPage && a.had == 0 && a.pages >= neverMatched {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}
