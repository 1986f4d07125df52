package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// What a description says of a value, an operation or a server is in its Markdown.
func TestOpenAPIRules(t *testing.T) {
	forms := map[string]string{"operation": "paths: {/a: {get: %s}}\n"}
	forms["schema"] = "paths: {/a: {post: {requestBody: {content: {application/json: {schema: %s}}}}}}\n" + `
components:
  schemas:
    Cat: {type: object, required: [claws], properties: {kind: {type: string}, claws: {type: integer}}}
    Dog: {type: object, required: [bark], properties: {kind: {type: string}, bark: {type: boolean}}}
    Base: {type: object, properties: {id: {type: string, readOnly: true}, state: {type: string, description: How it is.}}}
    Loop: {oneOf: [{$ref: '#/components/schemas/Loop'}, {type: object, properties: {next: {$ref: '#/components/schemas/Loop'}}}]}
`
	forms["property"] = strings.Replace(forms["schema"], "%s", "{type: object, properties: {x: %s}}", 1)
	many := testCase{"many values", "property\n{enum: [" + keys(1001, "v%d,") + "]}", "`v999`, and more. |\n"}
	for _, c := range append(cases.Table[[]testCase](t, "openapi-rules.yaml"), many) {
		t.Run(c.Name, func(t *testing.T) {
			text := c.In
			if form, rest, _ := strings.Cut(text, "\n"); forms[form] != "" {
				inside, more, _ := strings.Cut(rest, "\n")
				text = strings.Replace(forms[form], "%s", inside, 1) + more
			}
			p, err := content.ExtractOpenAPI([]byte("openapi: 3.2.0\ninfo: {title: T}\n" + text))
			require.NoError(t, err)
			require.Contains(t, strings.ReplaceAll(p.Markdown+"\n", "\n\n\n", "\n?\n"), c.Want)
		})
	}
}
