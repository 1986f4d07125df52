package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func (a *api) servers() {
	var urls []string
	for _, s := range list(a.root, "servers") {
		if u := str(s, "url"); u != "" {
			urls = append(urls, strings.TrimSpace("- `"+u+"` "+oneLine(str(s, "description"))))
		}
	}
	if h := str(a.root, "host"); h != "" {
		urls = append(urls, "- `"+h+str(a.root, "basePath")+"`")
	}
	if urls != nil {
		a.heading(2, "Servers")
		a.b.WriteString(strings.Join(urls, "\n") + "\n\n")
	}
}

// tags writes what the groups of operations are about.
func (a *api) tags() {
	var lines []string
	for _, t := range list(a.root, "tags") {
		if about := a.cellText(str(t, "description")); about != "" {
			lines = append(lines, "- `"+oneLine(str(t, "name"))+"`: "+about)
		}
	}
	if lines != nil {
		a.heading(2, "Tags")
		a.b.WriteString(strings.Join(lines, "\n") + "\n\n")
	}
}

func (a *api) security() {
	schemes := members(a.root, "components", "securitySchemes")
	if schemes == nil {
		schemes = members(a.root, "securityDefinitions")
	}
	if schemes == nil {
		return
	}
	a.heading(2, "Authentication")
	for _, s := range schemes {
		if a.tooLong() {
			return
		}
		scheme := a.resolve(s.value)
		parts := []string{str(scheme, "type"), str(scheme, "scheme"), str(scheme, "in"), str(scheme, "name")}
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
		a.b.WriteString(strings.TrimSpace(fmt.Sprintf("- `%s`: %s. %s", s.key, strings.Join(parts, " "), a.cellText(str(scheme, "description")))) + "\n")
	}
	a.b.WriteByte('\n')
}

func (a *api) operation(method, path string, item, op any) {
	a.heading(2, strings.ToUpper(method)+" "+path)
	if field(op, "deprecated") == true {
		a.b.WriteString("Deprecated.\n\n")
	}
	summary := oneLine(str(op, "summary"))
	if summary != "" {
		a.b.WriteString(summary + "\n\n")
	}
	if d := str(op, "description"); d != summary {
		a.prose(d, 2)
	}
	var rows [][]string
	var long []sample
	var body any
	for _, p := range slices.Concat(list(item, "parameters"), list(op, "parameters")) {
		if p = a.resolve(p); a.tooLong() {
			return
		}
		if str(p, "in") == "body" {
			body = p
			continue
		}
		more, examples := a.parameter(p)
		rows, long = append(rows, more...), append(long, examples...)
	}
	if rows != nil {
		a.heading(3, "Parameters")
		a.table([]string{"Name", "In", "Type", "Required", "Description"}, rows)
		for _, e := range long {
			a.example("application/json", e)
		}
	}
	if r := a.resolve(field(op, "requestBody")); r != nil {
		a.heading(3, "Request body")
		a.prose(str(r, "description"), 3)
		a.contents(members(r, "content"))
	} else if body != nil {
		a.heading(3, "Request body")
		a.prose(str(body, "description"), 3)
		a.schema(field(body, "schema"))
	}
	a.responses(op)
	a.callbacks(op)
}

// parameter returns the rows of a parameter and of the fields in it, and its examples
// that are too long for a row.
func (a *api) parameter(p any) (rows [][]string, long []sample) {
	name, in := str(p, "name"), str(p, "in")
	schema := field(p, "schema")
	for _, c := range members(p, "content") {
		schema = field(c.value, "schema")
		p = slices.Concat(members(c.value), members(p)) // its examples are there
	}
	if schema == nil {
		schema = p // Swagger 2.0
	}
	rows = append(rows, []string{"`" + name + "`", in, a.typeOf(schema, 0), isTrue(field(p, "required") == true), a.cellText(a.describe(p, schema, 0))})
	long = append(append(long, a.longExamples(name, p)...), a.longExamples(name, field(p, "schema"))...)
	f := fields{limit: 2, most: maxRows}
	inside := place{prefix: name + "."}
	if itemsOf(a.resolve(schema)) != nil {
		inside.prefix = name
	}
	a.properties(&f, schema, inside)
	for _, r := range f.rows {
		rows = append(rows, append([]string{r[0], in}, r[1:]...))
	}
	return rows, append(long, f.long...)
}

// callbacks writes the requests that an API sends for an operation, each as an operation.
func (a *api) callbacks(op any) {
	if a.inCallback {
		return
	}
	a.inCallback = true
	for _, c := range members(op, "callbacks") {
		for _, item := range members(a.resolve(c.value)) {
			a.item("callback "+c.key+" "+item.key, item.value)
		}
	}
	a.inCallback = false
}

// headers writes the headers of a response.
func (a *api) headers(response any) {
	var rows [][]string
	for _, h := range members(response, "headers") {
		header := a.resolve(h.value)
		if a.tooLong() {
			return
		}
		more, _ := a.parameter(append(object{{"name", h.key}, {"in", "header"}}, members(header)...))
		rows = append(rows, more...)
	}
	if rows != nil {
		a.table([]string{"Name", "In", "Type", "Required", "Description"}, rows)
	}
}

func (a *api) responses(op any) {
	var rows [][]string
	if responses := members(op, "responses"); responses != nil {
		a.heading(3, "Responses")
		for _, r := range responses {
			v := a.resolve(r.value)
			if a.tooLong() {
				return
			}
			rows = append(rows, []string{r.key, a.cellText(str(v, "description"))})
		}
		a.table([]string{"Status", "Description"}, rows)
		for _, r := range responses {
			v := a.resolve(r.value)
			if a.tooLong() {
				return
			}
			schema, content := field(v, "schema"), members(v, "content")
			if schema == nil && len(content) == 0 && members(v, "headers") == nil {
				continue
			}
			a.heading(4, "Status "+oneLine(r.key))
			a.headers(v)
			once := !strings.HasPrefix(r.key, "2") // most operations have the same errors
			if schema != nil {
				a.body(schema, once)
				for _, e := range members(v, "examples") { // Swagger 2.0
					a.example(e.key, sample{value: e.value})
				}
			}
			for _, c := range content {
				if a.tooLong() {
					return
				}
				a.media(c, once)
			}
		}
	}
}

func isTrue(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// describe returns the description of a parameter or field, with its values, its default
// and its examples as far as they are short. It names at most most values, 0 for all.
func (a *api) describe(p, schema any, most int) string {
	resolved := a.resolve(schema)
	parts := []string{cmp.Or(str(p, "description"), str(resolved, "description"))}
	if values := a.values(schema, most); values != "" {
		parts = append(parts, values)
	}
	parts = append(parts, a.facts(resolved, append(a.valuesOf(p), a.valuesOf(resolved)...))...)
	return strings.Join(append(parts, a.notes(schema, parts)...), " ")
}

// facts are the default of a schema, and the examples that are short.
func (a *api) facts(s any, examples []sample) (out []string) {
	if d := field(s, "default"); d != nil {
		switch d.(type) {
		case string, bool, number:
			out = append(out, fmt.Sprintf("Default `%v`.", d))
		}
	}
	var short []string
	for _, e := range examples {
		text, isText := e.value.(string)
		if !isText {
			text = string(appendJSON(nil, e.value))
		}
		code := "`" + text + "`"
		if e.label != "" {
			code += " (" + e.label + ")"
		}
		if len(text) <= maxInline && !slices.Contains(short, code) {
			short = append(short, code)
		}
	}
	if short != nil {
		out = append(out, "Example "+strings.Join(short, ", ")+".")
	}
	return out
}

// notes are what the parts of a schema say that have no name: descriptions, defaults and
// short examples, but for what is known. Where a part is one of several, its note names it.
func (a *api) notes(s any, known []string) (out []string) {
	a.unnamed(s, 0, func(part any, name string) {
		var says []string
		for _, text := range append([]string{str(part, "description")}, a.facts(part, a.valuesOf(part))...) {
			if text != "" && !slices.Contains(known, text) {
				says, known = append(says, text), append(known[:len(known):len(known)], text)
			}
		}
		if says != nil {
			out = append(out, name+strings.Join(says, " "))
		}
	})
	return out
}

// unnamed calls one for each part of a schema that has no name: what it is all, one or any of,
// and what its arrays and maps hold. Parts with names are in the section of all schemas: of
// them one gets what is said here.
func (a *api) unnamed(s any, depth int, one func(part any, name string)) {
	if isNamed(str(s, "$ref")) || depth > maxParts || a.tooLong() {
		return
	}
	s = a.resolve(s)
	visit := func(part any, name string) {
		if isNamed(str(part, "$ref")) {
			one(object{{"description", field(part, "description")}}, name) // what this place says about it
			return
		}
		one(a.resolve(part), name)
		a.unnamed(part, depth+1, one)
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		parts := list(s, key)
		others := slices.IndexFunc(parts, func(p any) bool { return str(p, "type") != "null" })
		several := others >= 0 && slices.ContainsFunc(parts[others+1:], func(p any) bool { return str(p, "type") != "null" })
		for _, part := range parts {
			name := ""
			if key != "allOf" && several {
				name = a.nameOf(part)
			}
			visit(part, name)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inside := members(s, key); inside != nil {
			visit(inside, "")
		}
	}
}

// nameOf says in a note which of several parts it is about.
func (a *api) nameOf(part any) string {
	if ref := str(part, "$ref"); isNamed(ref) {
		return refName(ref) + ": "
	}
	part = a.resolve(part)
	values := list(part, "enum")
	if value := field(part, "const"); value != nil {
		values = []any{value}
	}
	if len(values) == 1 {
		return fmt.Sprintf("`%v`: ", values[0])
	}
	if name := cmp.Or(oneLine(str(part, "title")), a.typeOf(part, 0)); name != "" {
		return name + ": "
	}
	return ""
}

// longExamples returns the examples of a field, and of its parts, that describe leaves out.
func (a *api) longExamples(name string, s any) (long []sample) {
	add := func(part any, _ string) {
		for _, e := range a.valuesOf(part) {
			if text, isText := e.value.(string); isText && len(text) > maxInline || !isText && len(appendJSON(nil, e.value)) > maxInline {
				e.field = name
				long = append(long, e)
			}
		}
	}
	add(s, "")
	a.unnamed(s, 0, add)
	return long
}

func (a *api) contents(content object) {
	for _, c := range content {
		if a.tooLong() {
			return
		}
		a.media(c, false)
	}
}

// media writes the schema and the examples of a body in one of its media types.
func (a *api) media(c member, once bool) {
	fmt.Fprintf(&a.b, "`%s`\n\n", oneLine(c.key))
	named := a.body(field(c.value, "schema"), once)
	examples := a.valuesOf(c.value)
	if len(examples) == 0 && !named {
		examples = a.valuesOf(a.resolve(field(c.value, "schema")))
	}
	for _, e := range examples {
		a.example(c.key, e)
	}
}

// body writes a schema. once means that a schema with a name is written the first
// time, and only named after that.
func (a *api) body(schema any, once bool) (named bool) {
	ref := str(schema, "$ref")
	if once && ref != "" {
		if a.written[ref] {
			a.b.WriteString(a.typeOf(schema, 0) + "\n\n")
			return true
		}
		a.written[ref] = true
	}
	if !isNamed(ref) {
		a.about(schema, 4)
	}
	a.schema(schema)
	return false
}

// about writes the description of a schema, and what its parts without names say.
func (a *api) about(s any, depth int) {
	description := str(a.resolve(s), "description")
	a.prose(description, depth)
	if notes := a.notes(s, []string{description}); notes != nil {
		for _, note := range notes {
			a.b.WriteString("- " + unlink(oneLine(note), nil) + "\n")
		}
		a.b.WriteByte('\n')
	}
}

// The maximum sizes in bytes of an example in a table, of an example below it, and
// of all examples of a description. For a longer example only its size is written.
const (
	maxInline   = 200
	maxValuesOf = 50
	maxExample  = 16 << 10
	maxExamples = 4 << 20
)

// sample is an example.
type sample struct {
	field string // whose it is; "": that of what is above it
	label string // what its author says about it
	value any
}

// valuesOf returns the examples of a parameter, media type or schema, which has one
// example, a list, or a map of objects with one example each.
func (a *api) valuesOf(v any) []sample {
	var all []sample
	if e := field(v, "example"); e != nil {
		all = append(all, sample{value: e})
	}
	for _, e := range list(v, "examples") {
		all = append(all, sample{value: e})
	}
	for _, e := range members(v, "examples") {
		one := a.resolve(e.value)
		if value := field(one, "value"); value != nil {
			label := oneLine(str(one, "summary") + " " + str(one, "description"))
			all = append(all, sample{label: unlink(label, nil), value: value})
		}
	}
	return all[:min(len(all), maxValuesOf)]
}

func (a *api) example(media string, e sample) {
	text, isText := e.value.(string)
	language := ""
	if !isText || strings.HasSuffix(media, "json") && json.Valid([]byte(text)) {
		language = "json"
	}
	if !isText {
		var indented bytes.Buffer
		if json.Indent(&indented, appendJSON(nil, e.value), "", "  ") != nil {
			return
		}
		text = indented.String()
	}
	a.examples += len(text)
	if len(text) > maxExample || a.examples > maxExamples {
		fmt.Fprintf(&a.b, "The example, of %d bytes, is left out.\n\n", len(text))
		return
	}
	fence := fenceFor(text)
	if e.field != "" {
		a.b.WriteString("`" + e.field + "`: ")
	}
	a.b.WriteString("Example")
	if e.label != "" {
		a.b.WriteString(" (" + e.label + ")")
	}
	fmt.Fprintf(&a.b, ":\n\n%s%s\n%s\n%s\n\n", fence, language, strings.Trim(text, "\n"), fence)
}
