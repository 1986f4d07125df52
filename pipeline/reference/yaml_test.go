package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// yamlFile is a kind of YAML file that people write.
type yamlFile struct {
	name, title string
	dir, of     string // the struct
	shipped     []string
	least       string // the least that a file needs
	parse       func(text []byte) error
}

var yamlFiles = []yamlFile{
	{"policy", "The crawl policy of a docs provider", "../../transforms/docs/policy", "Policy", []string{"../../transforms/docs/policies/*.yaml"},
		"provider_id: a\nseed_urls: [https://a.example/docs]\nallowed_path_patterns: [/docs/**]\ntos_checked: 2026-01-05\n",
		func(text []byte) error { _, err := policy.Parse("policy.yaml", text, time.Now()); return err }},
	{"site", "A site of the catalog job", "../../transforms/catalog", "Site", []string{"../../transforms/catalog/sites/*.yaml", "../../transforms/catalog/sites/demo/*.yaml", "../../transforms/catalog/sites/examples/*.yaml"},
		"name: a\nlist: {url: 'https://a.example/{page}', product_link: {selector: a}}\nkey: id\nfields: {id: {selector: b}}\n",
		func(text []byte) error { _, err := catalog.ParseSite(text); return err }},
	{"publisher", "A publisher of the news job", "../../transforms/news/provider", "declaration", []string{"../../transforms/news/publishers/*.yaml", "../../transforms/news/publishers/world/*.yaml"},
		"id: a\npress: A\nbaseUrl: https://a.example\narticleUrl: ^/a\nexternalId: ^/a(.)\n",
		func(text []byte) error { _, err := provider.Declared(text); return err }},
	{"news", "The configuration of the news job, for --news-config", "../../transforms/news/provider", "Config", nil, "providers: {a: {enabled: false}}\n",
		func(text []byte) error { _, err := provider.ReadConfig(text, nil, []string{"a"}); return err }},
	{"politeness", "How single hosts are treated, for --politeness", "../../pipeline", "politenessFile", nil, "hosts: {a.example: {delay: 5s}}\n",
		func(text []byte) error { _, err := pipeline.ParsePoliteness(text); return err }},
	{"bot", "Who crawls, for --bot and the block bot: of --config", "../../io/web/botauth", "Bot", nil, "page: https://a.example/bot\n",
		func(text []byte) error { return (&pipeline.RunOptions{BotText: string(text)}).ReadBot(false) }},
}

// wordsNeed are the files for words that need more than the least file has.
var wordsNeed = map[string]string{
	"policy sources github":         "provider_id: a\nseed_urls: [https://a.example/docs]\nallowed_path_patterns: [/docs/**]\nsources: [github]\ngithub: {repository: a/b, base: 'https://a.example/docs'}\n",
	"site list.format json":         "name: a\nlist: {url: 'https://a.example/{page}', format: json, product_link: {path: a}}\nkey: id\nfields: {id: {selector: b}}\n",
	"site list.format sitemap":      "name: a\nlist: {url: 'https://a.example/', format: sitemap}\nkey: id\nfields: {id: {selector: b}}\n",
	"site detail.format json":       "name: a\nlist: {url: 'https://a.example/{page}', product_link: {selector: a}}\ndetail: {format: json}\nkey: id\nfields: {id: {path: b}}\n",
	"site detail.format none":       "name: a\nlist: {url: 'https://a.example/{page}', rows: {selector: a}}\ndetail: {format: none}\nkey: id\nfields: {id: {selector: b}}\n",
	"site fields.*.type group":      "name: a\nlist: {url: 'https://a.example/{page}', product_link: {selector: a}}\nkey: id\nfields: {id: {selector: b}, x: {selector: i, type: group, fields: {a: {selector: b}}}}\n",
	"site fields.*.type quantity":   "name: a\nlist: {url: 'https://a.example/{page}', product_link: {selector: a}}\nkey: id\nfields: {id: {selector: b}, x: {selector: i, type: quantity}}\n",
	"site fields.*.from structured": "name: a\nlist: {url: 'https://a.example/{page}', product_link: {selector: a}}\nkey: id\nfields: {id: {from: structured, path: sku}}\n",
	"site fields.*.from row":        "name: a\nlist: {url: 'https://a.example/{page}', rows: {selector: li}, product_link: {selector: a}}\nkey: id\nfields: {id: {from: row, selector: b}}\n",
}

// schemaOf returns the JSON Schema of a kind.
func schemaOf(k kind, r rules) map[string]any {
	s := map[string]any{"type": k.name}
	item := map[string]any{}
	if k.item != nil {
		item = schemaOf(*k.item, rules{})
	}
	of := s
	switch k.name {
	case "list":
		s["type"], s["items"], of = "array", item, item
	case "map":
		s["type"], s["additionalProperties"] = "object", item
		of = map[string]any{}
		s["propertyNames"] = of
	case "object":
		properties, required := map[string]any{}, []string{}
		for _, f := range k.fields {
			p := schemaOf(f.of, f.rules)
			p["description"] = strings.ReplaceAll(f.doc, "\n", " ")
			properties[f.key] = p
			if f.required {
				required = append(required, f.key)
			} else { // `key:` and `key: null` are as if the key was not there
				p["type"] = []any{p["type"], "null"}
				if f.rules.enum != nil && f.of.item == nil {
					words := []any{nil}
					for _, word := range f.rules.enum {
						words = append(words, word)
					}
					p["enum"] = words
				}
			}
		}
		s["additionalProperties"], s["properties"] = false, properties
		if len(required) > 0 {
			s["required"] = required
		}
	}
	if len(r.enum) > 0 {
		of["enum"] = r.enum
	}
	if r.pattern != "" {
		of["pattern"] = r.pattern
	}
	for word, value := range r.words {
		switch word {
		case "minLength":
			of[word] = json.RawMessage(value)
		case "minimum", "maximum", "minItems", "minProperties":
			s[word] = json.RawMessage(value)
		case "format":
			of[word] = value
		case "default":
			s[word] = value
			if k.name != "string" {
				s[word] = json.RawMessage(value)
			}
		}
	}
	return s
}

func (y yamlFile) schema(t *testing.T) []byte {
	t.Helper()
	s := schemaOf(read(t, y.dir, "yaml").object(y.of), rules{})
	s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", y.title
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(s))
	return b.Bytes()
}

// TestYAMLFiles keeps the tables and the schemas of YAML files.
func TestYAMLFiles(t *testing.T) {
	for _, y := range yamlFiles {
		w := table{page: "yaml-files.md", name: y.name}
		first, skip := map[string]string{}, "none" // objects with the same keys, and long texts, are told once
		read(t, y.dir, "yaml").object(y.of).walk("", func(path string, f field) {
			require.NotEmpty(t, f.doc, "%s: %s has no comment", y.of, path)
			if strings.HasPrefix(path, skip+".") {
				return
			}
			kind, value := f.of.String(), f.rules.words["default"]
			if value != "" {
				value = "default " + code(value)
			}
			if f.of.name == "object" {
				if as := first[fmt.Sprint(f.of.fields)]; as != "" {
					kind, skip = "keys as "+code(as), path
				} else {
					first[fmt.Sprint(f.of.fields)] = path
				}
			}
			doc := f.doc
			if as := first[doc]; as != "" && len(doc) > 60 {
				doc = "As " + code(as) + "."
			} else {
				first[doc] = path
			}
			w.rows = append(w.rows, []string{code(path), kind, value, f.limits(), doc})
		})
		w.check(t)

		file := filepath.Join(folder, y.name+".schema.json")
		want := y.schema(t)
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
		}
		has, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(has), "%s: `make golden` writes it", file)
	}
}

func compiled(t *testing.T, y yamlFile) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(y.schema(t)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("s.json", doc))
	s, err := c.Compile("s.json")
	require.NoError(t, err)
	return s
}

// document is a YAML text as the schema sees it.
func document(t *testing.T, text []byte) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	return v
}

// TestShippedFiles: what ships validates and names its schema for editors, by a path that
// leads to it.
func TestShippedFiles(t *testing.T) {
	for _, y := range yamlFiles {
		s := compiled(t, y)
		for _, pattern := range y.shipped {
			files, err := filepath.Glob(pattern)
			require.NoError(t, err)
			require.NotEmpty(t, files, pattern)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, s.Validate(document(t, text)), file)
				first, _, _ := strings.Cut(string(text), "\n")
				at, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
				require.True(t, ok, "%s: its first line does not name its schema", file)
				info, err := os.Stat(filepath.Join(filepath.Dir(file), at))
				require.NoError(t, err, file)
				require.Equal(t, fs.FileMode(0), info.Mode().Type())
				require.Equal(t, y.name+".schema.json", filepath.Base(at), file)
			}
		}
	}
}

// TestSchemasAgreeWithTheParsers changes one value after another of a good file. What a
// schema refuses the program refuses, and of rules that are in a tag also the reverse.
func TestSchemasAgreeWithTheParsers(t *testing.T) {
	for _, y := range yamlFiles {
		t.Run(y.name, func(t *testing.T) {
			s, root := compiled(t, y), read(t, y.dir, "yaml").object(y.of)
			good := func() map[string]any { return document(t, []byte(y.least)).(map[string]any) }
			says := func(v any, want bool, what string, args ...any) {
				t.Helper()
				text, err := json.Marshal(v)
				require.NoError(t, err)
				schema, parser := s.Validate(v), y.parse(text)
				what = fmt.Sprintf(what, args...)
				require.Equal(t, want, schema == nil, "the schema: %s: %v", what, schema)
				require.Equal(t, want, parser == nil, "the program: %s: %v", what, parser)
			}
			says(good(), true, "the least")
			tried := 0
			root.walk("", func(path string, f field) {
				set := func(value any) map[string]any { tried++; return changed(good(), strings.Split(path, "."), value) }
				if set(nil) == nil {
					return // the least file has nothing above it
				}
				if f.required {
					says(set(nil), false, "without %s", path)
				}
				says(changed(good(), append(strings.Split(path, ".")[:strings.Count(path, ".")], "no_such_key"), "x"), false, "an unknown key next to %s", path)
				if f.of.name != "string" {
					says(set("x"), false, "%s: x", path)
				}
				value := func(v any) any {
					if f.of.name == "list" {
						return []any{v}
					}
					return v
				}
				if f.of.name == "string" || f.of.name == "list" {
					if f.rules.pattern != "" {
						says(set(value("? no")), false, "%s: ? no", path)
					}
					if f.rules.enum != nil {
						says(set(value("no_such_word")), false, "%s: no_such_word", path)
					}
					if f.rules.words["minLength"] != "" {
						says(set(value("")), false, "%s: empty", path)
					}
					if f.rules.words["minItems"] != "" {
						says(set([]any{}), false, "%s: []", path)
					}
				}
				for _, word := range f.rules.enum {
					if f.key != "type" || word != "list" && word != "money" { // the only field is the key
						v := set(value(word))
						if text := wordsNeed[y.name+" "+path+" "+word]; text != "" {
							v = document(t, []byte(text)).(map[string]any)
						}
						says(v, true, "%s: %s", path, word)
					}
				}
				for word, step := range map[string]float64{"minimum": -1, "maximum": 1} {
					if text := f.rules.words[word]; text != "" {
						limit, err := strconv.ParseFloat(text, 64)
						require.NoError(t, err)
						says(set(limit), true, "%s: %v", path, limit)
						says(set(limit+step), false, "%s: %v", path, limit+step)
					}
				}
				if d := f.rules.words["default"]; d != "" {
					v := document(t, []byte(d))
					says(set(v), true, "%s: %v, its default", path, v)
				}
			})
			require.Greater(t, tried, 5)
		})
	}
}

// changed sets or, with nil, removes a value; * is the first key of a map. It returns nil if
// there is nothing above the value.
func changed(in map[string]any, path []string, value any) map[string]any {
	at := in
	for _, key := range path[:len(path)-1] {
		if key == "*" {
			key = slices.Sorted(maps.Keys(at))[0]
		}
		next, ok := at[key].(map[string]any)
		if !ok {
			return nil
		}
		at = next
	}
	if last := path[len(path)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	return in
}

// The defaults in the tags are those of the parsers.
func TestDefaults(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(yamlFiles[0].least), time.Now())
	require.NoError(t, err)
	c := provider.Defaults()
	for path, has := range map[string]any{
		"policy max_depth": p.MaxDepth, "policy max_pages": p.MaxPages, "policy request_delay_ms": p.RequestDelayMS, "policy channel": p.Channel, "policy tos": p.Terms,
		"news delaySeconds": c.DelaySeconds, "news maxArticlesPerProvider": c.MaxArticlesPerProvider, "news rawTextMaxLength": c.RawTextMaxLength, "news rawRetentionDays": c.RawRetentionDays,
	} {
		name, key, _ := strings.Cut(path, " ")
		y := yamlFiles[slices.IndexFunc(yamlFiles, func(y yamlFile) bool { return y.name == name })]
		found := false
		read(t, y.dir, "yaml").object(y.of).walk("", func(at string, f field) {
			if at == key {
				found = true
				require.Equal(t, fmt.Sprint(has), f.rules.words["default"], path)
			}
		})
		require.True(t, found, path)
	}
}
