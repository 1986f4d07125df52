package content_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// largeOpenAPI writes a description as the large public ones are (GitHub's, Stripe's):
// a thousand operations over eight hundred shared schemas that refer to each other,
// shared parameters and errors, one shared example for each schema.
func largeOpenAPI(operations, schemas int) string {
	var b strings.Builder
	b.WriteString(`{"openapi":"3.0.3","info":{"title":"Large API","version":"1.1.4","description":"Everything."},"servers":[{"url":"https://api.example.com"}],"paths":{`)
	for i := range operations {
		if i > 0 {
			b.WriteByte(',')
		}
		s := i * 7 % schemas
		fmt.Fprintf(&b, `"/things-%d/{owner}/{id}":{"get":{"summary":"Get thing %[1]d","description":"Returns one thing.\n\nFor more, see [things](https://docs.example.com/things/%[1]d#get). Mail help@example.com with `+"`code`"+`.","operationId":"things/get-%[1]d","tags":["things"],`+
			`"parameters":[{"$ref":"#/components/parameters/owner"},{"$ref":"#/components/parameters/id"},{"name":"sort","in":"query","description":"The property to sort by. See [sorting](https://docs.example.com/sort).","schema":{"type":"string","enum":["created","updated","comments"],"default":"created"}}],`+
			`"responses":{"200":{"description":"Response","content":{"application/json":{"schema":{"$ref":"#/components/schemas/thing-%[2]d"},"examples":{"default":{"$ref":"#/components/examples/thing-%[2]d"}}}}},"404":{"$ref":"#/components/responses/not_found"},"422":{"$ref":"#/components/responses/invalid"}}}`, i, s)
		if i%3 == 0 {
			fmt.Fprintf(&b, `,"post":{"summary":"Make thing %d","requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","description":"The name | of it"},"parent":{"$ref":"#/components/schemas/thing-%d"}}}}}},"responses":{"201":{"description":"Created"},"404":{"$ref":"#/components/responses/not_found"}}}`, i, s)
		}
		b.WriteByte('}')
	}
	b.WriteString(`},"components":{"parameters":{"owner":{"name":"owner","in":"path","required":true,"description":"The account owner. The name is not case sensitive.","schema":{"type":"string"}},"id":{"name":"id","in":"path","required":true,"schema":{"type":"integer","format":"int64"}}},` +
		`"responses":{"not_found":{"description":"Resource not found","content":{"application/json":{"schema":{"$ref":"#/components/schemas/error"}}}},"invalid":{"description":"Validation failed","content":{"application/json":{"schema":{"$ref":"#/components/schemas/error"}}}}},"schemas":{"error":{"type":"object","properties":{"message":{"type":"string"},"documentation_url":{"type":"string"}}}`)
	for i := range schemas {
		fmt.Fprintf(&b, `,"thing-%d":{"title":"Thing %[1]d","description":"A thing.","type":"object","required":["id","p0","p1","p2"],"properties":{"id":{"type":"integer","format":"int64","example":%[1]d}`, i)
		for j := range 28 {
			fmt.Fprintf(&b, `,"p%d":{"type":["string","null"],"format":"uri","description":"Property %[1]d of thing %d, with some words about what it is and a [link](https://docs.example.com/%[1]d).","example":"https://api.example.com/things/%[2]d/p%[1]d{/sha}"}`, j, i)
		}
		fmt.Fprintf(&b, `,"parts":{"type":"array","items":{"$ref":"#/components/schemas/thing-%d"}},"either":{"anyOf":[{"$ref":"#/components/schemas/error"},{"type":"null"}]}}}`, (i*5+2)%schemas)
	}
	b.WriteString(`},"examples":{"none":{"value":null}`)
	for i := range schemas {
		fmt.Fprintf(&b, `,"thing-%d":{"value":{"id":%[1]d`, i)
		for j := range 60 {
			fmt.Fprintf(&b, `,"field_%d":"https://api.example.com/repos/octocat/Hello-World/%d/field_%[1]d{/sha}","count_%[1]d":%[1]d,"nested_%[1]d":{"name":"n","ok":true,"tags":["a","b"]}`, j, i)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`}}}`)
	return b.String()
}

func BenchmarkOpenAPI(b *testing.B) {
	body := []byte(largeOpenAPI(550, 630))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		form, _ := content.Kind("application/json", body)
		p, err := content.ExtractOpenAPI(body)
		require.NoError(b, err)
		require.Equal(b, content.OpenAPI, form)
		b.ReportMetric(float64(len(p.Markdown)), "bytes")
	}
}

func BenchmarkSplitOpenAPI(b *testing.B) {
	p, err := content.ExtractOpenAPI([]byte(largeOpenAPI(550, 630)))
	require.NoError(b, err)
	chunk.Tokens("")
	b.SetBytes(int64(len(p.Markdown)))
	b.ReportAllocs()
	for b.Loop() {
		b.ReportMetric(float64(len(chunk.Split("https://docs.example.com/a", p.Markdown, nil, chunk.Default))), "chunks")
	}
}
