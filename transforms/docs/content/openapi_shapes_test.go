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

// Descriptions in the forms of well-known APIs. Each @ is a number of its own, so that
// nothing is found in the place of something else.
var shapes = map[string]string{
	// GitHub: everything by reference, examples apart, headers, webhooks of an extension.
	"github": `
openapi: 3.0.3
info: {title: G, version: 1.1.4, description: Everything.}
paths:
  /repos/{owner}/things@:
    get:
      summary: List things
      description: Lists them.
      tags: [things]
      operationId: things/list
      externalDocs: {description: API method documentation, url: 'https://docs.example.com/rest'}
      parameters:
        - $ref: '#/components/parameters/owner'
        - {name: sort@, in: query, schema: {type: string, enum: [created@, updated@], default: created}}
        - {name: labels@, in: query, schema: {type: array, items: {type: string, enum: [bug@, idea@]}}}
        - {name: accept@, in: header, content: {application/json: {schema: {type: string, enum: [raw@]}}}}
      responses:
        '200':
          description: Response
          headers: {Link@: {$ref: '#/components/headers/link'}, X-Left@: {schema: {type: integer}, example: 4@}}
          content:
            application/json:
              schema: {type: array, items: {$ref: '#/components/schemas/minimal-thing'}}
              examples: {default: {$ref: '#/components/examples/things'}}
        '304': {$ref: '#/components/responses/not_modified'}
        '422': {$ref: '#/components/responses/invalid'}
    post:
      requestBody:
        content:
          application/json:
            schema:
              oneOf:
                - {type: object, required: [name], properties: {name@: {type: string}, deep@: {type: object, properties: {a@: {type: object, properties: {b@: {type: object, properties: {c@: {type: object, properties: {d@: {type: string, enum: [deepest@]}}}}}}}}}}}
                - {type: array, items: {type: object, properties: {id@: {type: integer}}}}
                - {type: string}
            examples: {one: {summary: One, value: {name: new-thing@}}, two: {value: {name: other-thing@}}}
      responses:
        '201': {description: Created, content: {application/json: {schema: {$ref: '#/components/schemas/thing'}, examples: {a: {value: {made: yes-it-is@}}}}}}
        '422': {description: Broken, content: {application/json: {schema: {$ref: '#/components/schemas/error'}, examples: {b: {value: {message: broken-one@}}}}}}
  /other@:
    delete:
      responses:
        '204': {description: Gone}
        '422': {description: Broken too, content: {application/json: {schema: {$ref: '#/components/schemas/error'}, examples: {b: {value: {message: broken-two@}}}}}}
x-webhooks:
  thing-made@:
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/webhook-thing'}}}}
      responses: {'200': {description: Received}}
components:
  headers: {link: {schema: {type: string}, example: '<https://api.example.com?page=2@>; rel="next"'}}
  parameters: {owner: {name: owner@, in: path, required: true, schema: {type: string}}}
  examples: {things: {value: [{id: 1@, owner: {login: octo-one@}}]}}
  responses:
    not_modified: {description: Not modified}
    invalid: {description: Invalid, content: {application/json: {schema: {$ref: '#/components/schemas/validation-error'}}}}
  schemas:
    minimal-thing: {allOf: [{$ref: '#/components/schemas/base'}, {type: object, properties: {minimal@: {type: boolean}}}]}
    base: {type: object, properties: {id@: {type: integer, format: int64, example: 42@}, owner@: {nullable: true, allOf: [{$ref: '#/components/schemas/user'}]}}}
    user: {type: object, properties: {login@: {type: string, example: octocat@}, plan@: {type: object, properties: {space@: {type: integer}, kind@: {enum: [free@, paid@]}}}}}
    thing: {type: object, properties: {parent@: {$ref: '#/components/schemas/thing'}, user@: {$ref: '#/components/schemas/user'}, topics@: {type: array, items: {type: array, items: {type: object, properties: {word@: {type: string}}}}}}}
    error: {type: object, properties: {message@: {type: string}}}
    validation-error: {type: object, properties: {errors@: {type: array, items: {type: object, properties: {code@: {type: string}, value@: {oneOf: [{type: string, nullable: true}, {type: array, items: {type: string, enum: [in-array@]}}]}}}}}}
    webhook-thing: {type: object, properties: {action@: {type: string, enum: [made@]}, thing@: {anyOf: [{$ref: '#/components/schemas/thing'}, {type: object, properties: {only-here@: {type: string}}}]}}}
`,
	// Stripe: form bodies of many levels, fields that may be expanded, empty values.
	"stripe": `
openapi: 3.0.0
info: {title: S, version: '2024-06-20'}
servers: [{url: 'https://api.example.com/'}]
paths:
  /v1/charges@:
    get:
      parameters:
        - name: created@
          in: query
          style: deepObject
          explode: true
          schema:
            anyOf:
              - {type: object, title: range_query_specs, properties: {gt@: {type: integer}, lte@: {type: integer}}}
              - {type: integer}
        - {name: expand@, in: query, schema: {type: array, items: {type: string, maxLength: 5000}}}
      requestBody: {content: {application/x-www-form-urlencoded: {encoding: {}, schema: {type: object, properties: {}}}}, required: false}
      responses:
        '200':
          content:
            application/json:
              schema:
                type: object
                required: [data]
                properties:
                  data@: {type: array, items: {$ref: '#/components/schemas/charge'}}
                  object@: {type: string, enum: [list@]}
                x-expandableFields: [data]
        default: {description: Error response., content: {application/json: {schema: {$ref: '#/components/schemas/error'}}}}
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              properties:
                card@:
                  anyOf:
                    - {type: object, properties: {number@: {type: string}, address@: {type: object, properties: {city@: {type: string}, more@: {anyOf: [{type: object, properties: {line@: {type: string}}}, {enum: [''], type: string}]}}}}}
                    - {type: string, maxLength: 5000}
                metadata@: {anyOf: [{additionalProperties: {type: string}, type: object}, {enum: [''], type: string}]}
                tiers@: {type: array, items: {type: object, properties: {up_to@: {anyOf: [{enum: [inf@], type: string}, {type: integer}]}}}}
                prices@: {type: object, additionalProperties: {type: object, properties: {amount@: {type: integer}, tax@: {type: string, enum: [inclusive@, exclusive@]}}}}
                country@: {type: string, enum: [C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@, C@]}
      responses:
        '200': {description: Made, content: {application/json: {schema: {$ref: '#/components/schemas/charge'}}}}
components:
  schemas:
    charge:
      type: object
      properties:
        amount@: {type: integer}
        customer@: {anyOf: [{maxLength: 5000, type: string}, {$ref: '#/components/schemas/customer'}, {$ref: '#/components/schemas/deleted_customer'}], nullable: true, x-expansionResources: {oneOf: [{$ref: '#/components/schemas/customer'}]}}
        status@: {type: string, enum: [failed@, pending@, succeeded@]}
        currency@: {$ref: '#/components/schemas/currency'}
    customer: {type: object, properties: {email@: {type: string}, sources@: {type: object, properties: {url@: {type: string}, data@: {type: array, items: {$ref: '#/components/schemas/source'}}}}}}
    deleted_customer: {type: object, properties: {deleted@: {type: boolean, enum: [true]}}}
    source: {type: object, properties: {flow@: {$ref: '#/components/schemas/flow'}}}
    flow: {type: object, properties: {step@: {type: object, properties: {hash@: {type: string}}}}}
    currency: {type: string, enum: [K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@, K@]}
    error: {type: object, properties: {error@: {type: object, properties: {code@: {type: string}, payment@: {$ref: '#/components/schemas/charge'}}}}}
`,
	// OpenAI: unions with a discriminator, constants, extensions of its own, callbacks.
	"openai": `
openapi: 3.1.0
info: {title: O, version: 2.3.0}
tags: [{name: Chat, description: Given messages, the model answers.}]
paths:
  /chat/completions@:
    post:
      operationId: createChatCompletion
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/CreateRequest'}}, multipart/form-data: {schema: {type: object, properties: {file@: {type: string, format: binary}}}}}}
      responses:
        '200': {description: OK, content: {application/json: {schema: {$ref: '#/components/schemas/Response'}}, text/event-stream: {schema: {$ref: '#/components/schemas/StreamEvent'}}}}
        4XX: {description: Client error}
      callbacks:
        onDone@:
          '{$request.body#/callback_url@}':
            post:
              summary: It is done
              parameters: [{name: X-Signature@, in: header, schema: {type: string}}]
              requestBody: {content: {application/json: {schema: {type: object, properties: {done@: {type: boolean}}}, example: {done_example: done-value@}}}}
              responses: {'2XX': {description: Heard}, '410': {description: Stop}}
        shared@: {$ref: '#/components/callbacks/shared'}
      x-oaiMeta: {name: Create, examples: {request: {curl: 'curl https://api.example.com'}}}
webhooks:
  batch_completed@:
    post:
      description: Sent when a batch is done.
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/WebhookBatch'}}}}
      responses: {'200': {description: Return a 200.}}
components:
  callbacks: {shared: {'{$url@}': {put: {responses: {'202': {description: Fine}}}}}}
  schemas:
    CreateRequest:
      allOf:
        - $ref: '#/components/schemas/ModelIds'
        - type: object
          required: [messages]
          properties:
            messages@: {type: array, minItems: 1, items: {$ref: '#/components/schemas/Message'}}
            format@: {description: How., anyOf: [{$ref: '#/components/schemas/Text'}, {$ref: '#/components/schemas/JSON'}]}
            stop@: {anyOf: [{type: string, default: x}, {type: array, items: {type: string}}, {type: 'null'}], examples: [END@, STOP@]}
            tool_choice@: {oneOf: [{type: string, enum: [none@, auto@]}, {type: object, properties: {function@: {type: object, properties: {name@: {type: string}}}}}]}
    ModelIds: {type: object, properties: {model@: {anyOf: [{type: string}, {type: string, enum: [gpt-a@, gpt-b@]}]}}}
    Message:
      oneOf: [{$ref: '#/components/schemas/UserMessage'}, {$ref: '#/components/schemas/SystemMessage'}]
      discriminator: {propertyName: role}
    UserMessage: {type: object, properties: {role@: {type: string, const: user@}, content@: {oneOf: [{type: string}, {type: array, items: {$ref: '#/components/schemas/Part'}}]}}}
    SystemMessage: {type: object, properties: {role@: {const: system@}}}
    Part: {type: object, properties: {image@: {type: object, properties: {url@: {type: string, format: uri}, detail@: {enum: [low@, high@]}}}}}
    Text: {type: object, properties: {type@: {enum: [text@]}}}
    JSON: {type: object, properties: {schema@: {type: object, additionalProperties: true}}}
    Response: {type: object, properties: {choices@: {type: array, items: {type: object, properties: {logprobs@: {type: [object, 'null'], properties: {tokens@: {type: array, items: {$ref: '#/components/schemas/Token'}}}}}}}}, example: {id: chatcmpl@, choices: [{text: hello-there@}]}}
    Token: {type: object, properties: {top@: {type: array, items: {type: object, properties: {bytes@: {anyOf: [{type: array, items: {type: integer}}, {type: 'null'}]}}}}}}
    StreamEvent: {anyOf: [{$ref: '#/components/schemas/Text'}, {type: object, properties: {delta@: {type: string}}}]}
    WebhookBatch: {type: object, properties: {data@: {type: object, properties: {batch@: {type: string}}}, type@: {type: string, enum: [batch.completed@]}}}
`,
	// What the parts of a schema say that have no name: Figma's and OpenAI's fields that may be
	// null, Anthropic's constants, Directus's parameters with examples, Cohere's object with items.
	"parts": `
openapi: 3.1.0
info: {title: P, version: '1', description: All of it@.}
tags: [{name: things, description: What things are@.}]
paths:
  /things@:
    post:
      summary: Make a thing@
      parameters:
        - {name: filter@, in: query, description: Which ones@., content: {application/json: {schema: {type: object}, examples: {one: {summary: By name@, description: A longer remark@, value: {name: Ada@}}, none: {summary: Nothing}}}}}
        - {name: sort@, in: query, schema: {anyOf: [{type: string, description: The field@., default: id@, example: name@}, {type: 'null'}]}}
      requestBody:
        content:
          application/json:
            schema:
              description: What is sent@.
              oneOf:
                - {title: Short, type: object, description: The short way@., properties: {heat@: {anyOf: [{type: number, description: How hot@., default: 1.5, examples: [0.25@]}, {type: 'null'}]}}}
                - {$ref: '#/components/schemas/Long', description: The long way here@.}
            examples: {a: {summary: A small thing@, value: {heat: 7@}}}
      responses:
        '200': {description: Made@, content: {application/json: {schema: {$ref: '#/components/schemas/Long'}}}}
components:
  schemas:
    Long:
      type: object
      description: The long way@.
      properties:
        model@: {$ref: '#/components/schemas/Model', description: Which model@.}
        limit@: {anyOf: [{$ref: '#/components/schemas/Limit', description: The limit of this place@.}, {type: 'null'}]}
        list@: {type: array, description: Some@., items: {oneOf: [{type: string, description: By its name@., maxLength: 5}, {type: integer, description: By its number@.}]}}
        map@: {type: object, additionalProperties: {type: string, description: Each value@.}}
        note@: {oneOf: [{type: object, example: {text: 'a long example of a part, which is longer than what fits into the cell of a table, so that it has to be below the table in a block of code of its own, where it is kept as it was written by its author, all of it@'}}, {type: string}]}
    Model: {anyOf: [{const: small@, description: The small one@.}, {const: large@, description: The large one@.}, {type: string}]}
    Limit: {allOf: [{type: object, description: A limit with a unit@., properties: {unit@: {type: string}}}, {$ref: '#/components/schemas/Amount'}]}
    Amount: {type: object, items: {type: number}, properties: {float@: {type: array, description: All floats@., items: {type: array, description: A row of them@., items: {type: number}}}}}
`,
	// Anthropic: 3.1 with null in unions, headers as parameters, long examples.
	"anthropic": `
openapi: 3.1.0
info: {title: A, version: 0.0.0}
paths:
  /v1/messages@:
    post:
      parameters:
        - {name: anthropic-version@, in: header, required: false, schema: {type: string, title: Anthropic-Version}, description: The version.}
        - {name: beta@, in: header, schema: {anyOf: [{items: {type: string}, type: array}, {type: 'null'}]}}
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: '#/components/schemas/CreateMessageParams'}
            examples: {first: {value: {max_tokens: 1024@, messages: [{content: 'Hello, world@', role: user}], metadata: {user_id: 13803d75-b4b5-4c3e-b2a2-6f21399b021b@, note: a longer text so that the whole is no short example any more and has to be written as a block of its own@}}}}
      responses:
        '200':
          description: Message object.
          content: {application/json: {schema: {$ref: '#/components/schemas/Message'}, example: {stop_reason: end_turn@}}}
        4XX: {description: Error response., content: {application/json: {schema: {$ref: '#/components/schemas/ErrorResponse'}}}}
components:
  schemas:
    CreateMessageParams:
      additionalProperties: false
      type: object
      required: [model]
      example: {model: model-example@}
      properties:
        model@: {description: The model., examples: [model-a@], anyOf: [{type: string}, {const: model-b@}, {const: model-c@}]}
        system@: {anyOf: [{type: string}, {type: array, items: {$ref: '#/components/schemas/RequestTextBlock'}}]}
        thinking@: {discriminator: {mapping: {enabled: '#/components/schemas/Enabled'}, propertyName: type}, oneOf: [{$ref: '#/components/schemas/Enabled'}]}
        tools@:
          type: array
          items: {oneOf: [{$ref: '#/components/schemas/Tool'}]}
          examples: [{name: a-long-example@, description: 'It is so long that a cell of a table would be hard to read, and that is why it is below the table in a block of code, where all of it is kept as it was written by its author, line by line@'}]
    RequestTextBlock: {type: object, properties: {cache_control@: {anyOf: [{type: 'null'}, {discriminator: {propertyName: type}, oneOf: [{$ref: '#/components/schemas/Ephemeral'}]}]}}}
    Ephemeral: {type: object, properties: {ttl@: {type: string, enum: [5m@, 1h@]}, type@: {const: ephemeral@, type: string}}}
    Enabled: {type: object, properties: {budget@: {type: integer, minimum: 1024}}}
    Tool: {type: object, properties: {input_schema@: {type: object, additionalProperties: true, properties: {properties@: {anyOf: [{type: object}, {type: 'null'}]}}}}}
    Message: {type: object, properties: {usage@: {allOf: [{$ref: '#/components/schemas/Usage'}], description: Billing.}, content@: {type: array, items: {oneOf: [{$ref: '#/components/schemas/RequestTextBlock'}]}}}}
    Usage: {type: object, properties: {tokens@: {type: integer, examples: [2095@]}}}
    ErrorResponse: {type: object, properties: {error@: {oneOf: [{$ref: '#/components/schemas/Invalid'}]}}}
    Invalid: {type: object, properties: {message@: {type: string, default: Invalid request}}}
`,
}

var numbered = regexp.MustCompile(`@`)

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
// a description is in its Markdown.
func TestOpenAPIShapes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			n := 100
			text := numbered.ReplaceAllStringFunc(shape, func(string) string { n++; return fmt.Sprint(n) })
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
