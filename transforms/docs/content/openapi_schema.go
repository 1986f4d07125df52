package content

import (
	"cmp"
	"slices"
	"strings"
)

// schema writes the properties of a schema as a table, with the properties of
// objects in it down to the third level.
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

// maxArrays is how many levels of arrays of arrays are read.
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
			if a.tooLong() {
				return
			}
			a.properties(part, prefix, depth+1, rows)
		}
	}
	if items := at(s, "items"); items != nil {
		if !strings.HasSuffix(prefix, strings.Repeat("[].", maxArrays)) { // deeper it may be an array of itself
			a.properties(items, prefix+"[].", depth, rows)
		}
		return
	}
	required := list(s, "required")
	for _, p := range members(s, "properties") {
		if len(*rows) == maxRows || a.tooLong() {
			return
		}
		needed := "no"
		if slices.ContainsFunc(required, func(v any) bool { return v == any(p.key) }) {
			needed = "yes"
		}
		*rows = append(*rows, []string{"`" + prefix + p.key + "`", a.typeOf(p.value, 0), needed, a.cellText(a.describe(p.value, p.value))})
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
	if a.steps++; depth > 3 || a.tooLong() {
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

// resolve follows a local reference. It returns nil for other references, and for
// references that lead in circles.
func (a *api) resolve(v any) any {
	if a.steps++; a.tooLong() {
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

// member returns the same as at; it uses an index, for objects with many look-ups.
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
