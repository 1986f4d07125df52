package content

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// schema writes the fields of a schema as tables, with those of the named schemas in it
// down to the second. The rest is in the section of all schemas.
func (a *api) schema(s any) {
	a.fields(s, &fields{limit: 2, most: maxRows})
}

// fields are the tables of a schema's fields.
type fields struct {
	limit  int // how many named schemas are opened, one in the other
	most   int // how many rows named schemas may have in all, 0 for no bound
	rows   int // of all tables
	tables []*fieldTable
	long   []sample // examples too long for a row
}

// fieldTable has the fields of a schema, or of one of its alternatives.
type fieldTable struct {
	about string // names the alternative
	rows  [][]string
}

// place is where in a schema a field is.
type place struct {
	prefix string
	named  int // the named schemas around it
	parts  int // the alternatives around it
	depth  int
	opened []string // the references of the named schemas around it
}

func (f *fields) table(about string) *fieldTable {
	t := &fieldTable{about: about}
	f.tables = append(f.tables, t)
	return t
}

// fields writes what a schema is, and the tables of its fields.
func (a *api) fields(s any, f *fields) {
	a.properties(f, f.table(""), s, place{})
	says := []string{a.options(s)}
	if f.rows == 0 {
		says = append(says, strings.TrimSpace(a.typeOf(s, 0)+" "+a.values(s, maxEnum)))
	}
	resolved := a.resolve(s)
	says = slices.DeleteFunc(append(says, a.facts(resolved, nil)...), func(t string) bool { return t == "" })
	if len(says) > 0 && !a.tooLong() {
		a.b.WriteString(strings.Join(says, " ") + "\n\n")
	}
	for _, t := range f.tables {
		if t.rows == nil {
			continue
		}
		if t.about != "" {
			a.b.WriteString(t.about + "\n\n")
		}
		a.table([]string{"Property", "Type", "Required", "Description"}, t.rows)
	}
	for _, e := range f.long {
		a.example("application/json", e)
	}
}

// maxArrays is how many levels of arrays of arrays are read.
const maxArrays = 4

// maxRows bounds the table of an operation as far as its fields are in the section of all
// schemas too, and maxValues the values of an enumeration there. maxEnum bounds them everywhere.
const (
	maxRows   = 100
	maxValues = 20
	maxEnum   = 1000
)

// The bounds of what has no name: such schemas are inside each other in the text.
const (
	maxNesting = 40
	maxParts   = 6
)

// properties adds the fields of a schema to a table, and those of its alternatives to tables of their own.
func (a *api) properties(f *fields, t *fieldTable, s any, at place) {
	if ref := str(s, "$ref"); ref != "" {
		at.named++
		at.opened = append(slices.Clone(at.opened), ref)
	}
	if at.named > f.limit || at.depth > maxNesting || at.parts > maxParts {
		return
	}
	m := shape{fields: map[string][]any{}, required: map[string]bool{}, seen: map[string]bool{}}
	a.join(&m, s, 0)
	if m.items != nil {
		if !strings.HasSuffix(at.prefix, strings.Repeat("[].", maxArrays)) { // deeper it may be an array of itself
			inside := at
			inside.prefix += "[]."
			a.properties(f, t, m.items, inside)
		}
	}
	for _, name := range m.names {
		if at.named > 0 && f.most > 0 && f.rows >= f.most || a.tooLong() {
			return
		}
		schema := m.fields[name][0]
		if len(m.fields[name]) > 1 {
			schema = object{{Key: "allOf", Value: m.fields[name]}}
		}
		a.property(f, t, name, schema, at, m.required[name])
	}
	for _, other := range m.others {
		if kind := a.typeOf(other.Value, 0); kind != "" || members(a.resolve(other.Value)) != nil {
			a.property(f, t, other.Key, other.Value, at, false)
		}
	}
	for _, c := range m.choices {
		a.choose(f, t, c, at)
	}
}

// shape is what a schema says of an object, together with the schemas that it is all of.
type shape struct {
	names    []string         // of its fields
	fields   map[string][]any // the schemas of a field, each of which holds
	required map[string]bool
	choices  []choice
	others   object // the schemas of fields without a name, by how a row names them
	items    any    // of an array
	seen     map[string]bool
}

// choice is a list of schemas of which one, or any, holds.
type choice struct {
	parts []any
	by    any // the discriminator
}

// join adds a schema to a shape. References that were followed before are not followed again.
func (a *api) join(m *shape, s any, depth int) {
	ref := str(s, "$ref")
	if ref != "" && m.seen[ref] || depth > maxDepth {
		return
	}
	m.seen[ref] = true
	s = a.resolve(s)
	for _, part := range list(s, "allOf") {
		if a.tooLong() {
			return
		}
		a.join(m, part, depth+1)
	}
	for _, p := range members(s, "properties") {
		if m.fields[p.Key] == nil {
			m.names = append(m.names, p.Key)
		}
		m.fields[p.Key] = append(m.fields[p.Key], p.Value)
	}
	for _, name := range list(s, "required") {
		if name, ok := name.(string); ok {
			m.required[name] = true
		}
	}
	if more := members(s, "additionalProperties"); more != nil {
		m.others = append(m.others, member{Key: "*", Value: more})
	}
	for _, p := range members(s, "patternProperties") {
		m.others = append(m.others, member{Key: "/" + p.Key + "/", Value: p.Value})
	}
	m.items = cmp.Or(m.items, itemsOf(s))
	for _, key := range []string{"oneOf", "anyOf"} {
		if parts := list(s, key); parts != nil {
			m.choices = append(m.choices, choice{parts, field(s, "discriminator")})
		}
	}
}

// choose adds a table for each alternative that has fields. The fields of a single one, next to null or text, stay in the table.
func (a *api) choose(f *fields, t *fieldTable, c choice, at place) {
	var parts []any
	for _, part := range c.parts {
		if a.tooLong() {
			return
		}
		if a.composed(part) && !slices.Contains(at.opened, str(part, "$ref")) {
			parts = append(parts, part)
		}
	}
	at.parts++
	if len(parts) == 1 {
		a.properties(f, t, parts[0], at)
		return
	}
	for i, part := range parts {
		if a.tooLong() {
			return
		}
		about := "**" + a.label(part, i) + "**" + inBrackets(a.selects(c.by, part)) + ":"
		if path := strings.TrimSuffix(at.prefix, "."); path != "" {
			about = "`" + path + "`, " + about
		}
		a.properties(f, f.table(about), part, at)
	}
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// composed reports whether a schema may have fields.
func (a *api) composed(s any) bool {
	for range maxArrays {
		s = a.resolve(s)
		for _, key := range []string{"properties", "allOf", "oneOf", "anyOf", "patternProperties"} {
			if field(s, key) != nil {
				return true
			}
		}
		if members(s, "additionalProperties") != nil {
			return true
		}
		if s = itemsOf(s); s == nil {
			return false
		}
	}
	return false
}

// selects says which value of the discriminator leads to an alternative: "`kind` is `cat`".
func (a *api) selects(by, part any) string {
	name, ref := str(by, "propertyName"), str(part, "$ref")
	if name == "" {
		return ""
	}
	var values []string
	for _, m := range members(by, "mapping") {
		if to, _ := m.Value.(string); to == ref || ref != "" && refName(to) == refName(ref) {
			values = append(values, code(m.Key))
		}
	}
	if values == nil {
		property := a.resolve(field(a.resolve(part), "properties", name))
		if value := single(property); value != nil {
			values = append(values, code(value))
		} else if ref != "" {
			values = append(values, code(refName(ref)))
		}
	}
	if values == nil {
		return ""
	}
	return code(name) + " is " + strings.Join(values[:min(len(values), maxValues)], " or ")
}

// single returns the only value that a schema allows, nil if there are more.
func single(s any) any {
	if value := field(s, "const"); value != nil {
		return value
	}
	if values := list(s, "enum"); len(values) == 1 {
		return values[0]
	}
	return nil
}

// code writes a value as inline code.
func code(v any) string {
	text, isText := v.(string)
	if !isText {
		text = string(appendJSON(nil, v))
	}
	return "`" + oneLine(text) + "`"
}

// itemsOf are the elements of an array, nil for what is none.
func itemsOf(s any) any {
	if str(s, "type") == "object" {
		return nil
	}
	return field(s, "items")
}

// property adds the row of one field, and the rows of the fields in it.
func (a *api) property(f *fields, t *fieldTable, name string, schema any, at place, required bool) {
	most := maxEnum
	if at.named > 0 && f.most > 0 {
		most = maxValues
	}
	name = at.prefix + name
	c := a.fieldCells(schema, most)
	t.rows = append(t.rows, []string{code(name), c.kind, isTrue(required), c.text})
	f.rows++
	if most == maxEnum {
		f.long = append(f.long, a.longExamples(name, schema)...)
	}
	inside := at
	inside.prefix = name + "."
	inside.depth++
	if itemsOf(a.resolve(schema)) != nil {
		inside.prefix = name
	}
	a.properties(f, t, schema, inside)
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

// values writes the values that a schema allows, where it names them: at most most of them.
func (a *api) values(s any, most int) string {
	e := enumeration{most: most, known: map[string]bool{}}
	a.enumerate(&e, s, 0)
	switch {
	case e.values == nil:
		return ""
	case len(e.known) > most:
		return "One of " + strings.Join(e.values, ", ") + ", and more."
	}
	return "One of " + strings.Join(e.values, ", ") + "."
}

type enumeration struct {
	most   int
	values []string
	known  map[string]bool
}

func (a *api) enumerate(e *enumeration, s any, depth int) {
	s = a.resolve(s)
	if depth > 3 || s == nil || a.tooLong() {
		return
	}
	values := list(s, "enum")
	if value := field(s, "const"); value != nil {
		values = append(values[:len(values):len(values)], value)
	}
	for _, v := range values {
		text := code(v)
		if len(e.known) > e.most {
			break
		}
		if !e.known[text] && len(e.values) < e.most {
			e.values = append(e.values, text)
		}
		e.known[text] = true
	}
	if field(s, "properties") != nil {
		return
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(s, key) {
			a.enumerate(e, part, depth+1)
		}
	}
	if inside := members(s, "items"); inside != nil {
		a.enumerate(e, inside, depth+1)
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
		a.namedSchema(s.Key, s.Value)
	}
}

func (a *api) namedSchema(name string, s any) {
	if a.tooLong() {
		return
	}
	a.cells = 0
	a.heading(3, oneLine(name))
	a.about(s, 3)
	a.fields(s, &fields{limit: 0})
	for _, e := range a.valuesOf(s) {
		a.example("application/json", e)
	}
}

// options names the schemas of which a schema is one, with the value that says which, and those that a schema is extended by.
func (a *api) options(s any) string {
	s = a.resolve(s)
	by := field(s, "discriminator")
	var lines []string
	for _, key := range []string{"oneOf", "anyOf"} {
		var names []string
		for i, o := range list(s, key)[:min(len(list(s, key)), maxValues)] {
			names = append(names, a.label(o, i)+inBrackets(a.selects(by, o)))
		}
		if names != nil {
			lines = append(lines, map[string]string{"oneOf": "One of: ", "anyOf": "Any of: "}[key]+strings.Join(names, ", ")+".")
		}
	}
	name := str(by, "propertyName")
	if name == "" {
		name, _ = by.(string) // Swagger 2.0
	}
	if name == "" {
		return strings.Join(lines, " ")
	}
	says := code(name) + " says which"
	if lines == nil { // of the schemas that extend this one
		var names []string
		for _, m := range members(by, "mapping") {
			if to, _ := m.Value.(string); len(names) < maxValues {
				names = append(names, code(m.Key)+" "+refName(to))
			}
		}
		if names != nil {
			says += ": " + strings.Join(names, ", ")
		}
	}
	return strings.Join(append(lines, says+"."), " ")
}

// label names the alternative of a number: by its reference, its title, its type, or the fields that it requires.
func (a *api) label(s any, number int) string {
	if ref := str(s, "$ref"); ref != "" {
		return Escape(refName(ref))
	}
	s = a.resolve(s)
	if title := str(s, "title"); title != "" {
		return Escape(title)
	}
	if t := a.typeOf(s, 0); t != "object" && t != "" {
		return t
	}
	var names []string
	for _, name := range list(s, "required") {
		names = append(names, code(name))
	}
	if names != nil && field(s, "properties") == nil {
		return "with " + strings.Join(names[:min(len(names), maxValues)], " and ")
	}
	return fmt.Sprintf("Option %d", number+1)
}

// typeOf names the type of a schema.
func (a *api) typeOf(s any, depth int) string {
	t := a.bareType(s, depth)
	if resolved := a.resolve(s); t != "" && (field(resolved, "nullable") == true || field(resolved, "x-nullable") == true) && !strings.HasSuffix(t, "null") {
		t += " or null"
	}
	return t
}

func (a *api) bareType(s any, depth int) string {
	if a.steps++; depth > 3 || a.tooLong() {
		return ""
	}
	name := ""
	if ref := str(s, "$ref"); ref != "" {
		name = refName(ref)
	}
	s = a.resolve(s)
	if items := itemsOf(s); items != nil {
		t := "array of " + cmp.Or(a.typeOf(items, depth+1), "any")
		if slices.Contains(list(s, "type"), any("null")) {
			t += " or null"
		}
		return t
	}
	var options []string
	add := func(t string) {
		if t != "" && len(options) < 10 && !slices.Contains(options, t) {
			options = append(options, t)
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if name != "" && depth > 0 && list(s, key) != nil {
			return name
		}
		for _, o := range list(s, key) {
			if a.tooLong() {
				return ""
			}
			add(a.typeOf(o, depth+1))
		}
	}
	for _, t := range list(s, "type") {
		if t, ok := t.(string); ok {
			add(t)
		}
	}
	t := cmp.Or(str(s, "type"), strings.Join(options, " or "))
	if t == "" && field(s, "properties") != nil {
		t = "object"
	}
	if parts := list(s, "allOf"); parts != nil && (t == "" || t == "object") && name == "" {
		options = nil
		for _, part := range parts[:min(len(parts), 10)] {
			if own := a.typeOf(part, depth+1); own != "object" {
				add(own)
			}
		}
		t = cmp.Or(strings.Join(options, " and "), t)
	}
	if f := str(s, "format"); f != "" && t != "" {
		t += " (" + f + ")"
	}
	if name != "" && (t == "" || t == "object") {
		return name
	}
	return a.cellText(t)
}
