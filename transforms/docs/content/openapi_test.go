package content_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/hostile"
)

func TestExtractOpenAPI(t *testing.T) {
	swagger := "swagger: '2.0'\ninfo:\n  title: Old\nhost: api.example.com\nbasePath: /v1\npaths:\n  /z:\n    post:\n      parameters:\n        - {name: n, in: query, type: integer, required: true}\n" +
		"        - {name: body, in: body, schema: {$ref: '#/definitions/T'}}\n      responses:\n        200: {description: ok, schema: {$ref: '#/definitions/T'}}\n  /a:\n    get: {summary: second}\ndefinitions:\n  T:\n    properties:\n      x: {type: string}\n"
	for name, body := range map[string]string{"openapi3": string(testdata(t, "openapi3.json")), "swagger2": swagger} {
		p, err := content.ExtractOpenAPI([]byte(body))
		require.NoError(t, err)
		golden := filepath.Join("testdata", name+".md")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(p.Markdown+"\n"), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err, "run the test with -update to write it")
		require.Equal(t, string(want), p.Markdown+"\n")
	}
	for _, body := range []string{"", "{}", "[]", "null", "{", `{"openapi":""}`, "a: b", "x", "openapi: &a [*a]\n", `{"openapi":"3","a":` + strings.Repeat("[", 1000)} {
		_, err := content.ExtractOpenAPI([]byte(body))
		require.ErrorIs(t, err, content.ErrNotOpenAPI, body)
	}
}

// keys repeats a line with numbers.
func keys(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// TestOpenAPIBounds has references that expand without end.
func TestOpenAPIBounds(t *testing.T) {
	circle := `{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[{"$ref":"#/p"}],"responses":{"200":{"$ref":"#/r"}}}}},"p":{"$ref":"#/q"},"q":{"$ref":"#/p"},"r":{"$ref":"#/r"}}`
	p, err := content.ExtractOpenAPI([]byte(circle))
	require.NoError(t, err)
	require.Contains(t, p.Markdown, "## GET /a")

	wide := `{"openapi":"3.0.0","paths":{` + strings.TrimSuffix(strings.Repeat(`"/a":{"get":{"description":"x","parameters":[`+strings.TrimSuffix(keys(500, `{"name":"n%d","in":"query","schema":{"$ref":"#/p"}},`), ",")+`]}},`, 60), ",") +
		`},"p":{"description":"` + strings.Repeat("long ", 200) + `"}}`
	_, err = content.ExtractOpenAPI([]byte(wide))
	require.ErrorContains(t, err, "expand")
}

// TestHostileOpenAPI: a small description costs little, even one that expands to a
// large description or is slow to parse.
func TestHostileOpenAPI(t *testing.T) {
	of := func(schema, more string) string {
		return `{"openapi":"3.0.0","paths":{"/a":{"get":{"responses":{"200":{"content":{"x":{"schema":{"$ref":"#/s"}}}}}}}},"s":` + schema + more + `}`
	}
	times := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	for name, tt := range map[string]struct {
		body, says string
	}{
		"an array of itself":       {of(`{"type":"array","items":{"$ref":"#/s"}}`, ""), ""},
		"all of itself":            {of(`{"allOf":[`+times(3000, `{"$ref":"#/s"}`)+`]}`, ""), "expand"},
		"one of itself":            {of(`{"oneOf":[`+times(3000, `{"$ref":"#/s"}`)+`]}`, ""), "expand"},
		"properties that are it":   {of(`{"properties":{`+keys(1000, `"k%d":{"$ref":"#/s"},`)+`"z":{}}}`, ""), ""},
		"one parameter many times": {`{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[` + times(20_000, `{"$ref":"#/p"}`) + `]}}},"p":{"description":"` + strings.Repeat("long ", 10_000) + `"}}`, ""},
		"one response many times":  {`{"openapi":"3.0.0","paths":{"/a":{"get":{"responses":{` + keys(20_000, `"%d":{"$ref":"#/p"},`) + `"x":{}}}}},"p":{"description":"` + strings.Repeat("long ", 10_000) + `"}}`, "expand"},
		"one schema many times":    {`{"openapi":"3.0.0","paths":{"/a":{"post":{"requestBody":{"content":{` + keys(20_000, `"%d":{"schema":{"$ref":"#/s"}},`) + `"x":{}}}}}},"s":{"properties":{` + times(200, `"a":{"description":"`+strings.Repeat("long ", 200)+`"}`) + `}}}`, "expand"},
		"one enum many times":      {of(`{"properties":{`+keys(199, `"k%d":{"$ref":"#/e"},`)+`"z":{}}}`, `,"e":{"enum":["`+strings.Repeat("long ", 100_000)+`"]}`), "expand"},
		"many references":          {`{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[` + strings.TrimSuffix(keys(60_000, `{"$ref":"#/p/%d"},`), ",") + `]}}},"p":{` + keys(60_000, `"x%d":1,`) + keys(60_000, `"%d":{},`) + `"z":1}}`, ""},
		"YAML brackets":            {"openapi: 3.0.0\na: " + strings.Repeat("[", 50_000), "exceeded max depth"},
		"YAML braces":              {"openapi: 3.0.0\na: " + strings.Repeat("{a: ", 9_000) + strings.Repeat("}", 9_000), "nested too deep"},
		"YAML dashes":              {"openapi: 3.0.0\na:\n " + strings.Repeat("- ", 9_000), "nested too deep"},
		"YAML lines of brackets":   {"openapi: 3.0.0\na:\n" + strings.Repeat("  [\n", 50_000), "exceeded max depth"},
		"YAML keys":                {"openapi: 3.0.0\n" + keys(100_000, "k%d: v\n"), ""},
		"YAML keys in a row":       {"openapi: 3.0.0\na: {" + keys(100_000, "k%d: v, ") + "}\n", ""},
		"YAML documents":           {"openapi: 3.0.0\n" + strings.Repeat("---\na: b\n", 50_000), "one document"},
	} {
		t.Run(name, func(t *testing.T) {
			err := hostile.Parse(t, func() error {
				_, err := content.ExtractOpenAPI([]byte(tt.body))
				return err
			})
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, content.ErrNotOpenAPI)
				require.ErrorContains(t, err, tt.says)
			}
		})
	}
}

// A description with the size and the oddities of OpenAI's: examples behind aliases
// with open brackets, empty texts, duplicate keys.
func TestLargeYAML(t *testing.T) {
	var b strings.Builder
	b.WriteString("openapi: 3.1.0\ninfo:\n  title: Big\n  version: 2.0\n  description: |\n\npaths:\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "  /things/%d:\n    post:\n      summary: Makes thing %[1]d\n      summary: Makes it\n      x-meta:\n        example: &example_%[1]d |\n          data: {\"a\": [{\n          %s\n        again: *example_%[1]d\n"+
			"      responses:\n        \"200\":\n          description: >-\n          content:\n            application/json:\n              schema: {$ref: \"#/components/schemas/Thing\"}\n", i, strings.Repeat("data: {[ ", 170))
	}
	b.WriteString("components:\n  schemas:\n    Thing:\n      properties:\n        id: {type: string, example: \"\\ud83d\\ude00\"}\n")
	for i := range 5001 {
		fmt.Fprintf(&b, "    Other%d: {type: object}\n", i)
	}
	require.Greater(t, b.Len(), 2_900_000)
	p, err := content.ExtractOpenAPI([]byte(b.String()))
	require.NoError(t, err)
	require.Equal(t, "Big", p.Title)
	require.Equal(t, 1500, strings.Count(p.Markdown, "## POST /things/"))
}

// TestOpenAPISays checks what is written of a description in addition to its operations' names.
func TestOpenAPISays(t *testing.T) {
	p, err := content.ExtractOpenAPI(testdata(t, "orders.yaml"))
	require.NoError(t, err)
	for _, want := range []string{
		"| `trace` | header | string | no | Example `abc-1`. |",
		"| `limit` | query | integer | no | Default `10`. Example `20`. |",
		"Example (A small one):\n\n```json\n{\n  \"id\": 7,\n  \"lines\": [\n    {\n      \"sku\": \"a\",\n      \"n\": 1.50\n    }\n  ]\n}\n```",
		"Example:\n\n```json\n{\n  \"id\": 8\n}\n```",
		"One of: Order, Option 2.\n\n**Order**:\n\n| Property | Type | Required | Description |\n| --- | --- | --- | --- |\n| `id` | integer | no | Its number Example `7`. |\n\n**Option 2**:",
		"`text/csv`\n\nstring\n\nExample:\n\n```\nid,total\n7,3\n```",
		"#### Status 404\n\n`application/json`\n\n| Property | Type | Required | Description |\n| --- | --- | --- | --- |\n| `code` | string | no |  |\n\nExample:\n\n```json\n{\n  \"code\": \"gone\"\n}\n```",
		"#### Status default\n\n`application/json`\n\nError\n\n## POST webhook order.made\n\nAn order was made",
	} {
		require.Contains(t, p.Markdown, want)
	}

	long := `{"openapi":"3.0.0","paths":{"/a":{"get":{"responses":{"200":{"content":{"application/json":{"example":"` + strings.Repeat("x", 20_000) + `"}}}}}}}}`
	p, err = content.ExtractOpenAPI([]byte(long))
	require.NoError(t, err)
	require.Contains(t, p.Markdown, "The example, of 20000 bytes, is left out.")
}

// A reference leads to a place in the description: by its pointer, or by the $id or the $anchor of what is there. One to
// another file stays a name.
func TestOpenAPIReferences(t *testing.T) {
	p, err := content.ExtractOpenAPI(testdata(t, "references.yaml"))
	require.NoError(t, err)
	statuses := strings.Split(p.Markdown, "#### Status ")
	for i, want := range []string{"## /elsewhere\n\nDescribed in `https://other.example/paths.yaml#/a`.\n\n", "| `first` | string | no | First field |\n| `deep` | object | no |  |",
		"| `third` | string | no | Third field |", "| `fourth` | string | no | Fourth field |", "`application/json`\n\nOrder\n\n", "| `fifth` | string | no | Fifth field |", "`application/json`\n\n9\n\n"} {
		require.Contains(t, statuses[i], want)
	}
	require.Contains(t, p.Markdown, "| 204 | Not there |")
}
