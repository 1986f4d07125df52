package content

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// schema writes the fields of a schema as a table, with those of the named schemas in it
// down to the second. The rest is in the section of all schemas.
func (a *api) schema(s any) {
	a.fields(s, fields{limit: 2, most: maxRows})
}

// fields are the rows of a table of fields.
type fields struct {
	limit int // how many named schemas are opened, one in the other
	most  int // how many rows named schemas may have in all, 0 for no bound
	rows  [][]string
	long  []sample // examples too long for a row
}

// place is where in a schema a field is.
type place struct {
	prefix string
	named  int // the named schemas around it
	parts  int // the allOf, oneOf and anyOf around it
	depth  int
}

func (a *api) fields(s any, f fields) {
	a.properties(&f, s, place{})
	if f.rows == nil {
		if t := strings.TrimSpace(a.typeOf(s, 0) + " " + a.values(s, 0)); t != "" {
			a.b.WriteString(t + "\n\n")
		}
		return
	}
	a.table([]string{"Property", "Type", "Required", "Description"}, f.rows)
	for _, e := range f.long {
		a.example("application/json", e)
	}
}

// maxArrays is how many levels of arrays of arrays are read.
const maxArrays = 4

// maxRows bounds the table of an operation as far as its fields are in the section of all
// schemas too, and maxValues the values of an enumeration there.
const (
	maxRows   = 100
	maxValues = 20
)

// The bounds of what has no name: such schemas are inside each other in the text.
const (
	maxNesting = 40
	maxParts   = 6
)

func (a *api) properties(f *fields, s any, at place) {
	if str(s, "$ref") != "" {
		at.named++
	}
	s = a.resolve(s)
	if s == nil || at.named > f.limit || at.depth > maxNesting || at.parts > maxParts {
		return
	}
	a.parts(f, s, at)
	if items := itemsOf(s); items != nil {
		if !strings.HasSuffix(at.prefix, strings.Repeat("[].", maxArrays)) { // deeper it may be an array of itself
			at.prefix += "[]."
			a.properties(f, items, at)
		}
		return
	}
	if more := members(s, "additionalProperties"); more != nil {
		inside := at
		inside.prefix += "*."
		inside.depth++
		a.properties(f, more, inside)
	}
	required := list(s, "required")
	for _, p := range members(s, "properties") {
		if at.named > 0 && f.most > 0 && len(f.rows) >= f.most || a.tooLong() {
			return
		}
		a.property(f, p, at, slices.ContainsFunc(required, func(v any) bool { return v == any(p.key) }))
	}
}

// itemsOf are the elements of an array, nil for what is none.
func itemsOf(s any) any {
	if str(s, "type") == "object" {
		return nil
	}
	return field(s, "items")
}

// parts adds the fields of what a schema is made of.
func (a *api) parts(f *fields, s any, at place) {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(s, key) {
			if a.tooLong() {
				return
			}
			inside := at
			inside.parts++
			if key == "allOf" && str(part, "$ref") != "" {
				inside.named-- // its fields are the schema's own
			}
			a.properties(f, part, inside)
		}
	}
}

// property adds the row of one field, and the rows of the fields in it.
func (a *api) property(f *fields, p member, at place, required bool) {
	most := 0
	if at.named > 0 && f.most > 0 {
		most = maxValues
	}
	name := at.prefix + p.key
	c := a.fieldCells(p.value, most)
	f.rows = append(f.rows, []string{"`" + name + "`", c.kind, isTrue(required), c.text})
	if most == 0 {
		f.long = append(f.long, a.longExamples(name, p.value)...)
	}
	inside := at
	inside.prefix = name + "."
	inside.depth++
	if itemsOf(a.resolve(p.value)) != nil {
		inside.prefix = name
	}
	a.properties(f, p.value, inside)
}

// cells are what a row says of a field, wherever the field is.
type cells struct{ kind, text string }

type fieldKey struct {
	field *member
	most  int
}

// fieldCells returns the cells of a field. Large descriptions have the same fields in many
// operations.
func (a *api) fieldCells(v any, most int) cells {
	o := members(v)
	if len(o) == 0 {
		return cells{kind: a.typeOf(v, 0)}
	}
	key := fieldKey{&o[0], most}
	c, known := a.fieldsKnown[key]
	if !known {
		c = cells{a.typeOf(v, 0), a.cellText(a.describe(v, v, most))}
		a.fieldsKnown[key] = c
		return c
	}
	a.steps++
	a.cells += len(c.text)
	return c
}

// values writes the values that a schema allows, where it names them: at most most of
// them, 0 for all.
func (a *api) values(s any, most int) string {
	var all []string
	a.enumerate(&all, s, 0)
	if all == nil {
		return ""
	}
	more := "."
	if most > 0 && len(all) > most {
		all, more = all[:most], ", and more."
	}
	return "One of " + strings.Join(all, ", ") + more
}

func (a *api) enumerate(all *[]string, s any, depth int) {
	s = a.resolve(s)
	if depth > 3 || s == nil || a.tooLong() {
		return
	}
	values := list(s, "enum")
	if value := field(s, "const"); value != nil {
		values = append(values[:len(values):len(values)], value)
	}
	for _, v := range values {
		if text := "`" + fmt.Sprint(v) + "`"; !slices.Contains(*all, text) {
			*all = append(*all, text)
		}
	}
	if field(s, "properties") != nil {
		return
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(s, key) {
			a.enumerate(all, part, depth+1)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inside := members(s, key); inside != nil {
			a.enumerate(all, inside, depth+1)
		}
	}
}

// schemas writes the named schemas, each with all of its fields, values and examples.
func (a *api) schemas() {
	named := members(a.resolve(field(a.root, "components", "schemas")))
	if named == nil {
		named = members(a.resolve(field(a.root, "definitions")))
	}
	if named == nil {
		return
	}
	a.heading(2, "Schemas")
	for _, s := range named {
		a.namedSchema(s.key, s.value)
	}
}

func (a *api) namedSchema(name string, s any) {
	if a.tooLong() {
		return
	}
	a.cells = 0
	a.heading(3, oneLine(name))
	a.about(s, 3)
	if options := a.options(s); options != "" {
		a.b.WriteString(options + "\n\n")
	}
	a.fields(s, fields{limit: 0})
	for _, e := range a.valuesOf(s) {
		a.example("application/json", e)
	}
}

// options names the schemas of which a schema is one, and the field that says which.
func (a *api) options(s any) string {
	var names []string
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, o := range list(s, key) {
			if t := a.typeOf(o, 0); t != "" {
				names = append(names, t)
			}
		}
	}
	if names == nil {
		return ""
	}
	text := "One of: " + strings.Join(names, ", ") + "."
	if by := str(s, "discriminator", "propertyName"); by != "" {
		text += " `" + by + "` says which."
	}
	return text
}

func (a *api) typeOf(s any, depth int) string {
	if a.steps++; depth > 3 || a.tooLong() {
		return ""
	}
	name := ""
	if ref := str(s, "$ref"); ref != "" {
		name = refName(ref)
	}
	s = a.resolve(s)
	if items := itemsOf(s); items != nil {
		return "array of " + cmp.Or(a.typeOf(items, depth+1), "any")
	}
	var options []string
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, o := range list(s, key) {
			if a.tooLong() {
				return ""
			}
			if t := a.typeOf(o, depth+1); t != "" && len(options) < 10 {
				options = append(options, t)
			}
		}
	}
	for _, t := range list(s, "type") {
		if t, ok := t.(string); ok {
			options = append(options, t)
		}
	}
	t := cmp.Or(str(s, "type"), strings.Join(options, " or "))
	if t == "" && field(s, "properties") != nil {
		t = "object"
	}
	if f := str(s, "format"); f != "" && t != "" {
		t += " (" + f + ")"
	}
	if name != "" && (t == "" || t == "object") {
		return name
	}
	return a.cellText(t)
}
