package content_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

const apiFolder = "https://docs.example.com/api/v1/"

// given reads a description whose files are these, the first openapi.yaml, and returns
// the page and the files in the order in which they were needed.
func given(t *testing.T, files map[string]string) (markdown string, needed []string) {
	t.Helper()
	at, err := url.Parse(apiFolder + "openapi.yaml")
	require.NoError(t, err)
	d, err := content.ReadOpenAPI([]byte(files["openapi.yaml"]), at)
	require.NoError(t, err)
	for n := 0; len(d.Needs()) > 0; n++ {
		require.Less(t, n, 20, "it does not end")
		address := d.Needs()[0]
		needed = append(needed, strings.TrimPrefix(address, apiFolder))
		text, has := files[strings.TrimPrefix(address, apiFolder)]
		if !has {
			d.Leave(address)
			continue
		}
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.NoError(t, d.Add(address, u, []byte(text)))
	}
	p, err := d.Page()
	require.NoError(t, err)
	return p.Markdown, needed
}

// A description in several files reads as one: paths, parameters, responses and schemas
// of other files, each relative to its own file, also in circles.
func TestOpenAPIFiles(t *testing.T) {
	got, needed := given(t, map[string]string{
		"openapi.yaml": `
openapi: 3.1.0
info: {title: Shop, description: All of it}
paths:
  /orders/{id}: {$ref: 'paths/order.yaml'}
  /elsewhere: {$ref: 'https://other.example/paths.yaml#/a'}
  /orders:
    get:
      summary: All orders
      parameters: [{$ref: 'common.json#/parameters/limit'}]
      responses: {"200": {description: OK, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Order'}}, example: {$ref: never.yaml}}}}}
components:
  schemas:
    Order: {$ref: ./schemas/Order.yaml}
`,
		"paths/order.yaml": `
get:
  summary: One order
  parameters:
    - $ref: '../common.json#/parameters/id'
  responses:
    "200": {description: OK, content: {application/json: {schema: {$ref: '../schemas/Order.yaml'}}}}
    "404": {$ref: '../common.json#/responses/a~1b%20c'}
`,
		"common.json":        `{"parameters":{"id":{"name":"id","in":"path","required":true,"description":"Its number","schema":{"type":"integer"}},"limit":{"name":"limit","in":"query","schema":{"$ref":"schemas/Limit.json"}},"unused":{"$ref":"unused.yaml"}},"responses":{"a/b c":{"description":"Not there","content":{"application/json":{"schema":{"$ref":"#/bad"}}}}},"bad":{"type":"object","properties":{"code":{"type":"string"}}}}`,
		"schemas/Limit.json": `{"type":"integer","description":"At most so many","default":20}`,
		"schemas/Order.yaml": "type: object\nrequired: [id]\nproperties:\n  id: {type: integer, description: The number}\n  buyer: {$ref: 'Buyer.yaml'}\n  root: {$ref: '../openapi.yaml#/components/schemas/Order'}\n",
		"schemas/Buyer.yaml": "type: object\nproperties:\n  name: {type: string, description: Who bought}\n  orders: {type: array, items: {$ref: Order.yaml}}\n",
	})
	require.Equal(t, []string{"paths/order.yaml", "https://other.example/paths.yaml", "common.json", "schemas/Order.yaml", "schemas/Limit.json", "schemas/Buyer.yaml"}, needed, "in the order of their use, and none that nothing uses")
	for _, want := range []string{
		"## GET /orders/{id}\n\nOne order\n\n### Parameters\n\n| Name | In | Type | Required | Description |\n| --- | --- | --- | --- | --- |\n| `id` | path | integer | yes | Its number |",
		"## /elsewhere\n\nDescribed in `https://other.example/paths.yaml#/a`.\n\n",
		"| `limit` | query | integer | no | At most so many Default `20`. |",
		"| 404 | Not there |",
		"| `code` | string | no |  |",
		"| `id` | integer | yes | The number |\n| `buyer` | Buyer | no |  |\n| `buyer.name` | string | no | Who bought |",
		"### Order\n\n| Property | Type | Required | Description |\n| --- | --- | --- | --- |\n| `id` | integer | yes | The number |\n| `buyer` | Buyer | no |  |\n| `root` | Order | no |  |",
		"### Buyer\n\n| Property | Type | Required | Description |\n| --- | --- | --- | --- |\n| `name` | string | no | Who bought |\n| `orders` | array of Order | no |  |",
	} {
		require.Contains(t, got, want)
	}
	require.Equal(t, 1, strings.Count(got, "### Order\n"), "a schema has one section")
}

// What has an address of its own ($self, $id, $anchor) is found by it, and references
// below it are relative to it.
func TestOpenAPIAddresses(t *testing.T) {
	got, needed := given(t, map[string]string{
		"openapi.yaml": `
openapi: 3.2.0
$self: https://docs.example.com/canon/openapi.yaml
info: {title: Shop}
paths:
  /a:
    get:
      responses:
        "200": {description: OK, content: {application/json: {schema: {$ref: 'https://schemas.example/one'}}}}
        "201": {description: OK, content: {application/json: {schema: {$ref: '#/components/schemas/Two/properties/deep'}}}}
        "202": {description: OK, content: {application/json: {schema: {$ref: 'https://docs.example.com/api/v1/openapi.yaml#here'}}}}
        "203": {description: OK, content: {application/json: {schema: {$ref: 'part.yaml'}}}}
        "204": {description: OK, content: {application/json: {schema: {$ref: '#/paths/~1a/get/responses/203/content/application~1json/list/0'}}}}
components:
  schemas:
    One: {$id: 'https://schemas.example/one', type: object, properties: {first: {type: string, description: First field}, next: {$ref: two}}}
    Two: {$id: 'https://schemas.example/two', type: object, properties: {second: {type: string, description: Second field}, deep: {type: object, properties: {third: {type: string, description: Third field}, back: {$ref: one}}}}}
    Three: {$anchor: here, type: object, properties: {fourth: {type: string, description: Fourth field}}}
`})
	require.Equal(t, []string{"https://docs.example.com/canon/part.yaml"}, needed)
	for _, want := range []string{"| `first` | string | no | First field |\n| `next` | two | no |  |\n| `next.second` | string | no | Second field |", "| `third` | string | no | Third field |\n| `back` | one | no |  |\n| `back.first`", "| `fourth` | string | no | Fourth field |"} {
		require.Contains(t, got, want)
	}
}

// A file is kept as JSON without e-mail addresses, and says the same.
func TestCleanFile(t *testing.T) {
	text := "openapi: 3.0.0\ninfo: {title: A, description: |\n  Write to me@example.com\n}\npaths: {/b: {get: {summary: \"x: y\", parameters: [{name: n, in: query, schema: {type: integer, default: 1.50}}]}}}\n"
	text = strings.Replace(text, "description: |\n  Write to me@example.com\n", "description: Write to me@example.com", 1)
	clean, err := content.CleanFile([]byte(text))
	require.NoError(t, err)
	require.Equal(t, `{"openapi":"3.0.0","info":{"title":"A","description":"Write to [email]"},"paths":{"/b":{"get":{"summary":"x: y","parameters":[{"name":"n","in":"query","schema":{"type":"integer","default":1.50}}]}}}}`, string(clean))
	before, err := content.ExtractOpenAPI([]byte(text))
	require.NoError(t, err)
	after, err := content.ExtractOpenAPI(clean)
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = content.CleanFile([]byte("<html></html>"))
	require.Error(t, err)
}

// Files of strangers, which refer to each other in any way.
func FuzzOpenAPIFiles(f *testing.F) {
	f.Add("openapi: 3.1.0\npaths: {/a: {$ref: 'b.yaml'}}\n", "get: {$ref: 'openapi.yaml#/paths/~1a'}\n")
	f.Add(`{"swagger":"2.0","paths":{"/a":{"get":{"responses":{"200":{"schema":{"$ref":"b.yaml#/x/0"}}}}}}}`, `{"x":[{"$id":"c","properties":{"a":{"$ref":"#"},"b":{"$ref":"#y"}},"$anchor":"y"}]}`)
	f.Add(`{"openapi":"3.1.0","$self":"%","components":{"schemas":{"$ref":"b.yaml"}}}`, `{"A":{"$ref":"b.yaml#/B"},"B":{"$ref":"b.yaml#/A"}}`)
	f.Fuzz(func(t *testing.T, root, other string) {
		at, err := url.Parse(apiFolder + "openapi.yaml")
		require.NoError(t, err)
		d, err := content.ReadOpenAPI([]byte(root), at)
		if err != nil {
			return
		}
		for n := 0; n < 5 && len(d.Needs()) > 0; n++ {
			address := d.Needs()[0]
			u, err := url.Parse(address)
			require.NoError(t, err)
			if d.Add(address, u, []byte(other)) != nil {
				d.Leave(address)
			}
			require.NotContains(t, d.Needs(), address)
		}
		p, err := d.Page()
		require.Equal(t, err == nil, p.Markdown != "")
	})
}
