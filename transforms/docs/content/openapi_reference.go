package content

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// register notes what has a name of its own: an $id, as it is written, or an $anchor (JSON Schema 2020-12).
func (a *api) register(v any) {
	switch v := v.(type) {
	case object:
		for _, name := range []string{str(v, "$id"), "#" + str(v, "$anchor")} {
			if _, twice := a.named[name]; !twice && strings.Trim(name, "#") != "" {
				a.named[name] = v
			}
		}
		for _, m := range v {
			a.register(m.Value)
		}
	case []any:
		for _, e := range v {
			a.register(e)
		}
	}
}

// find returns what a reference leads to in the description, nil if that is not there or in another file.
func (a *api) find(ref string) (v any) {
	if v, known := a.found[ref]; known {
		return v
	}
	defer func() { a.found[ref] = v }()
	whole, at, _ := strings.Cut(ref, "#")
	switch v = any(a.root); {
	case at != "" && at[0] != '/':
		return a.named["#"+at]
	case whole != "":
		v = a.named[whole]
	}
	if text, err := url.PathUnescape(at); err == nil {
		at = text
	}
	if at == "" {
		return v
	}
	for key := range strings.SplitSeq(at[1:], "/") { // RFC 6901 section 4
		v = a.member(v, strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~"))
	}
	return v
}

// member returns the value of a key or of a position in a list. It uses an index, for
// objects with many look-ups.
func (a *api) member(v any, key string) any {
	if l, isList := v.([]any); isList {
		if n, err := strconv.Atoi(key); err == nil && n >= 0 && n < len(l) {
			return l[n]
		}
		return nil
	}
	o, ok := v.(object)
	if !ok || len(o) < 32 {
		return field(v, key)
	}
	known := a.index[&o[0]]
	if known == nil {
		known = make(map[string]any, len(o))
		for _, m := range slices.Backward(o) { // the first of a name counts
			known[m.Key] = m.Value
		}
		a.index[&o[0]] = known
	}
	return known[key]
}

// maxBeside is the most members of an object with a reference that are read.
const maxBeside = 64

// resolve follows a reference. What stands next to the reference replaces or completes what is there (OpenAPI 3.1). It returns nil for
// what is not there, and for references that lead in circles.
func (a *api) resolve(v any) any {
	var siblings object
	for range 8 {
		if a.steps++; a.tooLong() {
			return nil
		}
		ref := str(v, "$ref")
		if ref == "" {
			if siblings == nil || members(v) == nil {
				return v
			}
			a.steps += len(members(v))
			return over(siblings, members(v))
		}
		if o := members(v); len(o) > 1 && len(o) <= maxBeside {
			siblings = over(siblings, slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.Key == "$ref" }))
		}
		v = a.find(ref)
	}
	return nil
}

// over returns an object with the members of another one. Of two schemas that both have fields or alternatives, both hold.
func over(o, under object) object {
	out := slices.Clone(o)
	for _, m := range under {
		switch {
		case field(o, m.Key) == nil:
			out = append(out, m)
		case m.Key == "properties" || m.Key == "required" || m.Key == "oneOf" || m.Key == "anyOf" || m.Key == "allOf":
			return append(slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.Key == "allOf" }),
				member{Key: "allOf", Value: append(slices.Clone(list(o, "allOf")), under)})
		}
	}
	return out
}

// isNamed reports whether a reference leads to a schema that the section of all schemas has, or to another file.
func isNamed(ref string) bool {
	name, in := strings.CutPrefix(ref, "#/components/schemas/")
	if !in {
		name, in = strings.CutPrefix(ref, "#/definitions/")
	}
	return ref != "" && ref[0] != '#' || in && !strings.Contains(name, "/")
}

// refName is the name of what a reference leads to: the last part of its pointer, or
// of its file's name.
func refName(ref string) string {
	address, at, _ := strings.Cut(ref, "#")
	if strings.Trim(at, "/") != "" {
		return at[strings.LastIndexByte(at, '/')+1:]
	}
	name := address[strings.LastIndexByte(address, '/')+1:]
	switch ext := path.Ext(name); ext {
	case ".json", ".yaml", ".yml":
		return strings.TrimSuffix(name, ext)
	}
	return name
}
