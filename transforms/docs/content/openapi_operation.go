package content

import (
	"bytes"
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
	if at(op, "deprecated") == true {
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
	var body any
	for _, p := range slices.Concat(list(item, "parameters"), list(op, "parameters")) {
		if p = a.resolve(p); a.tooLong() {
			return
		}
		if str(p, "in") == "body" {
			body = p
			continue
		}
		schema := at(p, "schema")
		if schema == nil {
			schema = p // Swagger 2.0
		}
		rows = append(rows, []string{"`" + str(p, "name") + "`", str(p, "in"), a.typeOf(schema, 0), isTrue(at(p, "required")), a.cellText(a.describe(p, schema))})
	}
	if rows != nil {
		a.heading(3, "Parameters")
		a.table([]string{"Name", "In", "Type", "Required", "Description"}, rows)
	}
	if r := a.resolve(at(op, "requestBody")); r != nil {
		a.heading(3, "Request body")
		a.prose(str(r, "description"), 3)
		a.contents(members(r, "content"))
	} else if body != nil {
		a.heading(3, "Request body")
		a.prose(str(body, "description"), 3)
		a.schema(at(body, "schema"))
	}
	a.responses(op)
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
			schema, content := at(v, "schema"), members(v, "content")
			if schema == nil && len(content) == 0 {
				continue
			}
			a.heading(4, "Status "+oneLine(r.key))
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

func isTrue(v any) string {
	if v == true {
		return "yes"
	}
	return "no"
}

func (a *api) describe(p, schema any) string {
	parts := []string{str(p, "description")}
	if parts[0] == "" {
		parts[0] = str(a.resolve(schema), "description")
	}
	resolved := a.resolve(schema)
	var values []string
	enum := list(resolved, "enum")
	for _, v := range enum[:min(len(enum), 20)] {
		values = append(values, fmt.Sprintf("`%v`", v))
	}
	if values != nil {
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if d := at(resolved, "default"); d != nil {
		switch d.(type) {
		case string, bool, number:
			parts = append(parts, fmt.Sprintf("Default `%v`.", d))
		}
	}
	for _, e := range append(a.valuesOf(p), a.valuesOf(resolved)...) {
		if text := appendJSON(nil, e.value); len(text) <= maxInline {
			parts = append(parts, "Example `"+strings.Trim(string(text), `"`)+"`.")
			break
		}
	}
	return strings.Join(parts, " ")
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
	if a.body(at(c.value, "schema"), once) {
		return
	}
	examples := a.valuesOf(c.value)
	if len(examples) == 0 {
		examples = a.valuesOf(a.resolve(at(c.value, "schema")))
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
	maxExample  = 16 << 10
	maxExamples = 4 << 20
)

// valuesOf returns the examples of a parameter, media type or schema, which has one
// example, a list, or a map of objects with one example each.
func (a *api) valuesOf(v any) []member {
	if e := at(v, "example"); e != nil {
		return []member{{"", e}}
	}
	var all []member
	for _, e := range list(v, "examples") {
		all = append(all, member{"", e})
	}
	for _, e := range members(v, "examples") {
		if value := at(a.resolve(e.value), "value"); value != nil {
			all = append(all, member{e.key, value})
		}
	}
	return all[:min(len(all), 10)]
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
