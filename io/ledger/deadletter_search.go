package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// DeadLetterQuery chooses dead letters. Empty fields choose all.
type DeadLetterQuery struct {
	Job, Kind string
	RunID     string    // with failures in that run
	From, To  time.Time // of the last failure; To is exclusive
	Since     time.Time // written since then
	Text      string    // in the id, the stage, the input, the error or the note; in lower case
	After     string    // Next of the page before
	Limit     int
	State     string // OpenLetters or DismissedLetters
}

// The states of dead letters.
const (
	OpenLetters      = "open"
	DismissedLetters = "dismissed"
)

// DeadLetterPage is a part of the dead letters that a query chooses.
type DeadLetterPage struct {
	DeadLetters []DeadLetter // the last written first
	Searched    int          // how many were read
	Unreadable  []error      // each names an object that is no dead letter
	Next        string       // where the next page begins; "" when there is none
}

const (
	// maxSearched is how many dead letters one page reads at most.
	maxSearched = 2000
	// searchReaders read dead letters at the same time.
	searchReaders = 32
	// maxWriteDelay is how much earlier than its object a failure can be, by the clocks
	// of the writer and of the store.
	maxWriteDelay = time.Hour
)

// SearchDeadLetters returns one page of the dead letters that a query chooses, those
// written last first. A listing says when each was written; the others of the query's
// conditions need the objects. So a page lists all and reads at most maxSearched, and
// may have fewer than Limit, even none, although Next says that there can be more. It
// has at most twice as many keys in memory.
func SearchDeadLetters(ctx context.Context, s store.Store, q DeadLetterQuery) (DeadLetterPage, error) {
	var page DeadLetterPage
	after, err := parsePlace(q.After)
	if err != nil {
		return page, err
	}
	var found []place
	oldest := q.From
	if q.Since.After(oldest) {
		oldest = q.Since
	}
	if !oldest.IsZero() {
		oldest = oldest.Add(-maxWriteDelay)
	}
	more := false // than are in found
	for o, err := range deadLetterObjects(ctx, s, q.Job) {
		if err != nil {
			return page, err
		}
		at := place{o.ModTime.UnixNano(), o.Key}
		if after.key != "" && !after.before(at) || o.ModTime.Before(oldest) {
			continue
		}
		if found = append(found, at); len(found) == 2*maxSearched {
			slices.SortFunc(found, place.compare)
			found, more = found[:maxSearched], true
		}
	}
	slices.SortFunc(found, place.compare)
	if len(found) > maxSearched {
		found, more = found[:maxSearched], true
	}
	for len(found) > 0 {
		if len(page.DeadLetters) >= q.Limit {
			return page, nil
		}
		some := found[:min(searchReaders, len(found))]
		keys := make([]string, len(some))
		for i, p := range some {
			keys[i] = p.key
		}
		read, errs := readDeadLetters(ctx, s, keys)
		if err := ctx.Err(); err != nil {
			return page, err
		}
		for i, d := range read {
			if len(page.DeadLetters) == q.Limit {
				return page, nil // Next is the place before this one
			}
			page.Searched++
			page.Next = some[i].String()
			switch {
			case errors.Is(errs[i], store.ErrNotExist): // removed since the listing
			case errs[i] != nil:
				page.Unreadable = append(page.Unreadable, errs[i])
			case q.chooses(d):
				page.DeadLetters = append(page.DeadLetters, d)
			}
		}
		found = found[len(some):]
	}
	if !more {
		page.Next = ""
	}
	return page, nil
}

// AllDeadLetters yields the dead letters that a query chooses, in key order; it does not
// look at After and Limit. For an unreadable one it yields an error that names it, and
// continues.
func AllDeadLetters(ctx context.Context, s store.Store, q DeadLetterQuery) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		var keys []string
		send := func() bool {
			read, errs := readDeadLetters(ctx, s, keys)
			keys = keys[:0]
			for i, d := range read {
				if errors.Is(errs[i], store.ErrNotExist) || errs[i] == nil && !q.chooses(d) {
					continue // removed since the listing, or not chosen
				}
				if !yield(d, errs[i]) {
					return false
				}
			}
			return true
		}
		for o, err := range deadLetterObjects(ctx, s, q.Job) {
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			if keys = append(keys, o.Key); len(keys) == searchReaders && !send() {
				return
			}
		}
		send()
	}
}

// NamedDeadLetters reads the dead letters of a job that have these ids. It leaves out
// ids that no dead letter has.
func NamedDeadLetters(ctx context.Context, s store.Store, job string, ids []string) ([]DeadLetter, error) {
	var all []DeadLetter
	for some := range slices.Chunk(ids, searchReaders) {
		keys := make([]string, len(some))
		for i, id := range some {
			key, err := deadLetterKey(job, id)
			if err != nil {
				return nil, fmt.Errorf("reading a dead letter: %w", err)
			}
			keys[i] = key
		}
		read, errs := readDeadLetters(ctx, s, keys)
		for i, d := range read {
			switch {
			case errors.Is(errs[i], store.ErrNotExist):
			case errs[i] != nil:
				return nil, errs[i]
			default:
				all = append(all, d)
			}
		}
	}
	return all, nil
}

// readDeadLetters reads dead letters at the same time; its callers give it at most
// searchReaders keys. errs has the errors of single ones.
func readDeadLetters(ctx context.Context, s store.Store, keys []string) (read []DeadLetter, errs []error) {
	read, errs = make([]DeadLetter, len(keys)), make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { read[i], errs[i] = load[DeadLetter](ctx, s, key) })
	}
	all.Wait()
	return read, errs
}

func (q DeadLetterQuery) chooses(d DeadLetter) bool {
	switch {
	case q.Kind != "" && d.Kind != q.Kind,
		q.RunID != "" && !d.FailedIn(q.RunID),
		q.State == OpenLetters && !d.Open(), q.State == DismissedLetters && d.Open(),
		d.LastAt.Before(q.From), !q.To.IsZero() && !d.LastAt.Before(q.To):
		return false
	}
	return q.Text == "" || strings.Contains(d.text(), q.Text)
}

// text is what a search finds a dead letter by, in lower case.
func (d DeadLetter) text() string {
	in := d.Input
	words := []string{d.ID(), d.Stage, in.File, in.URL, in.Key, in.DomainID, in.Source, d.Error}
	if d.Dismissed != nil {
		words = append(words, d.Dismissed.By, d.Dismissed.Note)
	}
	return strings.ToLower(strings.Join(words, "\n"))
}

// place is where a dead letter is in the order of a search: by the time of its last
// write, the newest first, then by its key.
type place struct {
	at  int64 // nanoseconds
	key string
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.at, p.at), cmp.Compare(p.key, q.key))
}
func (p place) before(q place) bool { return p.compare(q) < 0 }

// String is the place in a URL: time.job/id.
func (p place) String() string {
	return fmt.Sprintf("%d.%s", p.at, strings.TrimSuffix(strings.TrimPrefix(p.key, deadLettersPrefix), ".json"))
}

// ErrPlace is the error for an After that no page had as Next.
var ErrPlace = errors.New("not a place in a list of dead letters")

func parsePlace(text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	at, name, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || name == "" {
		return place{}, ErrPlace
	}
	return place{n, deadLettersPrefix + name + ".json"}, nil // it is compared, never read
}
