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
	var long []member
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
			a.b.WriteString("`" + e.key + "`: ")
			a.example("application/json", e.value)
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
func (a *api) parameter(p any) (rows [][]string, long []member) {
	name, in := str(p, "name"), str(p, "in")
	schema := field(p, "schema")
	for _, c := range members(p, "content") {
		schema = field(c.value, "schema")
		long = append(long, a.longExamples(name, c.value)...)
	}
	if schema == nil {
		schema = p // Swagger 2.0
	}
	rows = append(rows, []string{"`" + name + "`", in, a.typeOf(schema, 0), isTrue(field(p, "required") == true), a.cellText(a.describe(p, schema, 0))})
	long = append(append(long, a.longExamples(name, p)...), a.longExamples(name, field(p, "schema"))...)
	f := fields{limit: 2, most: maxRows}
	inside := place{prefix: name + "."}
	if field(a.resolve(schema), "items") != nil {
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
					a.example(e.key, e.value)
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
	if values := a.values(schema, 0, most); values != "" {
		parts = append(parts, values)
	}
	if d := field(resolved, "default"); d != nil {
		switch d.(type) {
		case string, bool, number:
			parts = append(parts, fmt.Sprintf("Default `%v`.", d))
		}
	}
	var short []string
	for _, e := range append(a.valuesOf(p), a.valuesOf(resolved)...) {
		text, isText := e.value.(string)
		if !isText {
			text = string(appendJSON(nil, e.value))
		}
		if code := "`" + text + "`"; len(text) <= maxInline && !slices.Contains(short, code) {
			short = append(short, code)
		}
	}
	if short != nil {
		parts = append(parts, "Example "+strings.Join(short, ", ")+".")
	}
	return strings.Join(parts, " ")
}

// longExamples returns the examples of a field that describe leaves out.
func (a *api) longExamples(name string, s any) (long []member) {
	for _, e := range a.valuesOf(s) {
		if text, isText := e.value.(string); isText && len(text) > maxInline || !isText && len(appendJSON(nil, e.value)) > maxInline {
			long = append(long, member{name, e.value})
		}
	}
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
		a.example(c.key, e.value)
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
	a.schema(schema)
	return false
}

// The maximum sizes in bytes of an example in a table, of an example below it, and
// of all examples of a description. For a longer example only its size is written.
const (
	maxInline   = 200
	maxValuesOf = 50
	maxExample  = 16 << 10
	maxExamples = 4 << 20
)

// valuesOf returns the examples of a parameter, media type or schema, which has one
// example, a list, or a map of objects with one example each.
func (a *api) valuesOf(v any) []member {
	var all []member
	if e := field(v, "example"); e != nil {
		all = append(all, member{"", e})
	}
	for _, e := range list(v, "examples") {
		all = append(all, member{"", e})
	}
	for _, e := range members(v, "examples") {
		if value := field(a.resolve(e.value), "value"); value != nil {
			all = append(all, member{e.key, value})
		}
	}
	return all[:min(len(all), maxValuesOf)]
}

func (a *api) example(media string, value any) {
	text, isText := value.(string)
	language := ""
	if !isText || strings.HasSuffix(media, "json") && json.Valid([]byte(text)) {
		language = "json"
	}
	if !isText {
		var indented bytes.Buffer
		if json.Indent(&indented, appendJSON(nil, value), "", "  ") != nil {
			return
		}
		text = indented.String()
	}
	a.examples += len(text)
	if len(text) > maxExample || a.examples > maxExamples {
		fmt.Fprintf(&a.b, "The example, of %d bytes, is left out.\n\n", len(text))
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(&a.b, "Example:\n\n%s%s\n%s\n%s\n\n", fence, language, strings.Trim(text, "\n"), fence)
}
