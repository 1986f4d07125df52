package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// ErrNotOpenAPI says that a document is no OpenAPI or Swagger description, or
// one that cannot be read: the page is skipped.
var ErrNotOpenAPI = errors.New("no OpenAPI or Swagger description")

// maxOpenAPI bounds in bytes what a description may grow to: references let a
// small one say the same things at each operation.
const maxOpenAPI = 16 << 20

// maxSteps bounds the references and schemas that are looked at for the same reason.
const maxSteps = 4 << 20

// object is a mapping in document order, member by member; values are object,
// []any, string (numbers too), bool or nil.
type object []member

type member struct {
	key   string
	value any
}

// describesAPI reports whether a document has openapi or swagger at its top level.
func describesAPI(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	if len(body) == 0 {
		return false
	}
	switch body[0] {
	case '{':
	case '<':
		return false // a page that shows one
	default:
		return yamlVersion.Match(body[:min(len(body), 64<<10)])
	}
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		if key == "openapi" || key == "swagger" {
			return d.PeekKind() == '"' || d.PeekKind() == '0'
		}
		if err := d.SkipValue(); err != nil {
			return false
		}
	}
	return false
}

var yamlVersion = regexp.MustCompile(`(?m)^["']?(openapi|swagger)["']?[ \t]*:[ \t]*["']?[0-9]`)

// isJSON reports whether a whole document is one JSON value.
func isJSON(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.SkipValue() != nil {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

// readObject reads JSON or YAML.
func readObject(text string) (object, error) {
	if strings.HasPrefix(text, "{") {
		d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		v, err := readJSON(d, 0)
		if err != nil {
			return nil, err
		}
		return v.(object), nil
	}
	v, err := yamltext.Document([]byte(text))
	if err != nil {
		return nil, err
	}
	o, _ := ordered(v).(object)
	return o, nil
}

// number is a JSON number as it was written.
type number string

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, part := range []any{m.key, m.value} {
			text, err := json.Marshal(part)
			if err != nil {
				return nil, err
			}
			if j > 0 {
				b.WriteByte(':')
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// maxDepth bounds the nesting of a description.
const maxDepth = 200

func readJSON(d *jsontext.Decoder, depth int) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("the JSON is nested too deep")
	}
	switch t.Kind() {
	case '{':
		o := object{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			o = append(o, member{key, v})
		}
		_, err := d.ReadToken()
		return o, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	case 't', 'f':
		return t.Bool(), nil
	case 'n':
		return nil, nil
	case '0':
		return number(t.String()), nil
	}
	return t.String(), nil
}

func ordered(v any) any {
	switch v := v.(type) {
	case yamltext.Mapping:
		o := make(object, len(v))
		for i, m := range v {
			o[i] = member{m.Key, ordered(m.Value)}
		}
		return o
	case yamltext.Number:
		return number(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = ordered(v[i])
		}
		return list
	}
	return v
}

// at is the value under a chain of keys, nil where there is none.
func at(v any, keys ...string) any {
	for _, key := range keys {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		i := slices.IndexFunc(o, func(m member) bool { return m.key == key })
		if i < 0 {
			return nil
		}
		v = o[i].value
	}
	return v
}

func str(v any, keys ...string) string {
	switch s := at(v, keys...).(type) {
	case string:
		return strings.TrimSpace(s)
	case number: // "openapi: 3.1"
		return string(s)
	}
	return ""
}

func list(v any, keys ...string) []any {
	l, ok := at(v, keys...).([]any)
	if !ok {
		return nil
	}
	return l
}

func members(v any, keys ...string) object {
	o, ok := at(v, keys...).(object)
	if !ok {
		return nil
	}
	return o
}

// api renders a description.
type api struct {
	root  object
	b     strings.Builder
	index map[*member]map[string]any // of objects with many members, by the first

	written  map[string]bool // named schemas of errors
	examples int             // bytes

	steps int
	cells int // bytes, of the operation at hand
	full  bool
}

// over says that the description unfolds to more than is worth reading; from then
// on everything is empty.
func (a *api) over() bool {
	a.full = a.full || a.steps > maxSteps || a.b.Len()+a.cells > maxOpenAPI
	return a.full
}

// ExtractOpenAPI renders an OpenAPI (2.0 to 3.1) description in JSON or YAML,
// one section an operation. Other documents are ErrNotOpenAPI.
func ExtractOpenAPI(body []byte) (Page, error) {
	text, _, err := charset.Decode(body, "")
	if err != nil {
		return Page{}, fmt.Errorf("reading the description: %w", err)
	}
	root, err := readObject(strings.TrimLeft(text, " \t\r\n\ufeff"))
	if err != nil {
		return Page{}, fmt.Errorf("reading the description: %w: %w", ErrNotOpenAPI, err)
	}
	if str(root, "openapi") == "" && str(root, "swagger") == "" {
		return Page{}, ErrNotOpenAPI
	}
	a := api{root: root, index: make(map[*member]map[string]any), written: make(map[string]bool)}
	title := oneLine(str(root, "info", "title"))
	if title == "" {
		title = "API"
	}
	a.heading(1, title)
	a.prose(str(root, "info", "description"), 1)
	a.servers()
	a.security()
	for _, path := range members(root, "paths") {
		a.item(path.key, path.value)
	}
	for _, hook := range members(root, "webhooks") {
		a.item("webhook "+hook.key, hook.value)
	}
	if a.over() {
		return Page{}, fmt.Errorf("the description's references unfold to over %d bytes or %d steps: %w", maxOpenAPI, maxSteps, ErrNotOpenAPI)
	}
	return Page{Title: shortTitle(title), Markdown: MaskEmails(strings.TrimSpace(a.b.String()))}, nil
}

// item writes the operations of a path, or of a webhook.
func (a *api) item(name string, v any) {
	item := a.resolve(v)
	for _, operation := range members(item) {
		if !slices.Contains(methods, operation.key) {
			continue
		}
		a.operation(operation.key, oneLine(name), item, operation.value)
		if a.over() {
			return
		}
		a.cells = 0 // they are written
	}
}

// methods are the operations of a path item (OpenAPI 3.1.1 section 4.8.9).
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (a *api) heading(depth int, text string) {
	fmt.Fprintf(&a.b, "%s %s\n\n", strings.Repeat("#", depth), text)
}

// prose writes a description, which is Markdown: its headings below depth, its
// links as text.
func (a *api) prose(markdown string, depth int) {
	if markdown == "" {
		return
	}
	fenced := false
	for l := range strings.SplitSeq(strings.ReplaceAll(markdown, "\r\n", "\n"), "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		} else if !fenced {
			if text := strings.TrimLeft(l, "#"); len(text) < len(l) && strings.HasPrefix(text, " ") {
				l = strings.Repeat("#", min(6, len(l)-len(text)+depth)) + text
			}
			l = unlink(l)
		}
		a.b.WriteString(l)
		a.b.WriteByte('\n')
	}
	if fenced {
		a.b.WriteString("```\n")
	}
	a.b.WriteByte('\n')
}

var (
	inlineImage = regexp.MustCompile(`!\[([^\]\n]*)\]\([^)\n]*\)`)
	inlineLink  = regexp.MustCompile(`\[([^\]\n]*)\]\([^)\n]*\)`)
)

// unlink replaces the links in a line of Markdown by their text and the images by
// their alternative text, as in pages. Text in backticks is code and stays.
func unlink(l string) string {
	for _, kind := range []struct {
		found *regexp.Regexp
		text  string
	}{{inlineImage, "[이미지: %s]"}, {inlineLink, "%s"}} {
		var b strings.Builder
		done, ticks := 0, 0
		for _, at := range kind.found.FindAllStringSubmatchIndex(l, -1) {
			ticks += strings.Count(l[done:at[0]], "`")
			b.WriteString(l[done:at[0]])
			if done = at[1]; ticks%2 == 0 {
				fmt.Fprintf(&b, kind.text, l[at[2]:at[3]])
			} else {
				b.WriteString(l[at[0]:at[1]])
			}
			ticks += strings.Count(l[at[0]:at[1]], "`")
		}
		l = b.String() + l[done:]
	}
	return l
}

// unlinked is Markdown with unlink's lines, but for those of code.
func unlinked(markdown string) string {
	lines := strings.Split(markdown, "\n")
	fence := ""
	for i, l := range lines {
		mark := strings.TrimLeft(l, " ")
		n := max(len(mark)-len(strings.TrimLeft(mark, "`")), len(mark)-len(strings.TrimLeft(mark, "~")))
		switch {
		case fence == "" && n >= 3 && !strings.Contains(mark[n:], "`"):
			fence = mark[:n]
		case fence != "" && n >= len(fence) && strings.HasPrefix(mark, fence):
			fence = ""
		case fence == "":
			lines[i] = unlink(l)
		}
	}
	return strings.Join(lines, "\n")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cellText is Markdown for a table's cell.
func (a *api) cellText(s string) string {
	if a.cells += len(s); a.over() {
		return ""
	}
	s = inlineLink.ReplaceAllString(inlineImage.ReplaceAllString(oneLine(s), "[이미지: $1]"), "$1")
	return strings.ReplaceAll(s, "|", `\|`)
}

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
		if a.over() {
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
		if p = a.resolve(p); a.over() {
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
		rows = append(rows, []string{"`" + str(p, "name") + "`", str(p, "in"), a.typeOf(schema, 0), yes(at(p, "required")), a.cellText(a.about(p, schema))})
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
			if a.over() {
				return
			}
			rows = append(rows, []string{r.key, a.cellText(str(v, "description"))})
		}
		a.table([]string{"Status", "Description"}, rows)
		for _, r := range responses {
			v := a.resolve(r.value)
			if a.over() {
				return
			}
			schema, content := at(v, "schema"), members(v, "content")
			if schema == nil && len(content) == 0 {
				continue
			}
			a.heading(4, "Status "+oneLine(r.key))
			once := !strings.HasPrefix(r.key, "2") // the errors of all operations are mostly the same
			if schema != nil {
				a.body(schema, once)
				for _, e := range members(v, "examples") { // Swagger 2.0
					a.example(e.key, e.value)
				}
			}
			for _, c := range content {
				if a.over() {
					return
				}
				a.media(c, once)
			}
		}
	}
}

func yes(v any) string {
	if v == true {
		return "yes"
	}
	return "no"
}

func (a *api) about(p, schema any) string {
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
		if text, err := json.Marshal(e.value); err == nil && len(text) <= maxInline {
			parts = append(parts, "Example `"+strings.Trim(string(text), `"`)+"`.")
			break
		}
	}
	return strings.Join(parts, " ")
}

func (a *api) contents(content object) {
	for _, c := range content {
		if a.over() {
			return
		}
		a.media(c, false)
	}
}

// media writes what a body is in one of its media types: the schema and its
// examples.
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

// body writes a schema; once says that one with a name is written where it comes
// first, and only named from there on.
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

// maxInline, maxExample and maxExamples are how many bytes an example in a table,
// one below it, and all of a description may have. A longer one is named only.
const (
	maxInline   = 200
	maxExample  = 16 << 10
	maxExamples = 4 << 20
)

// valuesOf are the examples that a parameter, media type or schema gives: one, a
// list, or a map of objects that hold one.
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
		indented, err := json.MarshalIndent(value, "", "  ")
		if err != nil { // text that is no UTF-8
			return
		}
		text = string(indented)
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

// schema writes the properties of a schema, those of objects in it to the third
// level, as a table.
func (a *api) schema(s any) {
	var rows [][]string
	a.properties(s, "", 0, &rows)
	if rows == nil {
		if t := a.typeOf(s, 0); t != "" {
			a.b.WriteString(t + "\n\n")
		}
		return
	}
	a.table([]string{"Property", "Type", "Required", "Description"}, rows)
}

// maxArrays is how many arrays of arrays are looked into.
const maxArrays = 4

// maxRows bounds the table of one schema.
const maxRows = 200

func (a *api) properties(s any, prefix string, depth int, rows *[][]string) {
	s = a.resolve(s)
	if depth > 2 || s == nil {
		return
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(s, key) {
			if a.over() {
				return
			}
			a.properties(part, prefix, depth+1, rows)
		}
	}
	if items := at(s, "items"); items != nil {
		if !strings.HasSuffix(prefix, strings.Repeat("[].", maxArrays)) { // else perhaps an array of itself
			a.properties(items, prefix+"[].", depth, rows)
		}
		return
	}
	required := list(s, "required")
	for _, p := range members(s, "properties") {
		if len(*rows) == maxRows || a.over() {
			return
		}
		needed := "no"
		if slices.ContainsFunc(required, func(v any) bool { return v == any(p.key) }) {
			needed = "yes"
		}
		*rows = append(*rows, []string{"`" + prefix + p.key + "`", a.typeOf(p.value, 0), needed, a.cellText(a.about(p.value, p.value))})
		if v := a.resolve(p.value); at(v, "properties") != nil || at(v, "items") != nil {
			next := prefix + p.key + "."
			if at(v, "items") != nil {
				next = prefix + p.key
			}
			a.properties(v, next, depth+1, rows)
		}
	}
}

func (a *api) typeOf(s any, depth int) string {
	if a.steps++; depth > 3 || a.over() {
		return ""
	}
	name := ""
	if ref := str(s, "$ref"); ref != "" {
		name = ref[strings.LastIndexByte(ref, '/')+1:]
	}
	s = a.resolve(s)
	if items := at(s, "items"); items != nil {
		return "array of " + cmp.Or(a.typeOf(items, depth+1), "any")
	}
	var options []string
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, o := range list(s, key) {
			if a.over() {
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
	if t == "" && at(s, "properties") != nil {
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

// resolve follows a local reference; others, and those that lead in circles,
// are nil.
func (a *api) resolve(v any) any {
	if a.steps++; a.over() {
		return nil
	}
	for range 8 {
		ref := str(v, "$ref")
		if ref == "" {
			return v
		}
		rest, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			return nil
		}
		keys := strings.Split(rest, "/")
		for i, k := range keys { // RFC 6901 section 4
			keys[i] = strings.ReplaceAll(strings.ReplaceAll(k, "~1", "/"), "~0", "~")
		}
		v = a.root
		for _, k := range keys {
			v = a.member(v, k)
		}
	}
	return nil
}

// member is at, for objects that are asked often.
func (a *api) member(v any, key string) any {
	o, ok := v.(object)
	if !ok || len(o) < 32 {
		return at(v, key)
	}
	known := a.index[&o[0]]
	if known == nil {
		known = make(map[string]any, len(o))
		for _, m := range slices.Backward(o) { // the first of a name counts
			known[m.key] = m.value
		}
		a.index[&o[0]] = known
	}
	return known[key]
}

func (a *api) table(head []string, rows [][]string) {
	a.b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		a.b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	a.b.WriteByte('\n')
}
