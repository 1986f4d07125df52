// Package rows writes rows of one Go struct as Parquet, JSON lines or CSV, and says their
// JSON Schema. The struct is the one place that names the columns: each field has a tag
// parquet with the column's name and Parquet's options, and a tag doc with its meaning.
// No promise: see docs/library.md.
package rows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
)

// JSON is a JSON value: Parquet's JSON type, a nested value in JSON lines, text in CSV.
// It is never null: parquet-go loses optional values of this type.
type JSON string

// MarshalJSON implements json.Marshaler.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// kind is what the values of a column are.
type kind string

// The kinds of columns.
const (
	Text    kind = "text"
	Integer kind = "integer"
	Boolean kind = "boolean"
	Time    kind = "time" // RFC 3339 in UTC
	Texts   kind = "list of texts"
	Structs kind = "list of objects"
	AnyJSON kind = "JSON"
)

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string](): Text, reflect.TypeFor[int32](): Integer, reflect.TypeFor[int64](): Integer, reflect.TypeFor[bool](): Boolean,
	reflect.TypeFor[time.Time](): Time, reflect.TypeFor[[]string](): Texts, reflect.TypeFor[JSON](): AnyJSON,
}

// Column is a column of a row's type.
type Column struct {
	Name     string
	Kind     kind
	Optional bool // it may be null
	Doc      string
	index    []int
}

// columns returns the columns of a struct, in their order. It panics for a struct that
// this package cannot write.
func columns(row reflect.Type) (columns []Column) {
	for _, f := range reflect.VisibleFields(row) {
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		optional := slices.Contains(strings.Split(options, ","), "optional")
		kind := kinds[of]
		if kind == "" && of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
			kind = Structs
		}
		c := Column{Name: name, Kind: kind, Optional: optional, Doc: f.Tag.Get("doc"), index: f.Index}
		if c.Name == "" || c.Kind == "" || c.Doc == "" || optional != (of != f.Type) || optional && c.Kind == AnyJSON {
			panic(fmt.Sprintf("rows: %s.%s (%s) needs a type that is known, a pointer if and only if it is optional, and the tags parquet and doc", row, f.Name, f.Type))
		}
		columns = append(columns, c)
	}
	return columns
}

// value returns a column's value, nil for null.
func (c Column) value(row reflect.Value) any {
	v := row.FieldByIndex(c.index)
	if c.Optional {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice && v.IsNil() {
		v = reflect.MakeSlice(v.Type(), 0, 0)
	}
	if x, ok := v.Interface().(time.Time); ok {
		return x.UTC()
	}
	if c.Kind == Structs {
		text, _ := encode(v.Interface()) // structs of texts and numbers always encode
		return JSON(text)
	}
	return v.Interface()
}

// Record returns a row with its columns.
func Record[T any](row T) explore.Record { return record(columns(reflect.TypeFor[T]()), &row) }

func record[T any](columns []Column, row *T) (all explore.Record) {
	v := reflect.ValueOf(row).Elem()
	for _, c := range columns {
		all = append(all, explore.Cell{Name: c.Name, Doc: c.Doc, Value: c.value(v)})
	}
	return all
}

// schema returns the JSON schema (2020-12) of a row as a JSON line has it.
func schema(row reflect.Type, title, about string) ([]byte, error) {
	types := map[kind]map[string]any{
		Text: {"type": "string"}, Integer: {"type": "integer"}, Boolean: {"type": "boolean"}, AnyJSON: {},
		Time: {"type": "string", "format": "date-time"}, Texts: {"type": "array", "items": map[string]any{"type": "string"}},
		Structs: {"type": "array", "items": map[string]any{"type": "object"}},
	}
	properties, required := explore.Record{}, []string{}
	for _, c := range columns(row) {
		p := map[string]any{"description": c.Doc}
		for k, v := range types[c.Kind] {
			p[k] = v
		}
		if t, ok := p["type"]; ok && c.Optional {
			p["type"] = []any{t, "null"}
		}
		properties = append(properties, explore.Cell{Name: c.Name, Value: p})
		required = append(required, c.Name)
	}
	b, err := json.MarshalIndent(explore.Record{
		{Name: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"}, {Name: "title", Value: title}, {Name: "description", Value: about},
		{Name: "type", Value: "object"}, {Name: "additionalProperties", Value: false}, {Name: "required", Value: required}, {Name: "properties", Value: properties},
	}, "", "  ")
	return append(b, '\n'), err
}
