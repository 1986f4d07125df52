package explore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// maxValues is how many values of a facet are counted: those that most items have.
const maxValues = 30

// Counts are what a query chooses, counted.
type Counts struct {
	At   time.Time `json:"at"`             // of the counting
	Note string    `json:"note,omitempty"` // what a person should know about these counts
	// Facets are the fields by which the list can be narrowed. Each is counted without its own choice.
	Facets  []Facet  `json:"facets,omitempty"`
	Picture *Picture `json:"picture,omitempty"`
}

// Facet is a field with its values, those of most items first.
type Facet struct {
	Field  string  `json:"field"`
	Values []Value `json:"values"`
}

// Value is a value of a field, and how many items have it.
type Value struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// FacetOf is the facet of a field, by how many items have each value.
func FacetOf(field string, of map[string]int64) Facet {
	f := Facet{Field: field, Values: []Value{}}
	for value, n := range of {
		f.Values = append(f.Values, Value{value, n})
	}
	slices.SortFunc(f.Values, func(a, b Value) int { return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value)) })
	f.Values = f.Values[:min(len(f.Values), maxValues)]
	return f
}

// Picture is a table of figures: the items by two properties. A property that is a field of the search links to the list.
type Picture struct {
	Title    string    `json:"title"`
	Row      string    `json:"row"`    // the property of the rows
	Column   string    `json:"column"` // the property of the columns
	Rows     []Line    `json:"rows"`
	Columns  []string  `json:"columns"`
	Measures []Measure `json:"measures"`
	// Over says that the columns follow each other in time: each row is drawn as columns of its own.
	Over bool `json:"-"`
}

// Measure is a way to count.
type Measure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Line is a row of a picture. Figures has a figure for each column, by measure.
type Line struct {
	Name    string             `json:"name"`
	Newest  *time.Time         `json:"newest,omitempty"` // time of its newest item; nil: not known
	Figures map[string][]int64 `json:"figures"`
}

// MeasureField is the field of a search, and of the page of a picture, that names a measure.
const MeasureField = "measure"

// Of returns the picture's measure of that name, or its first measure if no measure has the name.
func (p *Picture) Of(name string) Measure {
	for _, m := range p.Measures {
		if m.Name == name {
			return m
		}
	}
	return p.Measures[0]
}

// Add adds n to the figure of a row in a column, and returns the row. If the last row has another name, Add appends a row.
func (p *Picture) Add(row string, column int, measure string, n int64) *Line {
	if len(p.Rows) == 0 || p.Rows[len(p.Rows)-1].Name != row {
		l := Line{Name: row, Figures: map[string][]int64{}}
		for _, m := range p.Measures {
			l.Figures[m.Name] = make([]int64, len(p.Columns))
		}
		p.Rows = append(p.Rows, l)
	}
	last := &p.Rows[len(p.Rows)-1]
	last.Figures[measure][column] += n
	return last
}

// See notes the time of an item of the row.
func (l *Line) See(at time.Time) {
	if l.Newest == nil || l.Newest.Before(at) {
		l.Newest = &at
	}
}

// Point is a value at a time.
type Point struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
}

// Series is how a value of an item changed. Each point holds until the next one.
type Series struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Points []Point `json:"points"`
}

// By is a field of a search, and the column that it chooses by.
type By struct{ Field, Column string }

// ChosenBy are the conditions of a query's values.
func ChosenBy(q Query, by ...By) (all []db.Match) {
	for _, b := range by {
		all = append(all, Chosen(b.Column, q[b.Field])...)
	}
	return all
}

// group is how many rows of a table have the same values.
type group struct {
	Values []string // by By
	Column int64    // of a picture
	N      int64
	Newest time.Time
}

// in reports whether a query chooses the group, without regard to the field at i.
func (g group) in(q Query, without int, by []By) bool {
	for i, b := range by {
		if want := q[b.Field]; want != "" && i != without && want != g.Values[i] {
			return false
		}
	}
	return true
}

// Counted are the rows that GroupsOf counts. All but From may be empty. Its texts are SQL.
type Counted struct {
	From   string // the table
	Where  string // which rows
	Column string // number of a row's column in a picture
	Newest string // time of a row
	Args   []any  // of Where, Column and Newest
}

// GroupsOf counts rows in one reading of their table, by the columns of by and by rows.Column. It returns the groups that a query
// chooses, ordered by their values, and the facets. A search for a text counts nothing, because it would read all rows.
func GroupsOf(ctx context.Context, d *db.DB, rows Counted, q Query, by ...By) (chosen []group, facets []Facet, err error) {
	if q["text"] != "" {
		return nil, nil, nil
	}
	var names []string
	for _, b := range by {
		names = append(names, b.Column)
	}
	facetsOf, list := make([]map[string]int64, len(by)), strings.Join(names, ", ")
	for i := range by {
		facetsOf[i] = map[string]int64{}
	}
	for g, err := range db.Select(ctx, d, func(r *sql.Rows) (g group, err error) {
		var at int64
		g.Values = make([]string, len(by))
		into := []any{}
		for i := range by {
			into = append(into, &g.Values[i])
		}
		err = r.Scan(append(into, &g.Column, &g.N, &at)...)
		g.Newest = db.Time(at)
		return g, err
	}, fmt.Sprintf(`SELECT %s, %s AS picture_column, COUNT(*), MAX(%s) FROM %s WHERE %s GROUP BY %s, picture_column ORDER BY %s, picture_column`,
		list, cmp.Or(rows.Column, "0"), cmp.Or(rows.Newest, "0"), rows.From, cmp.Or(rows.Where, "1 = 1"), list, list), rows.Args...) {
		if err != nil {
			return nil, nil, fmt.Errorf("counting: %w", err)
		}
		for i := range by {
			if g.in(q, i, by) {
				facetsOf[i][g.Values[i]] += g.N
			}
		}
		if g.in(q, -1, by) {
			chosen = append(chosen, g)
		}
	}
	for i, b := range by {
		facets = append(facets, FacetOf(b.Field, facetsOf[i]))
	}
	return chosen, facets, nil
}
