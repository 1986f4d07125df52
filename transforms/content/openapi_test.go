package content_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/content"
)

const openAPI3 = `{
 "openapi": "3.1.0",
 "info": {"title": "Widget API", "description": "Makes [widgets](https://e.com). Ask me@example.com.\n\n# Limits\n\n10 a second"},
 "servers": [{"url": "https://api.example.com/v1", "description": "Live"}],
 "paths": {
  "/widgets/{id}": {
   "parameters": [{"$ref": "#/components/parameters/ID"}],
   "put": {"summary": "Change a widget", "description": "All or nothing.", "deprecated": true,
    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Widget"}}}},
    "responses": {"200": {"description": "The widget", "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Widget"}}}}}, "404": {"$ref": "#/components/responses/Gone"}}},
   "delete": {"summary": "Remove a widget", "responses": {"204": {"description": "Done"}}}
  },
  "/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": {"type": ["string", "null"], "enum": ["a|b", "c"], "default": "c"}}]}}
 },
 "components": {
  "parameters": {"ID": {"name": "id", "in": "path", "required": true, "description": "Which\none", "schema": {"type": "string", "format": "uuid"}}},
  "responses": {"Gone": {"description": "No such widget"}},
  "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
  "schemas": {
   "Widget": {"required": ["size"], "properties": {"size": {"type": "integer", "description": "In mm"}, "owner": {"$ref": "#/components/schemas/Owner"}, "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Widget"}}}},
   "Owner": {"type": "object", "properties": {"name": {"type": "string"}}}
  }
 }
}`

func TestExtractOpenAPI(t *testing.T) {
	swagger := "swagger: '2.0'\ninfo:\n  title: Old\nhost: api.example.com\nbasePath: /v1\npaths:\n  /z:\n    post:\n      parameters:\n        - {name: n, in: query, type: integer, required: true}\n" +
		"        - {name: body, in: body, schema: {$ref: '#/definitions/T'}}\n      responses:\n        200: {description: ok, schema: {$ref: '#/definitions/T'}}\n  /a:\n    get: {summary: second}\ndefinitions:\n  T:\n    properties:\n      x: {type: string}\n"
	for name, body := range map[string]string{"openapi3": openAPI3, "swagger2": swagger} {
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

// TestOpenAPIBounds holds references that unfold without end.
func TestOpenAPIBounds(t *testing.T) {
	circle := `{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[{"$ref":"#/p"}],"responses":{"200":{"$ref":"#/r"}}}}},"p":{"$ref":"#/q"},"q":{"$ref":"#/p"},"r":{"$ref":"#/r"}}`
	p, err := content.ExtractOpenAPI([]byte(circle))
	require.NoError(t, err)
	require.Contains(t, p.Markdown, "## GET /a")

	wide := `{"openapi":"3.0.0","paths":{` + strings.TrimSuffix(strings.Repeat(`"/a":{"get":{"description":"x","parameters":[`+strings.TrimSuffix(strings.Repeat(`{"$ref":"#/p"},`, 500), ",")+`]}},`, 60), ",") +
		`},"p":{"name":"n","in":"query","description":"` + strings.Repeat("long ", 200) + `"}}`
	_, err = content.ExtractOpenAPI([]byte(wide))
	require.ErrorContains(t, err, "unfold")
}
