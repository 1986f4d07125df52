package content_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// found is what a description has, by its kind: each is a text of the Markdown.
type found map[string]map[string]bool

func (f found) add(kind, text string) {
	if f[kind] == nil {
		f[kind] = map[string]bool{}
	}
	f[kind][text] = true
}

// look walks through a description. inProperties says that the keys of the map are fields.
func (f found) look(v any, inProperties bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch {
			case inProperties:
				f.add("field", key)
				f.look(value, false)
			case key == "example" && !slices.Contains(slices.Collect(maps.Keys(v)), "externalValue"):
				f.leaves(value)
			case key == "examples":
				f.examples(value)
			case key == "enum":
				for _, one := range value.([]any) {
					f.add("value", "`"+fmt.Sprint(one)+"`")
				}
			case key == "const":
				f.add("value", "`"+fmt.Sprint(value)+"`")
			case key == "default":
				f.add("value", "Default `"+fmt.Sprint(value)+"`.")
			case key == "description" || key == "summary":
				f.add("text", fmt.Sprint(value))
			case key == "responses":
				for code, response := range value.(map[string]any) {
					if code == "default" || code[0] >= '1' && code[0] <= '5' {
						f.add("response", "| "+code+" |")
					}
					f.look(response, false)
				}
			case strings.HasPrefix(key, "x-") && key != "x-webhooks", key == "externalDocs": // no part of the API
			default:
				f.look(value, key == "properties")
			}
		}
		if in, ok := v["in"].(string); ok && v["name"] != nil {
			f.add("parameter", "`"+v["name"].(string)+"` | "+in)
		}
	case []any:
		for _, one := range v {
			f.look(one, false)
		}
	}
}

func (f found) examples(v any) {
	switch v := v.(type) {
	case []any:
		f.leaves(v)
	case map[string]any:
		for _, one := range v {
			if m, ok := one.(map[string]any); ok && m["value"] != nil {
				f.leaves(m["value"])
				for _, key := range []string{"summary", "description"} {
					if m[key] != nil {
						f.add("text", fmt.Sprint(m[key]))
					}
				}
			}
		}
	}
}

func (f found) leaves(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			f.leaves(one)
		}
	case []any:
		for _, one := range v {
			f.leaves(one)
		}
	default:
		f.add("example", fmt.Sprint(v))
	}
}

func (f found) operations(prefix string, items any) {
	for path, item := range items.(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, ok := op.(map[string]any)
			if !ok || method == "parameters" {
				continue
			}
			f.add("operation", "## "+strings.ToUpper(method)+" "+prefix+path+"\n")
			if callbacks, ok := o["callbacks"].(map[string]any); ok {
				for name, c := range callbacks {
					if m := c.(map[string]any); m["$ref"] == nil {
						f.operations("callback "+name+" ", m)
					}
				}
			}
		}
	}
}

// TestOpenAPIShapes: each operation, parameter, field, value, text, response and example of
// a description is in its Markdown. The files are descriptions in the forms of well-known APIs. Each @ is a number of its own, so
// that nothing is found in the place of something else.
func TestOpenAPIShapes(t *testing.T) {
	for _, name := range []string{"anthropic", "github", "openai", "parts", "stripe"} {
		t.Run(name, func(t *testing.T) {
			n := 100
			text := regexp.MustCompile("@").ReplaceAllStringFunc(string(testdata(t, "shapes/"+name+".yaml")), func(string) string { n++; return fmt.Sprint(n) })
			var doc map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
			f := found{}
			f.look(doc, false)
			f.operations("", doc["paths"])
			for _, key := range []string{"webhooks", "x-webhooks"} {
				if doc[key] != nil {
					f.operations("webhook ", doc[key])
				}
			}
			p, err := content.ExtractOpenAPI([]byte(text))
			require.NoError(t, err)
			markdown := p.Markdown + "\n"
			for kind, all := range f {
				missing := []string{}
				for one := range all {
					has := strings.Contains(markdown, one)
					if kind == "field" {
						has = regexp.MustCompile("[`.]" + regexp.QuoteMeta(one) + "`").MatchString(markdown)
					}
					if !has && one != "``" {
						missing = append(missing, one)
					}
				}
				slices.Sort(missing)
				t.Logf("%-9s %-10s %3d, missing %d", name, kind, len(all), len(missing))
				require.Empty(t, missing, kind)
			}
		})
	}
}
