// Package removal records requests to remove what was kept of a source, until when that
// must be done, what was tried, and the receipt that says what was removed. No promise: see docs/library.md.
package removal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	prefix = "removals/"
	// within is how long after a request everything must be removed.
	within = 48 * time.Hour
	// warn is how long before that time an open request raises an alert.
	warn = 24 * time.Hour
	// maxText is the maximum length of what a request says, in bytes.
	maxText   = 500
	maxObject = 1 << 20
)

// Request is a request to remove everything that was kept of a provider.
type Request struct {
	ID       string    `json:"id"`
	Job      string    `json:"job"`
	Provider string    `json:"provider"`
	At       time.Time `json:"at"`
	Due      time.Time `json:"due"`
	By       string    `json:"by"`             // who recorded it
	From     string    `json:"from,omitempty"` // who asked for it
	Note     string    `json:"note,omitempty"`
}

// Removed says what one try removed. The hashes prove which things these were, without
// their text.
type Removed struct {
	At           time.Time        `json:"at"`
	By           string           `json:"by"`
	Rows         map[string]int64 `json:"rows"` // by table
	Objects      int64            `json:"objects"`
	DeadLetters  int64            `json:"dead_letters"`
	Chunks       int64            `json:"chunks"` // on the deletion list
	DeletionList string           `json:"deletion_list,omitempty"`
	// PagesSHA256 is the hash of a line "key content_hash" for each page, by key;
	// ObjectsSHA256 of a line "key etag size" for each object.
	PagesSHA256   string `json:"pages_sha256,omitempty"`
	ObjectsSHA256 string `json:"objects_sha256,omitempty"`
	Error         string `json:"error,omitempty"` // what it could not do
}

// Receipt says that a request is done: nothing is left, and nothing can be read from the
// database's files.
type Receipt struct {
	Request  Request          `json:"request"`
	DoneAt   time.Time        `json:"done_at"`
	By       string           `json:"by"`
	InTime   bool             `json:"in_time"`
	Tries    []Removed        `json:"tries"`
	Left     map[string]int64 `json:"left"`   // by table, and objects of the store, counted afterwards: all are 0
	Erased   bool             `json:"erased"` // the database's files were rewritten; false where no database is concerned
	Database string           `json:"database"`
}

// Entry is a request with its receipt; nil: it is open.
type Entry struct {
	Request
	Receipt *Receipt `json:"receipt"`
}

// Open reports whether a request is not done yet.
func (e Entry) Open() bool { return e.Receipt == nil }

// Late reports whether an open request must be looked at now.
func (e Entry) Late(now time.Time) bool { return e.Open() && !now.Before(e.Due.Add(-warn)) }

// ErrNone means that there is no such request.
var ErrNone = errors.New("there is no such request")

// Record records a request.
func Record(ctx context.Context, s store.Store, r Request, now time.Time) (Request, error) {
	r.At = now.UTC().Truncate(time.Second)
	r.Due = r.At.Add(within)
	r.ID = r.At.Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
	r.From, r.Note = untrusted.Text(r.From, maxText), untrusted.Text(r.Note, maxText)
	return r, store.CreateJSON(ctx, s, key(r.ID, "request.json"), r)
}

// All are the requests, the newest first.
func All(ctx context.Context, s store.Store) ([]Entry, error) {
	var out []Entry
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		id := path.Base(path.Dir(o.Key))
		switch {
		case o.Key == key(id, "request.json"):
			var e Entry
			if err := store.ReadJSON(ctx, s, o.Key, maxObject, &e.Request); err != nil {
				return nil, err
			}
			var r Receipt
			err := store.ReadJSON(ctx, s, key(id, "receipt.json"), maxObject, &r)
			if err == nil {
				e.Receipt = &r
			} else if !errors.Is(err, store.ErrNotExist) {
				return nil, err
			}
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Find returns one request.
func Find(ctx context.Context, s store.Store, id string) (Entry, error) {
	all, err := All(ctx, s)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("%w: %s", ErrNone, id)
}

// OpenOf are the open requests of a job's provider, or of all its providers.
func OpenOf(ctx context.Context, s store.Store, job, provider string) ([]Entry, error) {
	all, err := All(ctx, s)
	return slices.DeleteFunc(all, func(e Entry) bool {
		return !e.Open() || e.Job != job || provider != "" && e.Provider != provider
	}), err
}

// cutOff is the Error of a try that has not ended.
const cutOff = "it was cut off"

// begin writes down what a try will remove, before it does. A try that was cut off is
// continued: what it had found and this one does not find, it had removed. Begin returns
// what both remove together.
func begin(ctx context.Context, s store.Store, e Entry, r Removed) (Removed, error) {
	all, err := tries(ctx, s, e.ID)
	if err != nil {
		return r, err
	}
	if len(all) > 0 && all[len(all)-1].Error == cutOff {
		r = all[len(all)-1].and(r)
	}
	r.Error = cutOff
	return r, r.write(ctx, s, e.ID)
}

// and joins what a try had found with what the try that continues it found.
func (r Removed) and(now Removed) Removed {
	now.At = r.At
	rows := maps.Clone(r.Rows)
	for table, n := range now.Rows {
		rows[table] = max(rows[table], n)
	}
	now.Rows = rows
	if r.Objects > now.Objects {
		now.Objects, now.ObjectsSHA256 = r.Objects, r.ObjectsSHA256
	}
	if r.Chunks > now.Chunks {
		now.Chunks, now.DeletionList = r.Chunks, r.DeletionList
	}
	if now.PagesSHA256 == "" {
		now.PagesSHA256 = r.PagesSHA256
	}
	now.DeadLetters = max(r.DeadLetters, now.DeadLetters)
	return now
}

// end writes down how a try ended that begin returned.
func end(ctx context.Context, s store.Store, e Entry, r Removed, err error) error {
	if r.Error = ""; err != nil {
		r.Error = ledger.ErrorText(err)
	}
	return r.write(ctx, s, e.ID)
}

func (r Removed) write(ctx context.Context, s store.Store, id string) error {
	return store.WriteJSON(ctx, s, key(id, "tries/"+r.At.UTC().Format("20060102T150405.000000000Z")+".json"), r)
}

// tries are those of a request, the oldest first.
func tries(ctx context.Context, s store.Store, id string) (all []Removed, err error) {
	for o, err := range s.List(ctx, prefix+id+"/tries/") {
		if err != nil {
			return nil, fmt.Errorf("listing the tries of %s: %w", id, err)
		}
		var t Removed
		if err := store.ReadJSON(ctx, s, o.Key, maxObject, &t); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Done writes the receipt of a request, with all tries.
func Done(ctx context.Context, s store.Store, e Entry, r Receipt) (Receipt, error) {
	r.Request, r.InTime = e.Request, !r.DoneAt.After(e.Due)
	var err error
	if r.Tries, err = tries(ctx, s, e.ID); err != nil {
		return r, err
	}
	return r, store.CreateJSON(ctx, s, key(e.ID, "receipt.json"), r)
}

func key(id, name string) string { return prefix + id + "/" + name }
