package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// Filter chooses rows; an empty field chooses all.
type Filter struct {
	Country, Category, Date string    // of the seed job's partitions
	Run                     string    // id of a run
	Names                   []string  // of providers, sites or publishers
	Since                   time.Time // collected or changed then or later
	AsOf                    string    // a version of the table: its number, a time (RFC 3339), or the run that made it; empty: now
	Before                  string    // of changes: the earlier version, with which AsOf is compared; empty: the newest two dates are
	Stored                  time.Time // stored then or later, by the store's clock; of a database as Since
	Look                    db.Look   // of rows of a database
}

// Wants reports whether a partition passes the filter.
func (f Filter) Wants(p hive.Partition) bool {
	return (f.Country == "" || p.Country == f.Country) && (f.Category == "" || p.Category == f.Category) && (f.Date == "" || p.Date == f.Date)
}

// Source is where rows come from.
type Source struct {
	Store store.Store
	DB    *db.DB // of a What with Migrate
	Filter
}

// What is one kind of rows that a job finds: what can be exported, listed, looked at and compared.
type What struct {
	Name, Job, About string
	// Version is raised when a column is removed or changes its meaning. A new column
	// does not change it.
	Version int
	// Filters are the flags that choose its rows; Since says which time --since is about.
	Filters []string
	Since   string
	// Migrate brings the database's tables up to date; nil: not from the database. Names are those that it knows.
	Migrate func(context.Context, *db.DB) error
	Names   func(context.Context, *db.DB) ([]string, error)
	// Table are the columns of a list, HEAD or HEAD=column; … at the end cuts a long text.
	Table string
	// FailedIn names the kind that tells which of its things failed; "": Failed does. Failed is nil where nothing tells.
	FailedIn string
	Failed   func(explore.Record) bool
	// Find is how one is looked at; nil: it is a part of another.
	Find *explore.Kind
	// Changed yields what changed since Source.Since; nil: the job tells it by another kind.
	Changed func(context.Context, Source) iter.Seq2[Change, error]
	// Event is how a row that is new or changed is sent to others; nil: it is not.
	Event *Event
	// Diff yields what differs between two times, the ends of two runs; nil: the job does not keep it.
	Diff func(ctx context.Context, d *db.DB, from, until time.Time) iter.Seq2[Diff, error]

	row   reflect.Type
	write func(ctx context.Context, src Source, keep func(explore.Record) bool, f Format, name string, to io.Writer) (int64, error)
	all   func(context.Context, Source) iter.Seq2[explore.Record, error]
}

// Event is how a row is an event.
type Event struct {
	Type    string   // of CloudEvents
	Subject string   // the column with the subject
	ID      []string // the columns, times among them, whose values no other event of this type has
	Back    string   // one more of them where the state is back
}

// Change is a line of what changed.
type Change struct {
	Kind   string `parquet:"kind" doc:"new, changed, gone or, of a product that was gone, back"`
	Source string `parquet:"source" doc:"seed: country/category/date; else the provider, site or publisher"`
	Item   string `parquet:"item" doc:"the domain, the product's key, or the URL of the page or article"`
	What   string `parquet:"what" doc:"what changed, or the title; empty: nothing to say"`
}

// Diff is a difference between two times: of a product, or of one of its fields.
type Diff struct {
	Kind       string  `parquet:"kind" doc:"new, changed, gone or back"`
	Site       string  `parquet:"site" doc:"the site's name"`
	ProductKey string  `parquet:"product_key" doc:"the product"`
	URL        string  `parquet:"url" doc:"its page"`
	Field      string  `parquet:"field" doc:"changed: name of the field; empty: it is about the product"`
	Was        *string `parquet:"was,optional" doc:"the value before, as JSON text; null: it had none"`
	Became     *string `parquet:"became,optional" doc:"the value after, as JSON text; null: it has none"`
}

// KindOf is the kind of a change.
func KindOf(isNew, gone bool) string {
	switch {
	case gone:
		return "gone"
	case isNew:
		return "new"
	}
	return "changed"
}

// InStore completes a kind with what reads its rows from the store.
func InStore[T any](k What, read func(context.Context, store.Store, Filter) iter.Seq2[T, error]) What {
	return of(k, func(ctx context.Context, src Source) iter.Seq2[T, error] { return read(ctx, src.Store, src.Filter) })
}

// InDB completes a kind with what reads its rows from the database.
func InDB[T any](k What, read func(context.Context, *db.DB, Filter) iter.Seq2[T, error]) What {
	return of(k, func(ctx context.Context, src Source) iter.Seq2[T, error] { return read(ctx, src.DB, src.Filter) })
}

func of[T any](k What, read func(context.Context, Source) iter.Seq2[T, error]) What {
	k.row = reflect.TypeFor[T]()
	columns := columns(k.row)
	k.write = func(ctx context.Context, src Source, keep func(explore.Record) bool, f Format, name string, to io.Writer) (int64, error) {
		return Write(f, to, name, func(yield func(T, error) bool) {
			for row, err := range read(ctx, src) {
				if (err != nil || keep == nil || keep(record(columns, &row))) && !yield(row, err) {
					return
				}
			}
		})
	}
	k.all = func(ctx context.Context, src Source) iter.Seq2[explore.Record, error] {
		return Map(read(ctx, src), func(row T) explore.Record { return record(columns, &row) })
	}
	return k
}

// Map yields what to makes of each row.
func Map[T, U any](all iter.Seq2[T, error], to func(T) U) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for row, err := range all {
			var made U
			if err == nil {
				made = to(row)
			}
			if !yield(made, err) || err != nil {
				return
			}
		}
	}
}

// Part is a part of an item with rows; none is its note where there are none.
func Part[T any](name, title string, shown []string, all iter.Seq2[T, error], none string) (p explore.Part, err error) {
	p = explore.Part{Name: name, Title: title, Shown: shown}
	for row, err := range all {
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, Record(row))
	}
	if len(p.Rows) == 0 {
		p.Note = none
	}
	return p, nil
}

// title names the rows and their version, in schemas and in Parquet files.
func (k What) title() string { return fmt.Sprintf("%s/%d", k.Name, k.Version) }

// Open opens the database of the rows, and brings its tables up to date.
func (k What) Open(ctx context.Context, dsn string) (*db.DB, error) {
	d, err := db.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := k.Migrate(ctx, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Columns are the columns of the rows.
func (k What) Columns() []Column { return columns(k.row) }

// Schema is the JSON Schema of a row, as a JSON line has it.
func (k What) Schema() ([]byte, error) { return schema(k.row, k.title(), k.About) }

// Write writes the rows that keep keeps (nil: all) to a file, and returns how many there were.
func (k What) Write(ctx context.Context, src Source, keep func(explore.Record) bool, f Format, to io.Writer) (int64, error) {
	return k.write(ctx, src, keep, f, k.title(), to)
}

// Records yields the rows with their columns.
func (k What) Records(ctx context.Context, src Source) iter.Seq2[explore.Record, error] {
	return k.all(ctx, src)
}

// Select yields the rows of a query that has T's columns in their order. Its %s stands for the filter: name is the column
// with the source's name, since the condition that a row changed at $3 or later. Further arguments begin with $4.
func Select[T any](ctx context.Context, d *db.DB, f Filter, name, since, query string, args ...any) iter.Seq2[T, error] {
	var from int64
	for _, t := range []time.Time{f.Since, f.Stored} {
		if !t.IsZero() {
			from = max(from, db.Micros(t))
		}
	}
	where := `(CAST($1 AS BIGINT) = 0 OR ` + name + ` ` + d.AnyOf(2) + `) AND (` + since + ` OR ` + d.Never("$3") + `)`
	and, limit, all := f.Look.SQL(append([]any{int64(len(f.Names)), d.List(f.Names), from}, args...)...)
	columns := columns(reflect.TypeFor[T]())
	return db.Select(ctx, d, func(r *sql.Rows) (row T, err error) {
		err = scan(r, columns, reflect.ValueOf(&row).Elem())
		return row, err
	}, fmt.Sprintf(query, where+and)+limit, all...)
}

// scan reads a row: times as microseconds of which 0 or NULL is none, lists as JSON.
func scan(r *sql.Rows, columns []Column, row reflect.Value) error {
	into, times, lists := make([]any, len(columns)), make([]sql.NullInt64, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		switch c.Kind {
		case Time:
			into[i] = &times[i]
		case Texts:
			into[i] = &lists[i]
		default:
			into[i] = row.FieldByIndex(c.index).Addr().Interface()
		}
	}
	if err := r.Scan(into...); err != nil {
		return err
	}
	for i, c := range columns {
		switch f := row.FieldByIndex(c.index); {
		case c.Kind == Texts:
			if err := json.Unmarshal([]byte(lists[i]), f.Addr().Interface()); err != nil {
				return fmt.Errorf("reading the list %s: %w", c.Name, err)
			}
		case c.Kind == Time && c.Optional:
			f.Set(reflect.ValueOf(db.OptionalTime(times[i].Int64)))
		case c.Kind == Time:
			f.Set(reflect.ValueOf(db.Time(times[i].Int64)))
		}
	}
	return nil
}

// Cells are a record's cells of a table, as text.
func (k What) Cells(r explore.Record, cut func(string) string) (cells []string) {
	for _, head := range strings.Fields(k.Table) {
		_, column := tableColumn(head)
		var text string
		switch v := r.Column(column).Value.(type) {
		case nil:
		case time.Time:
			text = v.Format(time.RFC3339)
		case []string:
			text = strings.Join(v, ", ")
		default:
			text = fmt.Sprint(v)
		}
		if strings.HasSuffix(head, "…") {
			text = cut(text)
		}
		cells = append(cells, text)
	}
	return cells
}

// Listed are the columns of a list.
func (k What) Listed() (all []string) {
	for _, head := range strings.Fields(k.Table) {
		_, column := tableColumn(head)
		all = append(all, column)
	}
	return all
}

// Head is the first line of a table.
func (k What) Head() string {
	var heads []string
	for _, head := range strings.Fields(k.Table) {
		name, _ := tableColumn(head)
		heads = append(heads, name)
	}
	return strings.Join(heads, "\t")
}

func tableColumn(head string) (name, column string) {
	name, column, given := strings.Cut(strings.TrimSuffix(head, "…"), "=")
	if !given {
		column = strings.ToLower(name)
	}
	return name, column
}
