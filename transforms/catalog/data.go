package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/jmespath-community/go-jmespath"
)

// parseJSON reads a document of JSON. Numbers are float64, so that expressions can compare
// them, or, where that would change their digits (long identifiers), json.Number.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("parsing JSON: there is more text after its end")
	}
	return exact(v), nil
}

func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = exact(e)
		}
	case []any:
		for i, e := range v {
			v[i] = exact(e)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && plainNumber(f) == v.String() {
			return f
		}
	}
	return v
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// query is a compiled JMESPath expression.
type query struct {
	compiled jmespath.JMESPath
	whole    jmespath.JMESPath // the same without its filters, nil if it has none
}

func compilePath(expression string) (p *query, err error) {
	defer recovered(&err)
	compiled, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	q := &query{compiled: compiled}
	if all := unfiltered(expression); all != expression {
		if whole, err := jmespath.Compile(all); err == nil {
			q.whole = whole
		}
	}
	return q, nil
}

// quotedTexts matches what an expression has between quotation marks.
var quotedTexts = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|` + "`(?:[^`\\\\]|\\\\.)*`")

// unfiltered returns an expression that finds all elements where the given one has a filter:
// products[*].url of products[?type=='tea'].url.
func unfiltered(expression string) string {
	plain := quotedTexts.ReplaceAllStringFunc(expression, func(s string) string { return strings.Repeat("_", len(s)) })
	var b strings.Builder
	for at := 0; at < len(plain); {
		if !strings.HasPrefix(plain[at:], "[?") {
			b.WriteByte(expression[at])
			at++
			continue
		}
		b.WriteString("[*]")
		for depth := 0; at < len(plain); {
			depth += strings.Count(plain[at:at+1], "[") - strings.Count(plain[at:at+1], "]")
			if at++; depth == 0 {
				break
			}
		}
	}
	return b.String()
}

// search returns what the expression finds; nil if that is nothing.
func (p *query) search(data any) (found any, err error) {
	defer recovered(&err)
	return p.compiled.Search(data)
}

// unfiltered returns the query without its filters.
func (p *query) unfiltered() *query {
	if p == nil || p.whole == nil {
		return p
	}
	return &query{compiled: p.whole}
}

// recovered makes an error of a panic of the library: some of its functions panic where
// an array has null.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("the expression cannot be evaluated: %v", v)
	}
}

// items returns what the expression finds: the elements of an array, or the one value.
func (p *query) items(data any) []any {
	found, err := p.search(data)
	if err != nil || found == nil {
		return nil
	}
	if all, ok := found.([]any); ok {
		return all
	}
	return []any{found}
}

// scalars returns the texts, numbers, true and false among the items; objects have no text.
func (p *query) scalars(data any) iter.Seq[scalar] {
	return func(yield func(scalar) bool) {
		for _, v := range p.items(data) {
			if !yieldScalars(v, yield) {
				return
			}
		}
	}
}

func yieldScalars(v any, yield func(scalar) bool) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !yieldScalars(e, yield) {
				return false
			}
		}
	case string:
		return yield(scalar{text: v})
	case float64:
		return yield(scalar{plainNumber(v), true})
	case json.Number:
		return yield(scalar{v.String(), true})
	case bool:
		return yield(scalar{text: strconv.FormatBool(v)})
	}
	return true
}
