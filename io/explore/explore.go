// Package explore is the form in which a job lets others look at what it found, one thing
// at a time: the server shows it on pages and in its API, and knows no job's code. No promise: see docs/library.md.
package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// Kind is one kind of things that a job finds, such as domains.
type Kind struct {
	Name  string // in addresses: domains
	Title string // Domains
	One   string // domain
	About string // what a search finds
	// Fields are what a search asks for, Keys what identifies one item.
	Fields, Keys []Field
	// Shown are the columns of a list.
	Shown []string
	// SQL says that Source.DB is needed.
	SQL bool

	// Search returns a page of items, without their parts. Its query has Fields, and
	// After. Show returns one item. Its query has Keys.
	Search func(context.Context, Source, Query) (List, error) `json:"-"`
	Show   func(context.Context, Source, Query) (Item, error) `json:"-"`
	// Count counts what a search finds. Its query has Fields. nil: nothing is counted.
	Count func(context.Context, Source, Query) (Counts, error) `json:"-"`
}

// Field is one parameter of a request.
type Field struct {
	Name, Label, Hint string
	About             string   // in the API's description; "": the label
	Day               bool     `json:",omitempty"` // its value is YYYY-MM-DD
	Required          bool     `json:",omitempty"`
	Choices           []string `json:",omitempty"` // its only values; nil: any
}

// After is the parameter with List.Next of the page before.
const After = "after"

// Query has the values of parameters that are not empty.
type Query map[string]string

// Source is where a job keeps what it found.
type Source struct {
	Store store.Store
	DB    *db.DB // of kinds with SQL
	// Option returns the value of a flag that all runs have.
	Option func(name string) string
}

// Opener opens where a job keeps what it found.
type Opener func(ctx context.Context, job string) (Source, error)

// List is a page of items.
type List struct {
	Items []Item `json:"items"`
	Next  string `json:"next,omitempty"` // After of the next page
	Note  string `json:"note,omitempty"` // what a person should know about this list
}

// Item is one thing that was found.
type Item struct {
	Key    Query  `json:"key"` // the parameters that show it
	Title  string `json:"title"`
	Record Record `json:"record"`
	// URL is the page of the site that it is from.
	URL string `json:"url,omitempty"`
	// RunID is the run that found it. Where that is not kept, it follows from At.
	RunID string    `json:"run_id,omitempty"`
	At    time.Time `json:"-"`
	// Failures is a text that its dead letters have.
	Failures string `json:"-"`
	Parts    []Part `json:"parts,omitempty"`
	// Series is how a value of it changed, such as its price; nil: not known.
	Series *Series `json:"series,omitempty"`
}

// Part is more about an item: a text, rows, or only a note.
type Part struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Note  string   `json:"note,omitempty"`
	Rows  []Record `json:"rows,omitempty"`
	Shown []string `json:"-"`               // columns that a page shows; none: all, as facts of the only row
	Items []Item   `json:"items,omitempty"` // of the kind Kind, shown as rows
	Kind  string   `json:"kind,omitempty"`
	// Text is from strangers: its control characters are replaced. Bytes is the size of
	// the whole, of which Text may be the beginning.
	Text      string `json:"text,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Stored says where in the store the whole is.
	Stored string `json:"stored,omitempty"`
}

// Record is a row of a table, as `pipeline export` writes it.
type Record []Cell

// Cell is a value of a Record.
type Cell struct {
	Name, Doc string
	Value     any // nil, a text, a number, a boolean, a time, texts, or a json.Marshaler
}

// MarshalJSON implements json.Marshaler: an object whose members keep their order.
func (r Record) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, c := range r {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(c.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Column returns the cell of a name.
func (r Record) Column(name string) Cell {
	for _, c := range r {
		if c.Name == name {
			return c
		}
	}
	return Cell{Name: name}
}

// ErrNone says that there is no such item.
var ErrNone = errors.New("nothing is stored under this key; search for it")

// ErrNothingYet says that a job has not run with this database.
var ErrNothingYet = errors.New("nothing was found yet: no run of this job has used this database")

// RefusedError says, to its sender, what is wrong with a query.
type RefusedError struct {
	message string
	// Unknown says that the query names something that cannot be there.
	Unknown bool
}

func (e *RefusedError) Error() string { return e.message }

// Usage marks the error as one of wrong usage, as package usage does.
func (e *RefusedError) Usage() {}

// Refuse makes a RefusedError.
func Refuse(format string, args ...any) error {
	return &RefusedError{message: fmt.Sprintf(format, args...)}
}

// Unknown is a RefusedError for a query that names something that cannot be there.
func Unknown(format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...), true}
}
