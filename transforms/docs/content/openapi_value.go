package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// object is a mapping in document order. Values are object, []any, string, number,
// bool or nil.
type object = yamltext.Mapping

type member = yamltext.Member

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
	o, _ := v.(object)
	return o, nil
}

// number is a JSON number as written.
type number = yamltext.Number

// appendJSON writes a value as encoding/json does, an object's members in their order.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.Key), ':')
			b = appendJSON(b, m.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case number:
		return append(b, v...)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == 0x7f {
			var quoted bytes.Buffer
			e := json.NewEncoder(&quoted)
			e.SetEscapeHTML(false) // it is for people, not for a script element
			_ = e.Encode(s)        // a string has no error
			return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
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
			o = append(o, member{Key: key, Value: v})
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

// field returns the value under a chain of keys, nil if there is none.
func field(v any, keys ...string) any {
	for _, key := range keys {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		i := slices.IndexFunc(o, func(m member) bool { return m.Key == key })
		if i < 0 {
			return nil
		}
		v = o[i].Value
	}
	return v
}

func str(v any, keys ...string) string {
	switch s := field(v, keys...).(type) {
	case string:
		return strings.TrimSpace(s)
	case number: // "openapi: 3.1"
		return string(s)
	}
	return ""
}

func list(v any, keys ...string) []any {
	l, _ := field(v, keys...).([]any)
	return l
}

func members(v any, keys ...string) object {
	o, _ := field(v, keys...).(object)
	return o
}
