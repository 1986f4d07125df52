package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// servers writes the servers of a description, a path or an operation, with what may stand in their addresses.
func (a *api) servers(of any, depth int) {
	var lines []string
	for _, s := range list(of, "servers") {
		if u := str(s, "url"); u != "" {
			lines = append(lines, strings.TrimSpace("- "+code(u)+" "+a.cellText(str(s, "name")+" "+str(s, "description"))))
		}
		for _, v := range members(s, "variables") {
			lines = append(lines, "  - "+code("{"+v.Key+"}")+": "+a.cellText(strings.TrimSpace(a.describe(v.Value, v.Value, maxValues))))
		}
	}
	if h := str(of, "host"); h != "" {
		schemes := list(of, "schemes")
		if schemes == nil {
			schemes = []any{""}
		}
		for _, scheme := range schemes {
			address := fmt.Sprintf("%v://%s%s", scheme, h, str(of, "basePath"))
			lines = append(lines, "- "+code(strings.TrimPrefix(address, "://")))
		}
	}
	if lines != nil && !a.tooLong() {
		a.heading(depth, "Servers")
		a.b.WriteString(strings.Join(lines, "\n") + "\n\n")
	}
}

// tags writes what the groups of operations are about.
func (a *api) tags() {
	var lines []string
	for _, t := range list(a.root, "tags") {
		if about := a.cellText(str(t, "summary") + " " + str(t, "description")); about != "" {
			lines = append(lines, "- `"+oneLine(str(t, "name"))+"`: "+about)
		}
	}
	if lines != nil {
		a.heading(2, "Tags")
		a.b.WriteString(strings.Join(lines, "\n") + "\n\n")
	}
}

// security writes the ways to authenticate, and which of them all operations require.
func (a *api) security() {
	schemes := members(a.root, "components", "securitySchemes")
	if schemes == nil {
		schemes = members(a.root, "securityDefinitions")
	}
	required := a.requirements(a.root)
	if schemes == nil && required == "" {
		return
	}
	a.heading(2, "Authentication")
	for _, s := range schemes {
		if a.tooLong() {
			return
		}
		a.scheme(s.Key, a.resolve(s.Value))
	}
	if schemes != nil {
		a.b.WriteByte('\n')
	}
	if required != "" {
		a.b.WriteString("Required unless an operation says otherwise: " + required + ".\n\n")
	}
}

// scheme writes a way to authenticate, with its flows and their scopes.
func (a *api) scheme(name string, scheme any) {
	var parts []string
	for _, key := range []string{"type", "scheme", "bearerFormat", "in", "name", "flow"} {
		if part := str(scheme, key); part != "" {
			parts = append(parts, part)
		}
	}
	says := []string{strings.Join(parts, " ") + ".", str(scheme, "description")}
	if field(scheme, "deprecated") == true {
		says = append(says, "Deprecated.")
	}
	if at := str(scheme, "openIdConnectUrl"); at != "" {
		says = append(says, code(at))
	}
	a.b.WriteString("- " + code(name) + ": " + strings.TrimSpace(a.cellText(strings.Join(says, " "))) + "\n")
	flows := members(scheme, "flows")
	if str(scheme, "flow") != "" {
		flows = object{{Key: str(scheme, "flow"), Value: scheme}} // Swagger 2.0
	}
	for _, flow := range flows {
		var at []string
		for _, key := range []string{"authorizationUrl", "deviceAuthorizationUrl", "tokenUrl", "refreshUrl"} {
			if u := str(flow.Value, key); u != "" {
				at = append(at, key+" "+code(u))
			}
		}
		a.b.WriteString("  - " + strings.TrimSpace(oneLine(flow.Key)+" "+a.cellText(strings.Join(at, ", "))) + "\n")
		for _, scope := range members(flow.Value, "scopes") {
			if a.tooLong() {
				return
			}
			a.b.WriteString("    - " + code(scope.Key) + ": " + a.cellText(str(flow.Value, "scopes", scope.Key)) + "\n")
		}
	}
}

// requirements says what an operation requires to authenticate: one of several alternatives, each with all of its parts; "" if it
// does not say.
func (a *api) requirements(of any) string {
	if field(of, "security") == nil {
		return ""
	}
	var options []string
	for _, alternative := range list(of, "security") {
		var all []string
		for _, scheme := range members(alternative) {
			var scopes []string
			for _, scope := range list(scheme.Value) {
				scopes = append(scopes, code(scope))
			}
			all = append(all, code(scheme.Key)+inBrackets(strings.Join(scopes[:min(len(scopes), maxValues)], ", ")))
		}
		options = append(options, cmp.Or(strings.Join(all[:min(len(all), maxValues)], " and "), "none"))
	}
	return cmp.Or(strings.Join(options[:min(len(options), maxValues)], ", or "), "none")
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
	if required := cmp.Or(a.requirements(op), a.requirements(a.root)); required != "" {
		a.b.WriteString("Authentication: " + required + ".\n\n")
	}
	if list(op, "servers") != nil {
		a.servers(op, 3)
	} else {
		a.servers(item, 3)
	}
	body := a.parameters(slices.Concat(list(item, "parameters"), list(op, "parameters")))
	if r := a.resolve(field(op, "requestBody")); r != nil {
		a.heading(3, "Request body")
		if field(r, "required") == true {
			a.b.WriteString("Required.\n\n")
		}
		a.prose(str(r, "description"), 3)
		a.contents(members(r, "content"), false)
	} else if body != nil {
		a.heading(3, "Request body")
		a.prose(str(body, "description"), 3)
		a.schema(field(body, "schema"))
	}
	a.responses(op)
	a.callbacks(op)
}

// parameters writes the parameters of an operation, and returns the body, which is one in Swagger 2.0. A parameter of the operation
// replaces its path's.
func (a *api) parameters(all []any) (body any) {
	var rows [][]string
	var long []sample
	last := map[[2]string]int{}
	for i, p := range all {
		all[i] = a.resolve(p)
		last[[2]string{str(all[i], "in"), str(all[i], "name")}] = i
	}
	for i, p := range all {
		switch {
		case a.tooLong():
			return nil
		case p == nil || last[[2]string{str(p, "in"), str(p, "name")}] != i:
		case str(p, "in") == "body":
			body = p
		default:
			more, examples := a.parameter(p)
			rows, long = append(rows, more...), append(long, examples...)
		}
	}
	if rows != nil {
		a.heading(3, "Parameters")
		a.table([]string{"Name", "In", "Type", "Required", "Description"}, rows)
		for _, e := range long {
			a.example("application/json", e)
		}
	}
	return body
}

// parameter returns the rows of a parameter and of the fields in it, and its examples
// that are too long for a row.
func (a *api) parameter(p any) (rows [][]string, long []sample) {
	name, in := str(p, "name"), str(p, "in")
	schema := field(p, "schema")
	for _, c := range members(p, "content") {
		schema = field(c.Value, "schema")
		p = slices.Concat(members(c.Value), members(p)) // its examples are there
	}
	if schema == nil {
		schema = p // Swagger 2.0
	}
	rows = append(rows, []string{code(name), in, a.typeOf(schema, 0), isTrue(field(p, "required") == true), a.cellText(a.describe(p, schema, maxEnum))})
	long = append(append(long, a.longExamples(name, p)...), a.longExamples(name, field(p, "schema"))...)
	f := fields{limit: 2, most: maxRows}
	inside := place{prefix: name + "."}
	if itemsOf(a.resolve(schema)) != nil {
		inside.prefix = name
	}
	a.properties(&f, f.table(""), schema, inside)
	for _, t := range f.tables {
		if t.about != "" && t.rows != nil { // an alternative is named in a row of its own
			rows = append(rows, []string{t.about, in, "", "", ""})
		}
		for _, r := range t.rows {
			rows = append(rows, append([]string{r[0], in}, r[1:]...))
		}
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
		for _, item := range members(a.resolve(c.Value)) {
			a.item("callback "+c.Key+" "+item.Key, item.Value)
		}
	}
	a.inCallback = false
}

// headers writes the headers of a response.
func (a *api) headers(response any) {
	var rows [][]string
	for _, h := range members(response, "headers") {
		header := a.resolve(h.Value)
		if a.tooLong() {
			return
		}
		more, _ := a.parameter(append(object{{Key: "name", Value: h.Key}, {Key: "in", Value: "header"}}, members(header)...))
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
			v := a.resolve(r.Value)
			if a.tooLong() {
				return
			}
			rows = append(rows, []string{r.Key, a.cellText(cmp.Or(str(v, "description"), str(v, "summary")))})
		}
		a.table([]string{"Status", "Description"}, rows)
		for _, r := range responses {
			v := a.resolve(r.Value)
			if a.tooLong() {
				return
			}
			schema, content := field(v, "schema"), members(v, "content")
			if schema == nil && len(content) == 0 && members(v, "headers") == nil {
				continue
			}
			a.heading(4, "Status "+oneLine(r.Key))
			a.headers(v)
			once := !strings.HasPrefix(r.Key, "2") // most operations have the same errors
			if schema != nil {
				a.body(schema, once)
				for _, e := range members(v, "examples") { // Swagger 2.0
					a.example(e.Key, sample{value: e.Value})
				}
			}
			a.contents(content, once)
		}
	}
}

func isTrue(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// describe returns the description of a parameter or field, with its values, its limits, its default
// and its examples as far as they are short. It names at most most values.
func (a *api) describe(p, schema any, most int) string {
	resolved := a.resolve(schema)
	parts := []string{cmp.Or(str(p, "description"), str(resolved, "description"))}
	if field(p, "deprecated") == true && field(resolved, "deprecated") != true {
		parts = append(parts, "Deprecated.")
	}
	if values := a.values(schema, most); values != "" {
		parts = append(parts, values)
	}
	parts = append(parts, a.facts(resolved, append(a.valuesOf(p), a.valuesOf(resolved)...))...)
	return strings.Join(append(parts, a.notes(schema, parts)...), " ")
}

// bounds are the words for two limits of a schema, each of which may be missing.
var bounds = []struct{ least, most, text string }{
	{"minLength", "maxLength", "Length %s."}, {"minItems", "maxItems", "Items: %s."}, {"minProperties", "maxProperties", "Fields: %s."},
}

// limits say what a value must be, and who may set it.
func limits(s any) (out []string) {
	for _, key := range [][2]string{{"deprecated", "Deprecated."}, {"readOnly", "Read-only."}, {"writeOnly", "Write-only."}, {"uniqueItems", "Items are unique."}} {
		if field(s, key[0]) == true {
			out = append(out, key[1])
		}
	}
	for _, l := range [][3]string{{"minimum", "exclusiveMinimum", "Minimum %s."}, {"maximum", "exclusiveMaximum", "Maximum %s."}} {
		value, exclusive := str(s, l[0]), str(s, l[1]) // a number from OpenAPI 3.1 on
		if value != "" && field(s, l[1]) == true {
			value, exclusive = "", value
		}
		if value != "" {
			out = append(out, fmt.Sprintf(l[2], oneLine(value)))
		}
		if exclusive != "" {
			out = append(out, fmt.Sprintf(l[2], oneLine(exclusive)+", exclusive"))
		}
	}
	for _, l := range bounds {
		switch least, most := oneLine(str(s, l.least)), oneLine(str(s, l.most)); {
		case least != "" && least == most:
			out = append(out, fmt.Sprintf(l.text, least))
		case least != "" && most != "":
			out = append(out, fmt.Sprintf(l.text, least+" to "+most))
		case least != "":
			out = append(out, fmt.Sprintf(l.text, "at least "+least))
		case most != "":
			out = append(out, fmt.Sprintf(l.text, "at most "+most))
		}
	}
	if step := oneLine(str(s, "multipleOf")); step != "" {
		out = append(out, "Multiple of "+step+".")
	}
	if pattern := str(s, "pattern"); pattern != "" && len(pattern) <= maxInline {
		out = append(out, "Pattern "+code(pattern)+".")
	}
	if more := field(s, "additionalProperties"); more == false || more == true {
		out = append(out, map[any]string{true: "Other fields are allowed.", false: "No other fields are allowed."}[more])
	}
	return out
}

// facts are the limits and the default of a schema, and the examples that are short.
func (a *api) facts(s any, examples []sample) []string {
	out := limits(s)
	if d := field(s, "default"); d != nil {
		if text := code(d); len(text) <= maxInline {
			out = append(out, "Default "+text+".")
		}
	}
	var short []string
	for _, e := range examples {
		text := code(e.value)
		fits := len(text) <= maxInline+len("``")
		if text += inBrackets(e.label); fits && !slices.Contains(short, text) {
			short = append(short, text)
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
			one(object{{Key: "description", Value: field(part, "description")}}, name) // what this place says about it
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
	if inside := members(s, "items"); inside != nil {
		visit(inside, "Each: ")
	}
}

// nameOf says in a note which of several parts it is about.
func (a *api) nameOf(part any) string {
	if ref := str(part, "$ref"); isNamed(ref) {
		return refName(ref) + ": "
	}
	part = a.resolve(part)
	if value := single(part); value != nil {
		return code(value) + ": "
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

// contents writes the schema and the examples of a body in each of its media types.
func (a *api) contents(content object, once bool) {
	for _, c := range content {
		if a.tooLong() {
			return
		}
		fmt.Fprintf(&a.b, "`%s`\n\n", oneLine(c.Key))
		named := a.body(field(c.Value, "schema"), once)
		if item := field(c.Value, "itemSchema"); item != nil { // of a stream, from OpenAPI 3.2 on
			a.b.WriteString("Each item:\n\n")
			named = a.body(item, once)
		}
		examples := a.valuesOf(c.Value)
		if len(examples) == 0 && !named {
			examples = a.valuesOf(a.resolve(field(c.Value, "schema")))
		}
		for _, e := range examples {
			a.example(c.Key, e)
		}
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
		one := a.resolve(e.Value)
		value := field(one, "value")
		for _, key := range []string{"dataValue", "serializedValue"} { // from OpenAPI 3.2 on
			if value == nil {
				value = field(one, key)
			}
		}
		if value != nil {
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
