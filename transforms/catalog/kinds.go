package catalog

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

// maxMany is the maximum number of values of a field with many.
const maxMany = 1000

var errMany = fmt.Errorf("it has more than %d values: choose fewer by the selector", maxMany)

// kind is how a text is read.
type kind struct {
	name   string // of the type
	locale value.Locale
	zone   *time.Location // nil: the zone in each text
	money  string         // the currency of a text that names none
	unit   string
}

// hasDigits reports whether a value is read from digits, which must not be those of several elements.
func (k kind) hasDigits() bool {
	return slices.Contains([]string{"integer", "number", "quantity", "money", "date", "time"}, k.name)
}

// read returns a field's value; nil if the page does not have it.
func (f fieldReader) read(p *page, base *url.URL) (any, error) {
	if f.Type == "group" {
		return f.readGroups(p, base)
	}
	if under := f.under(p); under != nil && !f.Many && f.kind.name != "list" {
		return f.same(under, base)
	}
	if f.kind.name == "list" {
		if all := f.all(p); len(all) > 0 {
			return all, nil
		}
		return nil, nil
	}
	var all []any
	for s := range f.values(p) {
		if f.kind.name == typeImage && inline(s.text) {
			continue
		}
		v, err := f.typed(s, base)
		switch {
		case err != nil:
			return nil, err
		case !f.Many:
			return v, nil
		}
		if len(all) == maxMany {
			return nil, errMany
		}
		all = append(all, v)
	}
	if all == nil {
		return nil, nil
	}
	return all, nil
}

// readGroups reads the parts of the first element that the field finds, or with many of
// all of them, each as an object. A group without any part is none.
func (f fieldReader) readGroups(p *page, base *url.URL) (any, error) {
	var all []any
	for _, within := range f.pages(p) {
		object := map[string]any{}
		for _, part := range f.parts {
			v, err := part.read(within, base)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", part.name, err)
			}
			if v != nil {
				object[part.name] = v
			}
		}
		if len(object) == 0 {
			continue
		}
		if !f.Many {
			return object, nil
		}
		if len(all) == maxMany {
			return nil, errMany
		}
		all = append(all, object)
	}
	if all == nil {
		return nil, nil
	}
	return all, nil
}

// typed converts a text to the kind's type.
func (k kind) typed(found scalar, base *url.URL) (any, error) {
	s, locale := found.text, k.locale
	if found.plain {
		locale = value.Programs
	}
	switch k.name {
	case "integer":
		return value.Integer(s, locale)
	case "number":
		return value.Number(s, locale)
	case "quantity":
		return value.Quantity(s, locale, k.unit)
	case "money":
		return value.Money(s, locale, k.money)
	case "date", "time":
		return k.point(found)
	case "url", "image":
		return address(s, base)
	case "boolean":
		return value.Boolean(s)
	}
	return s, nil
}

// point reads a date or a time. A number of JSON is seconds or milliseconds since 1970.
func (k kind) point(found scalar) (any, error) {
	if found.plain {
		t, err := value.Epoch(found.text, k.zone)
		switch {
		case err != nil:
			return nil, err
		case k.name == "time":
			return t.Format(time.RFC3339), nil
		}
		return t.Format(time.DateOnly), nil
	}
	if k.name == "time" {
		return value.Time(found.text, k.locale, k.zone)
	}
	return value.Date(found.text, k.locale, k.zone)
}

// inline reports whether an image is written into the page instead of its address: it
// holds the place until a script loads the image that another attribute names.
func inline(s string) bool { return len(s) >= 5 && strings.EqualFold(s[:5], "data:") }

func address(s string, base *url.URL) (any, error) {
	u, err := base.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a page", s)
	}
	u.User = nil
	if err := untrusted.Key(u.String()); err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	return u.String(), nil
}

// compileParts compiles the parts of a group.
func (r *reader) compileParts(where string, f Field, format string) (parts []fieldReader, err error) {
	if f.Type != "group" {
		if len(f.Fields) > 0 {
			return nil, wrong(where+".fields", "%s.fields: only a field with type: group has fields", where)
		}
		return nil, nil
	}
	if len(f.Fields) == 0 {
		return nil, wrong(where, "%s: a group needs fields: the names of its parts, each with a selector or a path inside of it", where)
	}
	if data := f.Selector != "" && f.Path != "" && format == formatHTML; f.Attribute != "" && !data || f.Regexp != "" || f.Label != nil {
		return nil, wrong(where, "%s: attribute, regexp and label do not belong to a group, but an attribute with JSON that path reads; attribute and regexp belong to its fields", where)
	}
	format = f.inside(format)
	for _, name := range sortedNames(f.Fields) {
		g, at := f.Fields[name], where+".fields."+name
		if !fieldName.MatchString(name) {
			return nil, wrong(at, "%s: want a name of small letters, digits and _", at)
		}
		k, err := r.compileKind(at, g.Type, g.Locale, "", g.Currency, g.Unit, f)
		if err != nil {
			return nil, err
		}
		if g.Type == "group" {
			return nil, wrong(at+".type", "%s.type: a group has no groups in it; use selectors or paths that lead further", at)
		}
		g.Attribute = defaultAttribute(g.Select, g.Type, format)
		found, err := g.compile(at, format)
		if err != nil {
			return nil, err
		}
		found.apart = k.hasDigits()
		parts = append(parts, fieldReader{name: name, Field: Field{Select: g.Select, Many: g.Many}, finder: found, kind: k})
	}
	return parts, nil
}

// defaultAttribute returns the attribute that has a value of this type.
func defaultAttribute(s Select, kind, format string) string {
	switch {
	case s.Attribute != "" || !s.ofElement(format):
	case kind == "url":
		return "href"
	case kind == "image":
		return "src"
	}
	return s.Attribute
}
