package content

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// Description is an OpenAPI description, which may be in several files: a reference
// ($ref) names a part of the same file, or one of another. Needs names the other files
// that its operations and schemas lead to. Each is given by Add, or left out by
// Leave. Then Page renders the whole.
type Description struct {
	root  *file
	size  int              // of the root file
	files map[string]*file // by address
	left  map[string]bool
	named map[string]spot // what has an $id or an $anchor, by its address
	index map[*member]map[string]any
	found map[string]spot // by reference

	walked map[*member]bool
	asked  map[string]bool // references
	next   []reference
	parked map[string][]reference // by the address of a file that is needed
	needs  []string
}

// file is one file of a description.
type file struct {
	value any
	base  *url.URL // to which its references are relative
}

// spot is a value in a file, and to what the references in it are relative.
type spot struct {
	value any
	base  *url.URL
}

// reference is a place that something refers to. names says that the keys there are
// names that the description's author gave.
type reference struct {
	to    string
	names bool
}

// ReadOpenAPI reads a description (OpenAPI 2.0 to 3.2, JSON or YAML) that was fetched
// from an address, nil if it has none. For other documents it returns ErrNotOpenAPI.
func ReadOpenAPI(body []byte, at *url.URL) (*Description, error) {
	root, err := readFile(body)
	if err != nil {
		return nil, fmt.Errorf("reading the description: %w: %w", ErrNotOpenAPI, err)
	}
	if str(root, "openapi") == "" && str(root, "swagger") == "" {
		return nil, ErrNotOpenAPI
	}
	if at == nil {
		at = &url.URL{}
	}
	d := &Description{files: map[string]*file{}, left: map[string]bool{}, named: map[string]spot{}, found: map[string]spot{}, index: map[*member]map[string]any{},
		walked: map[*member]bool{}, asked: map[string]bool{}, parked: map[string][]reference{}, size: len(body)}
	base := at
	if self, err := at.Parse(str(root, "$self")); err == nil { // OpenAPI 3.2.0 section 4.1.2.1
		base = self
	}
	d.root = &file{root, base}
	for _, address := range []string{addressOf(at), addressOf(base)} {
		d.files[address] = d.root
	}
	d.register(root, base, false)
	d.walk(root, base, false)
	d.follow()
	return d, nil
}

// readFile reads a file of JSON or YAML that is one object.
func readFile(body []byte) (object, error) {
	text, _, err := charset.Decode(body, "")
	if err != nil {
		return nil, err
	}
	o, err := readObject(strings.TrimLeft(text, " \t\r\n\ufeff"))
	if err == nil && o == nil {
		err = errors.New("it is no object of JSON or YAML")
	}
	return o, err
}

// CleanFile returns a file of a description as JSON, with e-mail addresses masked: it
// says the same to Add and to ReadOpenAPI.
func CleanFile(body []byte) ([]byte, error) {
	o, err := readFile(body)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, withoutEmails(o)), nil
}

func withoutEmails(v any) any {
	switch v := v.(type) {
	case object:
		for i := range v {
			v[i] = member{Clean(v[i].key), withoutEmails(v[i].value)}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmails(v[i])
		}
	case string:
		return Clean(v)
	}
	return v
}

// Needs returns the addresses of the files that are needed and were neither added nor
// left out, in the order of their first use.
func (d *Description) Needs() []string {
	return slices.DeleteFunc(slices.Clone(d.needs), func(a string) bool { return d.files[a] != nil || d.left[a] })
}

// Add adds the file of an address that Needs returned. at is where it was found in the
// end, after redirects.
func (d *Description) Add(address string, at *url.URL, body []byte) error {
	o, err := readFile(body)
	if err != nil {
		return err
	}
	f := &file{o, at}
	d.files[address] = f
	if known := addressOf(at); d.files[known] == nil {
		d.files[known] = f
	}
	d.register(o, at, false)
	d.next = append(d.next, d.parked[address]...)
	delete(d.parked, address)
	d.follow()
	return nil
}

// Leave says that the file of an address that Needs returned cannot be had.
func (d *Description) Leave(address string) { d.left[address] = true }

// addressOf is the address of a file, without a part of it.
func addressOf(u *url.URL) string {
	whole := *u
	whole.Fragment, whole.RawFragment = "", ""
	return whole.String()
}

// named and data are the fields whose keys are names, and those that are no
// description but what one would send or get.
var (
	nameFields = map[string]bool{"properties": true, "patternProperties": true, "dependentSchemas": true, "definitions": true, "$defs": true, "schemas": true, "responses": true,
		"examples": true, "requestBodies": true, "headers": true, "securitySchemes": true, "securityDefinitions": true, "links": true, "callbacks": true, "pathItems": true,
		"paths": true, "webhooks": true, "x-webhooks": true, "content": true, "encoding": true, "parameters": true}
	dataFields = map[string]bool{"example": true, "default": true, "const": true, "enum": true, "value": true, "mapping": true}
)

func isData(m member) bool {
	_, isList := m.value.([]any)
	return dataFields[m.key] || m.key == "examples" && isList || strings.HasPrefix(m.key, "x-") && !nameFields[m.key]
}

// isReference reports whether an object refers to something else. A description may
// refer to another even for a whole group of named things.
func isReference(o object, names bool) bool {
	return str(o, "$ref") != "" && (!names || len(o) == 1)
}

// register notes what in a file has an address of its own (JSON Schema 2020-12, $id and
// $anchor).
func (d *Description) register(v any, base *url.URL, names bool) {
	switch v := v.(type) {
	case object:
		if !names {
			if id := str(v, "$id"); id != "" {
				if u, err := base.Parse(id); err == nil {
					base = u
					d.name(addressOf(u), v, base)
				}
			}
			if anchor := str(v, "$anchor"); anchor != "" {
				d.name(addressOf(base)+"#"+anchor, v, base)
			}
		}
		for _, m := range v {
			if names || !isData(m) {
				d.register(m.value, base, !names && nameFields[m.key])
			}
		}
	case []any:
		for _, e := range v {
			d.register(e, base, false)
		}
	}
}

func (d *Description) name(address string, v any, base *url.URL) {
	if _, twice := d.named[address]; !twice {
		d.named[address] = spot{v, base}
	}
}

// walk makes the references below a value absolute and notes where they lead.
func (d *Description) walk(v any, base *url.URL, names bool) {
	switch v := v.(type) {
	case object:
		if len(v) == 0 || d.walked[&v[0]] {
			return
		}
		d.walked[&v[0]] = true
		if id := str(v, "$id"); !names && id != "" {
			if u, err := base.Parse(id); err == nil {
				base = u
			}
		}
		for i, m := range v {
			ref, isText := m.value.(string)
			switch {
			case m.key == "$ref" && isText && isReference(v, names):
				v[i].value = d.refer(ref, base, names)
			case names || !isData(m):
				d.walk(m.value, base, !names && nameFields[m.key])
			}
		}
	case []any:
		for _, e := range v {
			d.walk(e, base, false)
		}
	}
}

// refer returns a reference as resolve understands it, and notes to follow it.
func (d *Description) refer(ref string, base *url.URL, names bool) string {
	u, err := base.Parse(strings.TrimSpace(ref))
	if err != nil {
		return ref
	}
	to := addressOf(u) + "#" + u.Fragment
	if !d.asked[to] {
		d.asked[to] = true
		d.next = append(d.next, reference{to, names})
	}
	if d.files[addressOf(u)] == d.root {
		return "#" + u.Fragment
	}
	return to
}

// follow walks what was referred to, as far as its files are there.
func (d *Description) follow() {
	for len(d.next) > 0 {
		r := d.next[0]
		d.next = d.next[1:]
		address, _, _ := strings.Cut(r.to, "#")
		_, isNamed := d.named[address]
		if d.files[address] == nil && !isNamed {
			if d.parked[address] = append(d.parked[address], r); len(d.parked[address]) == 1 {
				d.needs = append(d.needs, address)
			}
			continue
		}
		if s, ok := d.find(r.to); ok {
			d.walk(s.value, s.base, r.names)
		}
	}
}

// find returns what a reference leads to.
func (d *Description) find(ref string) (s spot, ok bool) {
	if s, ok = d.found[ref]; ok {
		return s, true
	}
	if s, ok = d.look(ref); ok {
		d.found[ref] = s
	}
	return s, ok
}

func (d *Description) look(ref string) (s spot, ok bool) {
	address, at, _ := strings.Cut(ref, "#")
	if s, ok = d.named[ref]; ok {
		return s, true
	}
	if s, ok = d.named[address]; !ok {
		f := d.root
		if address != "" {
			f = d.files[address]
		}
		if f == nil {
			return spot{}, false
		}
		s = spot{f.value, f.base}
	}
	if at == "" {
		return s, true
	}
	if !strings.HasPrefix(at, "/") {
		if s, ok = d.named[addressOf(s.base)+"#"+at]; ok {
			return s, true
		}
		return spot{}, false
	}
	for k := range strings.SplitSeq(at[1:], "/") { // RFC 6901 section 4
		s.value = d.member(s.value, strings.ReplaceAll(strings.ReplaceAll(k, "~1", "/"), "~0", "~"))
		if id, isText := d.member(s.value, "$id").(string); isText {
			if u, err := s.base.Parse(id); err == nil {
				s.base = u
			}
		}
	}
	return s, s.value != nil
}

// member returns the value of a key or of a position in a list. It uses an index, for
// objects with many look-ups.
func (d *Description) member(v any, key string) any {
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
	known := d.index[&o[0]]
	if known == nil {
		known = make(map[string]any, len(o))
		for _, m := range slices.Backward(o) { // the first of a name counts
			known[m.key] = m.value
		}
		d.index[&o[0]] = known
	}
	return known[key]
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
