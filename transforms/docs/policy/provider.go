package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Kept is the prefix of where people's changes of providers are in the store: one document each.
func Kept() string { return "providers/docs/" }

// Change is what people keep of a provider in the store. An empty one means that
// nothing is kept any more.
type Change struct {
	Text     string `json:"policy,omitempty"` // the policy as YAML; "" for the file's
	Disabled bool   `json:"disabled,omitempty"`
	Why      string `json:"why,omitempty"` // it is disabled
}

// origin is where a provider's policy comes from.
type origin string

const (
	// File policies are shipped with the program, or in the directory of --policies.
	File origin = "file"
	// Store policies are kept in the store only.
	Store origin = "store"
	// StoreOverFile policies are kept in the store and replace a shipped one.
	StoreOverFile origin = "store_over_file"
)

// Provider is a policy after people's changes.
type Provider struct {
	Policy
	Origin origin
	// Off is why the provider is not crawled whatever its policy says; "": nothing is
	// against it.
	Off string
}

// Providers joins the policies of files with what people keep in the store, by id. A kept
// policy replaces a shipped one. Where filesWin, because the user named the files, only
// the files' policies count. A provider that people disabled is off in both cases.
func Providers(files []Policy, changes map[string]Change, filesWin bool, now time.Time) []Provider {
	all := map[string]Provider{}
	for _, p := range files {
		all[p.ProviderID] = Provider{Policy: p, Origin: File}
	}
	for id, c := range changes {
		p, inFile := all[id]
		if c.Text != "" && !filesWin {
			kept, err := Parse("policy", []byte(c.Text), now)
			if err == nil && kept.ProviderID != id {
				err = fmt.Errorf("provider_id: it names %s", kept.ProviderID)
			}
			p = Provider{Policy: kept, Origin: Store}
			if inFile {
				p.Origin = StoreOverFile
			}
			if err != nil {
				p.Policy = Policy{ProviderID: id}
				p.Off = strings.ReplaceAll(err.Error(), "\n", "; ") + ". So its policy in the store is refused; correct or remove it on the provider's page or by the API (/api/v1/docs/providers/" + id + ")"
			}
		} else if !inFile {
			continue
		}
		if c.Disabled {
			p.Off = cmp.Or(p.Off, "it was disabled: "+cmp.Or(c.Why, "no reason was given"))
		}
		all[id] = p
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Provider) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
}

// Fields are the names of a policy's fields, in order.
func Fields() (names []string) {
	for f := range reflect.TypeFor[Policy]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

// JSON writes a policy as JSON, with the names of a file and without fields that have no
// value.
func (p Policy) JSON() ([]byte, error) { return object(reflect.ValueOf(p)) }

// object writes a struct whose fields have names of YAML. The YAML library's own JSON has
// escapes that JSON does not know.
func object(v reflect.Value) ([]byte, error) {
	out := []byte{'{'}
	for f, field := range v.Fields() {
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			continue
		}
		var b []byte
		var err error
		if field.Kind() == reflect.Struct {
			b, err = object(field)
		} else {
			b, err = json.Marshal(field.Interface())
		}
		if err != nil {
			return nil, fmt.Errorf("writing %s of a policy: %w", f.Name, err)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, f.Tag.Get("yaml")), ':'), b...)
	}
	return append(out, '}'), nil
}

// YAML writes a policy in JSON as the text of a file: the fields that exist in their order,
// then the others, which Parse refuses.
func YAML(text []byte) (string, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return "", fmt.Errorf("reading a policy as JSON: %w", err)
	}
	if fields == nil || d.More() {
		return "", errors.New("reading a policy as JSON: it is not one object")
	}
	var all yaml.MapSlice
	for _, name := range slices.Concat(Fields(), slices.Sorted(maps.Keys(fields))) {
		if v, given := fields[name]; given {
			all = append(all, yaml.MapItem{Key: name, Value: plain(v)})
			delete(fields, name)
		}
	}
	b, err := yaml.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("writing a policy as YAML: %w", err)
	}
	return string(b), nil
}

// quoted is a text with tabs. Without quotes the library would read it without them.
type quoted string

// MarshalYAML writes the text in quotes; Go's escapes are YAML's.
func (q quoted) MarshalYAML() ([]byte, error) { return strconv.AppendQuote(nil, string(q)), nil }

// plain turns the numbers and texts in a JSON value into those that YAML writes as they
// were.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String() // it is no value of any field
		}
		return f
	case string:
		if strings.Contains(v, "\t") {
			return quoted(v)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}
