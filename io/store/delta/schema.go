package delta

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// Schema is the columns of a table, as the JSON value that Delta's metaData has.
type Schema struct{ root map[string]any }

// SchemaOf returns the columns of a row type by its parquet tags. All columns may be null: a column that is added later is null
// in older files. SchemaOf panics for what Delta lacks: an unsigned integer, a timestamp that is not in microseconds, a slice without
// the tag "list".
func SchemaOf[T any]() Schema { return Schema{structOf(parquet.SchemaOf(new(T)))} }

func structOf(n parquet.Node) map[string]any {
	fields := []any{}
	for _, f := range n.Fields() {
		fields = append(fields, map[string]any{"name": f.Name(), "type": typeOf(f.Name(), f), "nullable": true, "metadata": map[string]any{}})
	}
	return map[string]any{"type": "struct", "fields": fields}
}

// types are Delta's names of Parquet's types, by the logical type if there is one.
var types = map[string]string{
	"STRING": "string", "ENUM": "string", "JSON": "string", "DATE": "date", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)": "timestamp",
	"INT(8,true)": "byte", "INT(16,true)": "short", "INT(32,true)": "integer", "INT(64,true)": "long",
	"BOOLEAN": "boolean", "INT32": "integer", "INT64": "long", "FLOAT": "float", "DOUBLE": "double", "BYTE_ARRAY": "binary",
}

func typeOf(name string, n parquet.Node) any {
	kind := ""
	if n.Leaf() {
		kind = n.Type().Kind().String()
	}
	if logical := n.Type().LogicalType(); logical != nil {
		kind = logical.String()
	}
	switch {
	case n.Repeated():
		panic(fmt.Sprintf("column %s: Delta has no repeated columns; tag it as list", name))
	case kind == "LIST":
		return map[string]any{"type": "array", "elementType": typeOf(name, n.Fields()[0].Fields()[0]), "containsNull": true}
	case kind == "MAP":
		pair := n.Fields()[0].Fields()
		return map[string]any{"type": "map", "keyType": typeOf(name, pair[0]), "valueType": typeOf(name, pair[1]), "valueContainsNull": true}
	case kind == "":
		return structOf(n)
	case types[kind] == "":
		panic(fmt.Sprintf("column %s: Delta has no type for %s", name, kind))
	}
	return types[kind]
}

// text returns the schema as metaData has it.
func (s Schema) text() string {
	b, err := json.Marshal(s.root)
	if err != nil {
		panic(err) // it is made of strings, maps and slices
	}
	return string(b)
}

// with returns a table's schema, and the columns of s that it lacks.
func (s Schema) with(text string) (Schema, error) {
	var there map[string]any
	if err := json.Unmarshal([]byte(text), &there); err != nil {
		return Schema{}, fmt.Errorf("%w: its schema is no JSON object: %w", ErrDamaged, err)
	}
	merged, err := merge("", there, s.root)
	if err != nil {
		return Schema{}, err
	}
	return Schema{merged.(map[string]any)}, nil
}

// merge adds the columns of want to there. Other types of one column are an error.
func merge(name string, there, want any) (any, error) {
	a, isMap := there.(map[string]any)
	b, wantMap := want.(map[string]any)
	if !isMap || !wantMap || a["type"] != b["type"] {
		if !reflect.DeepEqual(there, want) {
			return nil, fmt.Errorf("column %s is of type %v in the table and of type %v in this program: "+
				"write to another store, or use the program that made the table", name, there, want)
		}
		return there, nil
	}
	for _, part := range []string{"elementType", "keyType", "valueType"} {
		if b[part] == nil {
			continue
		}
		merged, err := merge(name+"."+part, a[part], b[part])
		if err != nil {
			return nil, err
		}
		a[part] = merged
	}
	if b["fields"] == nil {
		return a, nil
	}
	fields, _ := a["fields"].([]any)
	at := map[any]map[string]any{}
	for _, f := range fields {
		if f, ok := f.(map[string]any); ok {
			at[f["name"]] = f
		}
	}
	for _, f := range b["fields"].([]any) {
		f := f.(map[string]any)
		old := at[f["name"]]
		if old == nil {
			fields = append(fields, f)
			continue
		}
		merged, err := merge(fmt.Sprint(name, ".", f["name"]), old["type"], f["type"])
		if err != nil {
			return nil, err
		}
		old["type"] = merged
	}
	a["fields"] = fields
	return a, nil
}
