package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/reference/server.schema.json")

// typeSchema describes a type of the configuration; special has what the types do not say, by path.
func typeSchema(of reflect.Type, path string, special map[string]map[string]any) map[string]any {
	if s := special[path]; s != nil {
		return s
	}
	switch of.Kind() {
	case reflect.Pointer:
		return typeSchema(of.Elem(), path, special)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(of.Elem(), path+"[]", special)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(of.Elem(), path+".*", special)}
	case reflect.Struct:
		properties := map[string]any{}
		for f := range of.Fields() {
			if key := f.Tag.Get("yaml"); key != "" {
				properties[key] = typeSchema(f.Type, strings.TrimPrefix(path+"."+key, "."), special)
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Interface: // a single value
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	}
	return map[string]any{"type": of.Kind().String()}
}

// TestSchema keeps the JSON Schema of the server's file for editors.
func TestSchema(t *testing.T) {
	jobs, names, started := map[string]any{}, []string{}, []string{}
	options := map[string]any{}
	rules := typeSchema(reflect.TypeFor[map[string]any](), "", nil)
	for _, j := range testJobs() {
		names = append(names, j.Name)
		jobs[j.Name] = rules
		if j.Path != "" {
			started = append(started, j.Name)
			for _, o := range j.Options {
				options[o.Field()] = map[string]any{"description": o.Usage}
			}
		}
	}
	require.NotEmpty(t, names)
	days := map[string]any{"type": "integer", "minimum": 0, "maximum": 36500}
	s := typeSchema(reflect.TypeFor[Config](), "", map[string]map[string]any{
		"alerts":              {"type": "object", "additionalProperties": false, "properties": jobs},
		"schedules[].job":     {"enum": started},
		"schedules[].options": {"type": "object", "additionalProperties": false, "properties": options},
		"schedules[].cron":    {"type": "string", "description": "minute hour day-of-month month day-of-week"},
		"email.tls":           {"enum": []string{"starttls", "implicit", "none"}},
		"retention.days":      days,
	})
	s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", "The server's file, for serve --config"
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(s))
	const file = "../docs/reference/server.schema.json"
	if *update {
		require.NoError(t, os.WriteFile(file, want.Bytes(), 0o644))
	}
	has, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(has), "`make golden` writes it")

	doc, err := jsonschema.UnmarshalJSON(&want)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("s.json", doc))
	schema, err := c.Compile("s.json")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/server.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	for text, good := range map[string]bool{
		example: true, "listen: 127.0.0.1:1": true, "flags: {store: [a]}": false, "listn: a": false, "retention: {days: -1}": false,
		"schedules: [{name: a, job: none, cron: '0 * * * *'}]": false, "schedules: [{name: a, job: seed, cron: '0 * * * *', options: {cuntry: sg}}]": false,
		"alerts: {none: {}}": false, "email: {serve: a}": false, "bot: {operator: a, contact: b@c.example, address: []}": false,
	} {
		b, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, good, schema.Validate(v) == nil, "the schema: %s", text)
		_, err = ParseConfig([]byte(text), testJobs())
		require.Equal(t, good, err == nil, "the program: %s: %v", text, err)
	}
}
