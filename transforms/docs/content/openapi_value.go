package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// object is a mapping in document order. Values are object, []any, string, number,
// bool or nil.
type object []member

type member struct {
	key   string
	value any
}

// isJSON reports whether a document is one JSON value.
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

// number is a JSON number as written.
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

// at returns the value under a chain of keys, nil if there is none.
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
