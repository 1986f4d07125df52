// Package context7 reads the answers of Context7's API (context7.com/docs/api-guide),
// which has the documentation of many libraries. It is pure. No promise: see docs/library.md.
package context7

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Search is the address that lists the libraries of a name.
func Search(name string) string {
	return "https://context7.com/api/v2/libs/search?" + url.Values{"libraryName": {name}, "query": {name + " API documentation"}}.Encode()
}

// library is an entry of the answer. Its name is title in some versions of the API.
type library struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Snippets *int64 `json:"totalSnippets"`
}

// Resolve returns the id of the library in an answer that is the documentation of a
// provider, "" if there is none: it has the provider's name, or is made from the website
// of its host.
func Resolve(answer []byte, name, host string) (id string, err error) {
	var found []library
	if err := json.Unmarshal(answer, &found); err != nil {
		var in struct {
			Results []library `json:"results"`
		}
		if err := json.Unmarshal(answer, &in); err != nil {
			return "", fmt.Errorf("reading Context7's answer: %w", err)
		}
		found = in.Results
	}
	if found == nil { // it may be an error with status 200, which must not count as "none"
		return "", errors.New("reading Context7's answer: it has no list of libraries")
	}
	site := "/websites/" + strings.ReplaceAll(strings.ToLower(host), ".", "_")
	for _, l := range found {
		empty := l.Snippets != nil && *l.Snippets <= 0
		same := plain(l.Name) == plain(name) || plain(l.Title) == plain(name)
		if at := strings.ToLower(l.ID); !empty && at != "" && (same && plain(name) != "" || at == site || strings.HasPrefix(at, site+"_")) {
			return l.ID, nil
		}
	}
	return "", nil
}

// plain is a name without case, spaces and punctuation.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
