package content

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// ErrNotOpenAPI means that a document is not an OpenAPI or Swagger description, or
// cannot be read as one. The page is skipped.
var ErrNotOpenAPI = errors.New("not an OpenAPI or Swagger description")

// maxOpenAPI is the maximum length of a rendered description in bytes: by references
// a small description can repeat the same text in each operation.
const maxOpenAPI = 16 << 20

// maxSteps bounds the number of references and schemas read, for the same reason.
const maxSteps = 4 << 20

// describesAPI reports whether a document has openapi or swagger at its top level.
func describesAPI(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	if len(body) == 0 {
		return false
	}
	switch body[0] {
	case '{':
	case '<':
		return false // a web page that quotes a description
	default:
		return yamlVersion.Match(body[:min(len(body), 64<<10)])
	}
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		if key == "openapi" || key == "swagger" {
			return d.PeekKind() == '"' || d.PeekKind() == '0'
		}
		if err := d.SkipValue(); err != nil {
			return false
		}
	}
	return false
}

var yamlVersion = regexp.MustCompile(`(?m)^["']?(openapi|swagger)["']?[ \t]*:[ \t]*["']?[0-9]`)

// api renders a description.
type api struct {
	root object
	sections

	named map[string]any // what has an $id or an $anchor, by that
	found map[string]any // by reference
	index map[*member]map[string]any

	written  map[string]bool // named schemas of errors that were rendered
	examples int             // bytes of examples rendered

	fieldsKnown map[fieldKey]cells
	inCallback  bool // the operation is one of a callback
}

// ExtractOpenAPI renders a description (OpenAPI 2.0 to 3.2, JSON or YAML), one section for each operation. References to
// other files stay names. For other documents it returns ErrNotOpenAPI.
func ExtractOpenAPI(body []byte) (Page, error) {
	text, _, err := charset.Decode(body, "")
	var root object
	if err == nil {
		root, err = readObject(strings.TrimLeft(text, " \t\r\n\ufeff"))
	}
	if err != nil {
		return Page{}, fmt.Errorf("reading the description: %w: %w", ErrNotOpenAPI, err)
	}
	if str(root, "openapi") == "" && str(root, "swagger") == "" {
		return Page{}, ErrNotOpenAPI
	}
	a := api{root: root, named: map[string]any{}, found: map[string]any{}, index: map[*member]map[string]any{},
		written: map[string]bool{}, fieldsKnown: map[fieldKey]cells{}}
	a.register(root)
	a.b.Grow(min(len(body), maxOpenAPI))
	title := oneLine(str(root, "info", "title"))
	if title == "" {
		title = "API"
	}
	a.heading(1, title)
	a.prose(str(root, "info", "description"), 1)
	a.servers(root, 2)
	a.tags()
	a.security()
	for _, path := range members(a.resolve(field(root, "paths"))) {
		a.item(path.Key, path.Value)
	}
	for _, key := range []string{"webhooks", "x-webhooks"} {
		for _, hook := range members(a.resolve(field(root, key))) {
			a.item("webhook "+hook.Key, hook.Value)
		}
	}
	a.schemas()
	if a.tooLong() {
		return Page{}, fmt.Errorf("the description's references expand to over %d bytes or %d steps: %w", maxOpenAPI, maxSteps, ErrNotOpenAPI)
	}
	return Page{Title: ShortTitle(title), Markdown: Clean(strings.TrimSpace(a.b.String()))}, nil
}

// item writes the operations of a path, or of a webhook.
func (a *api) item(name string, v any) {
	item := a.resolve(v)
	if ref := str(v, "$ref"); item == nil && ref != "" {
		a.heading(2, oneLine(name))
		a.b.WriteString("Described in `" + oneLine(ref) + "`.\n\n")
	}
	for _, operation := range slices.Concat(members(item), members(item, "additionalOperations")) {
		if known := slices.Contains(methods, operation.Key); !known && field(item, "additionalOperations", operation.Key) == nil {
			continue
		}
		a.operation(operation.Key, oneLine(name), item, operation.Value)
		if a.tooLong() {
			return
		}
		a.cells = 0 // they are written
	}
}

// methods are the operations of a path item (OpenAPI 3.2.0 section 4.9). Others are in additionalOperations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}
