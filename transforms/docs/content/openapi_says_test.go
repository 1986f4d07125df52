package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// What a description says of a value, an operation or a server is in its Markdown.
func TestOpenAPIRules(t *testing.T) {
	const head = "| Property | Type | Required | Description |\n| --- | --- | --- | --- |\n"
	schema := func(s string) string {
		return "paths: {/a: {post: {requestBody: {content: {application/json: {schema: " + s + "}}}}}}\n" + `
components:
  schemas:
    Cat: {type: object, required: [claws], properties: {kind: {type: string}, claws: {type: integer}}}
    Dog: {type: object, required: [bark], properties: {kind: {type: string}, bark: {type: boolean}}}
    Base: {type: object, properties: {id: {type: string, readOnly: true}, state: {type: string, description: How it is.}}}
    Loop: {oneOf: [{$ref: '#/components/schemas/Loop'}, {type: object, properties: {next: {$ref: '#/components/schemas/Loop'}}}]}
`
	}
	property := func(s string) string { return schema("{type: object, properties: {x: " + s + "}}") }
	operation := func(op, more string) string { return "paths: {/a: {get: " + op + "}}\n" + more }
	for name, c := range map[string]struct{ text, want string }{
		"a table for each alternative": {schema("{oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}], discriminator: {propertyName: kind, mapping: {feline: '#/components/schemas/Cat'}}}"),
			"One of: Cat (`kind` is `feline`), Dog (`kind` is `Dog`). `kind` says which.\n\n**Cat** (`kind` is `feline`):\n\n" + head + "| `kind` | string | no |  |\n| `claws` | integer | yes |  |\n\n**Dog** (`kind` is `Dog`):\n\n" + head + "| `kind` | string | no |  |\n| `bark` | boolean | yes |  |\n"},
		"fields of all too": {schema("{type: object, required: [name], properties: {name: {type: string}}, anyOf: [{title: By card, properties: {card: {type: string}}, required: [card]}, {properties: {iban: {type: string}}}]}"),
			"Any of: By card, Option 2.\n\n" + head + "| `name` | string | yes |  |\n\n**By card**:\n\n" + head + "| `card` | string | yes |  |\n\n**Option 2**:\n\n" + head + "| `iban` | string | no |  |\n"},
		"of a field": {property("{oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}"),
			"| `x` | Cat or Dog | no |  |\n\n`x`, **Cat**:\n\n" + head + "| `x.kind` | string | no |  |\n| `x.claws` | integer | yes |  |\n\n`x`, **Dog**:\n"},
		"of an array's items": {property("{type: array, items: {anyOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}}"),
			"| `x` | array of Cat or Dog | no |  |\n\n`x[]`, **Cat**:\n\n" + head + "| `x[].kind` | string | no |  |\n| `x[].claws` | integer | yes |  |\n"},
		"a single one and null": {property("{anyOf: [{$ref: '#/components/schemas/Cat'}, {type: 'null'}]}"),
			"| `x` | Cat or null | no |  |\n| `x.kind` | string | no |  |\n| `x.claws` | integer | yes |  |\n"},
		"alternatives that require": {schema("{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}"),
			"One of: with `a`, with `b`.\n\n" + head + "| `a` | string | no |  |\n| `b` | string | no |  |\n"},
		"all of, and required":        {schema("{allOf: [{$ref: '#/components/schemas/Base'}, {required: [id]}]}"), "| `id` | string | yes | Read-only. |\n"},
		"all of, a field twice":       {schema("{allOf: [{$ref: '#/components/schemas/Base'}, {properties: {state: {enum: [on, off], default: on}}}]}"), "| `state` | string | no | One of `on`, `off`. How it is. Default `on`. |\n"},
		"all of with alternatives":    {schema("{allOf: [{$ref: '#/components/schemas/Base'}, {oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}]}"), "| `id` | string | no | Read-only. |\n| `state` | string | no | How it is. |\n\n**Cat**:\n\n"},
		"a base with a discriminator": {schema("{type: object, properties: {kind: {type: string}}, discriminator: {propertyName: kind, mapping: {cat: '#/components/schemas/Cat', dog: Dog}}}"), "`kind` says which: `cat` Cat, `dog` Dog.\n\n"},
		"a range":                     {property("{type: integer, minimum: 1, maximum: 100, multipleOf: 5}"), "| `x` | integer | no | Minimum 1. Maximum 100. Multiple of 5. |\n"},
		"an exclusive range":          {property("{type: number, exclusiveMinimum: 0, exclusiveMaximum: 1.5}"), "Minimum 0, exclusive. Maximum 1.5, exclusive. |\n"},
		"an exclusive range of 3.0":   {property("{type: number, minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false}"), "Minimum 0, exclusive. Maximum 9. |\n"},
		"lengths":                     {property("{type: string, minLength: 1, maxLength: 64}"), "| Length 1 to 64. |\n"},
		"one length":                  {property("{type: string, minLength: 3, maxLength: 3, pattern: '^[A-Z|]+$'}"), "| Length 3. Pattern `^[A-Z\\|]+$`. |\n"},
		"items":                       {property("{type: array, minItems: 2, uniqueItems: true, items: {type: string, maxLength: 5}}"), "| `x` | array of string | no | Items are unique. Items: at least 2. Each: Length at most 5. |\n"},
		"fields":                      {property("{type: object, maxProperties: 50, additionalProperties: {type: string, maxLength: 9}}"), "| `x` | object | no | Fields: at most 50. |\n| `x.*` | string | no | Length at most 9. |\n"},
		"nullable":                    {property("{type: string, nullable: true, enum: [a, null]}"), "| `x` | string or null | no | One of `a`, `null`. |\n"},
		"nullable and named":          {property("{nullable: true, allOf: [{$ref: '#/components/schemas/Cat'}]}"), "| `x` | Cat or null | no |  |\n"},
		"types":                       {property("{type: [string, integer, 'null'], writeOnly: true, deprecated: true}"), "| `x` | string or integer or null | no | Deprecated. Write-only. |\n"},
		"values that are no text":     {property("{enum: [1, true, {a: 1}], default: [1, 2], example: {b: 2}}"), "| One of `1`, `true`, `{\"a\":1}`. Default `[1,2]`. Example `{\"b\":2}`. |\n"},
		"a constant":                  {property("{const: 7}"), "| One of `7`. |\n"},
		"a closed body":               {schema("{type: object, additionalProperties: false, properties: {a: {type: string}}}"), "No other fields are allowed.\n\n| Property |"},
		"a body that is a map":        {schema("{type: object, additionalProperties: {$ref: '#/components/schemas/Cat'}}"), "| `*` | Cat | no |  |\n| `*.kind` | string | no |  |\n"},
		"fields by pattern":           {schema("{type: object, patternProperties: {'^x-': {type: string}}}"), "| `/^x-/` | string | no |  |\n"},
		"a body that is a list":       {schema("{type: array, minItems: 1, items: {type: integer, maximum: 9}}"), "array of integer Items: at least 1.\n"},
		"next to a reference":         {property("{$ref: '#/components/schemas/Cat', description: Whose it is., deprecated: true, readOnly: true, default: {kind: tabby}}"), "| `x` | Cat | no | Whose it is. Deprecated. Read-only. Default `{\"kind\":\"tabby\"}`. |\n"},
		"fields next to a reference":  {property("{$ref: '#/components/schemas/Cat', required: [kind], properties: {tail: {type: number}}}"), "| `x.kind` | string | yes |  |\n| `x.claws` | integer | yes |  |\n| `x.tail` | number | no |  |\n"},
		"an alternative of itself":    {schema("{$ref: '#/components/schemas/Loop'}"), "One of: Loop, Option 2.\n\n" + head + "| `next` | Loop or object | no |  |\n| `next.next` | Loop or object | no |  |\n\n## Schemas"},
		"many values":                 {property("{enum: [" + keys(1001, "v%d,") + "]}"), "`v999`, and more. |\n"},
		"security of all operations": {operation("{}", "security: [{key: []}]\ncomponents: {securitySchemes: {key: {type: http, scheme: bearer, bearerFormat: JWT, description: A token.}}}"),
			"- `key`: http bearer JWT. A token.\n\nRequired unless an operation says otherwise: `key`.\n\n## GET /a\n\nAuthentication: `key`.\n"},
		"security of an operation": {operation("{security: [{key: [], oauth: [read, write]}, {basic: []}, {}]}", "security: [{key: []}]"), "## GET /a\n\nAuthentication: `key` and `oauth` (`read`, `write`), or `basic`, or none.\n"},
		"no security":              {operation("{security: []}", "security: [{key: []}]"), "## GET /a\n\nAuthentication: none.\n"},
		"flows": {operation("{}", "components: {securitySchemes: {o: {type: oauth2, flows: {authorizationCode: {authorizationUrl: 'https://a.example/auth', tokenUrl: 'https://a.example/token', scopes: {read: Reads things}}}}}}"),
			"- `o`: oauth2.\n  - authorizationCode authorizationUrl `https://a.example/auth`, tokenUrl `https://a.example/token`\n    - `read`: Reads things\n"},
		"server variables": {"servers: [{url: 'https://{region}.a.example', description: Live, variables: {region: {default: eu, enum: [eu, us], description: Where.}}}]\npaths: {/a: {get: {}}}",
			"- `https://{region}.a.example` Live\n  - `{region}`: Where. One of `eu`, `us`. Default `eu`.\n"},
		"an operation's server":   {operation("{servers: [{url: 'https://files.a.example'}]}", ""), "## GET /a\n\n### Servers\n\n- `https://files.a.example`\n"},
		"a path's server":         {"paths: {/a: {servers: [{url: 'https://b.a.example'}], get: {}}}", "### Servers\n\n- `https://b.a.example`\n"},
		"the method query":        {"paths: {/a: {query: {summary: Searches}}}", "## QUERY /a\n\nSearches"},
		"additional operations":   {"paths: {/a: {additionalOperations: {LINK: {summary: Links}, copy: {summary: Copies}}}}", "## LINK /a\n\nLinks\n\n## COPY /a\n\nCopies"},
		"an operation's own":      {"paths: {/a: {parameters: [{name: q, in: query, schema: {type: string}}], get: {parameters: [{name: q, in: query, deprecated: true, schema: {type: integer}}]}}}", "| --- | --- | --- | --- | --- |\n| `q` | query | integer | no | Deprecated. |\n"},
		"alternatives of a query": {operation("{parameters: [{name: w, in: query, schema: {oneOf: [{type: object, title: Since, properties: {gt: {type: integer}}}, {type: object, properties: {on: {type: string}}}]}}]}", ""), "| `w`, **Since**: | query |  |  |  |\n| `w.gt` | query | integer | no |  |\n| `w`, **Option 2**: | query |"},
		"a required body":         {operation("{requestBody: {required: true, content: {text/plain: {schema: {type: string}}}}}", ""), "### Request body\n\nRequired.\n\n"},
		"a stream":                {operation("{responses: {'200': {summary: Events, content: {text/event-stream: {itemSchema: {type: object, properties: {data: {type: string}}}}}}}}", ""), "| 200 | Events |\n\n#### Status 200\n\n`text/event-stream`\n\nEach item:\n\n" + head + "| `data` | string | no |  |"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := content.ExtractOpenAPI([]byte("openapi: 3.2.0\ninfo: {title: T}\n" + c.text))
			require.NoError(t, err)
			require.Contains(t, strings.ReplaceAll(p.Markdown+"\n", "\n\n\n", "\n?\n"), c.want)
		})
	}
}
