// Package apidesc finds the OpenAPI descriptions of a site: those that its pages and
// its API catalog (RFC 9727) name, and the places where they usually are. It is pure. No promise: see docs/library.md.
package apidesc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// Catalog is where a host lists its APIs (RFC 9727 section 2).
const Catalog = "/.well-known/api-catalog"

// Places are the names that a description usually has in a folder, the most usual first:
// the two that OpenAPI recommends (3.1.1 section 4.3, and what FastAPI serves), that of
// Swagger 2.0, and that of Spring.
func Places() []string {
	return []string{"openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs"}
}

var name = regexp.MustCompile(`(?i)(^|[/._-])(openapi|swagger)([._-][^/]*)?\.(json|ya?ml)$|/v[23]/api-docs(\.yaml)?$`)

// IsName reports whether the path of an address is one that descriptions have.
func IsName(path string) bool { return name.MatchString(path) }

// maxNamed is how many descriptions a page or a catalog may name.
const maxNamed = 50

// shows are the attributes in which the elements that show a description name it.
var shows = map[string]string{"redoc": "spec-url", "rapi-doc": "spec-url", "rapi-doc-mini": "spec-url", "openapi-explorer": "spec-url", "elements-api": "apidescriptionurl"}

var (
	marks  = [][]byte{[]byte("spec-url"), []byte("api-reference"), []byte("SwaggerUI"), []byte("Redoc.init"), []byte("createApiReference"), []byte("piDescriptionUrl"), []byte("pidescriptionurl")}
	viewer = regexp.MustCompile(`SwaggerUI(?:Bundle)?\s*\(|createApiReference\s*\(`)
	option = regexp.MustCompile(`(?:^|[{,\s])["']?url["']?\s*:\s*["']([^"'\s]+)["']`)
	redoc  = regexp.MustCompile(`Redoc\.init\s*\(\s*["']([^"'\s]+)["']`)
)

// Shown returns the addresses, as written, of the descriptions that a page of HTML shows
// with Redoc, Swagger UI, Scalar, RapiDoc, OpenAPI Explorer or Stoplight Elements.
func Shown(page []byte) (out []string) {
	if !slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(page, m) }) {
		return nil
	}
	add := func(address string) {
		if address = strings.TrimSpace(address); address != "" && len(out) < maxNamed && !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	z := html.NewTokenizer(bytes.NewReader(page))
	script := false
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return out
		case html.TextToken:
			if !script {
				continue
			}
			text := string(z.Text())
			for _, m := range redoc.FindAllStringSubmatch(text, maxNamed) {
				add(m[1])
			}
			if at := viewer.FindStringIndex(text); at != nil {
				for _, m := range option.FindAllStringSubmatch(text[at[0]:], maxNamed) {
					add(m[1])
				}
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			script = string(name) == "script" && kind == html.StartTagToken
			named := shows[string(name)]
			attr := dom.Attributes(z, more)
			if script && attr["id"] == "api-reference" {
				named = "data-url"
			}
			add(attr[named])
		case html.EndTagToken:
			script = false
		}
	}
}

// Listed returns the addresses, as written, of the descriptions that an API catalog
// names: the service-desc links of a set of links (RFC 9264 section 4.2).
func Listed(catalog []byte) (out []string, err error) {
	var set struct {
		Linkset []map[string]json.RawMessage `json:"linkset"`
	}
	if err := json.Unmarshal(catalog, &set); err != nil {
		return nil, fmt.Errorf("reading the API catalog: %w", err)
	}
	for _, context := range set.Linkset {
		var links []struct {
			Href string `json:"href"`
		}
		if json.Unmarshal(context["service-desc"], &links) != nil {
			continue // it has none
		}
		for _, l := range links {
			if l.Href != "" && len(out) < maxNamed && !slices.Contains(out, l.Href) {
				out = append(out, l.Href)
			}
		}
	}
	return out, nil
}
