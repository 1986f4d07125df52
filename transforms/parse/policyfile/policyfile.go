// Package policyfile joins the files of a job's providers, sites or publishers, one YAML file each, with the changes that people keep in a
// store. It is pure: files come as values, and nothing is fetched. No promise: see docs/library.md.
package policyfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Change is what people keep of a policy in the store. An empty one means that nothing is kept any more.
type Change struct {
	Text     string `json:"policy,omitempty"` // the policy as YAML; "" for the file's
	Disabled bool   `json:"disabled,omitempty"`
	Why      string `json:"why,omitempty"` // it is disabled
}

// origin is where a policy comes from.
type origin string

const (
	// File policies are shipped with the program, or in a directory that the user named.
	File origin = "file"
	// Store policies are kept in the store only.
	Store origin = "store"
	// StoreOverFile policies are kept in the store and replace a shipped one.
	StoreOverFile origin = "store_over_file"
)

// Words are how people and requests name the policies of a kind.
type Words struct {
	Job, One, Many string   // docs, provider, providers
	Key, Flag      string   // the field with the id, and the option that names the directory of the files
	Blank          string   // what a new policy begins with
	Schema         string   // of a policy in the API's description
	Needs          []string // fields that each policy has
	Example        string   // of a policy as JSON
	// Try are the program's arguments that read {page} by the policy in {file}, which is alone in {dir}, and save nothing.
	Try []string
}

// Kept is the prefix of where people's changes are in the store: one document each.
func (w Words) Kept() string { return "providers/" + w.Job + "/" }

// API is the path of the policies.
func (w Words) API() string { return "/api/v1/" + w.Job + "/" + w.Many }

// Title is One or Many with a capital letter.
func Title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Shown is a policy as people see it.
type Shown struct {
	ID, Name   string
	Origin     origin
	Off        string          // why it is not crawled whatever it says; "": nothing is against it
	State, Why string          // what becomes of it if nothing is against it, in one word and in a sentence
	Locked     string          // why people cannot change it; "": they can
	Addresses  []Address       // the first one names the host; at least one if it can be read
	Facts      [][2]string     // more about it: names and texts
	Fields     json.RawMessage // as in its text; nil: it cannot be read
	InFile     json.RawMessage // the fields of its file, also where people replaced that; nil: there is none
	Text       string          // as a file
}

// Address is an address that a crawl by the policy requests first.
type Address struct{ Field, URL string }

// Kind is a kind of policies. P is one of them.
type Kind[P any] struct {
	Words
	// Read reads a text, and checks it. The error has one line for each fault.
	Read func(text string, now time.Time) (P, error)
	ID   func(P) string
	// Files returns the policies of files, by the options of runs. fixed: the user named the files, and only theirs count.
	Files func(option func(name string) string, now time.Time) (files []P, fixed bool, err error)
	// Configure notes in each policy what the options of runs say of it, by the policies of files before they were joined; nil: nothing.
	Configure func(option func(name string) string, files []P, all []Joined[P]) error
	// Show fills in what People see of it, but ID, Origin and Off.
	Show func(p P, now time.Time) (Shown, error)
	// Type is the struct whose fields are those of a file, in order.
	Type reflect.Type
}

// Joined is a policy after people's changes.
type Joined[P any] struct {
	Value  P
	ID     string
	Text   string // that people keep; "": the file's
	Origin origin
	// Off is why it is not crawled whatever its text says; "": nothing is against it.
	Off string
	// Refused says that the text cannot be read, so that Value is empty.
	Refused bool
}

// Join joins the policies of files with what people keep in the store, by id. A kept text replaces a shipped one. Where filesWin, because
// the user named the files, only the files' texts count. One that people disabled is off in both cases.
func (k Kind[P]) Join(files []P, changes map[string]Change, filesWin bool, now time.Time) []Joined[P] {
	all := map[string]Joined[P]{}
	for _, p := range files {
		all[k.ID(p)] = Joined[P]{Value: p, ID: k.ID(p), Origin: File}
	}
	for id, c := range changes {
		j, inFile := all[id]
		if c.Text != "" && !filesWin {
			kept, err := k.Read(c.Text, now)
			if err == nil && k.ID(kept) != id {
				err = fmt.Errorf("%s: it names %s", k.Key, k.ID(kept))
			}
			j = Joined[P]{Value: kept, ID: id, Text: c.Text, Origin: Store}
			if inFile {
				j.Origin = StoreOverFile
			}
			if err != nil {
				var none P
				j.Value, j.Refused = none, true
				j.Off = fmt.Sprintf("%s. So its policy in the store is refused; correct or remove it on the %s's page or by the API (%s/%s)",
					strings.ReplaceAll(err.Error(), "\n", "; "), k.One, k.API(), id)
			}
		} else if !inFile {
			continue
		}
		if c.Disabled {
			j.Off = cmp.Or(j.Off, "it was disabled: "+cmp.Or(c.Why, "no reason was given"))
		}
		all[id] = j
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Joined[P]) int { return cmp.Compare(a.ID, b.ID) })
}

// Called returns the words of the kind.
func (k Kind[P]) Called() Words { return k.Words }

// Parse reads a text. The error has one line for each fault, with its line and field.
func (k Kind[P]) Parse(text string, now time.Time) (Shown, error) {
	p, err := k.Read(text, now)
	if err != nil {
		return Shown{}, err
	}
	return k.show(Joined[P]{Value: p, ID: k.ID(p), Text: text}, now)
}

// All returns the policies by id: those of files, by the options of runs, and those that people keep. fixed is that of Files.
func (k Kind[P]) All(option func(name string) string, changes map[string]Change, now time.Time) (all []Shown, fixed bool, err error) {
	files, fixed, err := k.Files(option, now)
	if err != nil {
		return nil, false, err
	}
	inFile := map[string]P{}
	for _, p := range files {
		inFile[k.ID(p)] = p
	}
	joined := k.Join(files, changes, fixed, now)
	if k.Configure != nil {
		if err := k.Configure(option, files, joined); err != nil {
			return nil, false, err
		}
	}
	for _, j := range joined {
		s, err := k.show(j, now)
		if err != nil {
			return nil, false, fmt.Errorf("showing %s %s: %w", k.One, j.ID, err)
		}
		if p, ok := inFile[j.ID]; ok {
			file, err := k.Show(p, now)
			if err != nil {
				return nil, false, fmt.Errorf("showing the file of %s %s: %w", k.One, j.ID, err)
			}
			s.InFile = file.Fields
		}
		all = append(all, s)
	}
	return all, fixed, nil
}

func (k Kind[P]) show(j Joined[P], now time.Time) (s Shown, err error) {
	if !j.Refused {
		if s, err = k.Show(j.Value, now); err != nil {
			return Shown{}, err
		}
	}
	s.ID, s.Origin, s.Off, s.Text = j.ID, j.Origin, j.Off, cmp.Or(j.Text, s.Text)
	return s, nil
}

var (
	linedFault = regexp.MustCompile(`^(?:parsing YAML: )?line (\d+): (.*)$`)
	word       = regexp.MustCompile(`[A-Za-z_]+`)
)

// Located adds the line to the error of a text, as "policy: line 3: …" about the text's form, and "policy:3: …" about the value of a field
// that the error names.
func Located(text string, err error) error {
	says := strings.Join(strings.Fields(err.Error()), " ")
	if m := linedFault.FindStringSubmatch(says); m != nil {
		form := "policy:%s: %s"
		if strings.HasPrefix(says, "parsing") {
			form = "policy: line %s: %s"
		}
		return fmt.Errorf(form, m[1], m[2])
	}
	for _, key := range word.FindAllString(says, -1) {
		if line := yamltext.Line([]byte(text), key); line > 0 {
			return fmt.Errorf("policy:%d: %w", line, err)
		}
	}
	return fmt.Errorf("policy: %w", err)
}

// Fields are the fields of a text, as they are in it, as JSON.
func Fields(text string) (json.RawMessage, error) {
	var fields map[string]any
	if err := yamltext.Decode([]byte(text), &fields); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	return json.Marshal(fields)
}

// fields are the names of a policy's fields.
func (k Kind[P]) fields() (names []string) {
	for f := range k.Type.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	return names
}

// Text writes a policy in JSON as the text of a file: the fields that exist in their order, then the others, which Read refuses.
func (k Kind[P]) Text(text []byte) (string, error) {
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
	for _, name := range slices.Concat(k.fields(), slices.Sorted(maps.Keys(fields))) {
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
