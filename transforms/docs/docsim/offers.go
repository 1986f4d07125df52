package docsim

import (
	"fmt"
	"net/http"
	"strings"
)

// Offer adds what a site may have for language models: llms.txt, and with full the
// text of all its pages in llms-full.txt, or else the Markdown of each page at its
// address with .md.
func (s *Site) Offer(full bool) {
	var list, all strings.Builder
	list.WriteString("# Demo\n\n## Docs\n\n")
	for _, path := range s.Paths() {
		p, _ := s.Page(path)
		if p.Kind != "" || p.Status != 0 {
			continue
		}
		text := p.markdown()
		if full {
			fmt.Fprintf(&list, "- [%s](%s)\n", p.Title, path)
			head, rest, _ := strings.Cut(text, "\n")
			fmt.Fprintf(&all, "%s\nSource: https://%s%s\n%s\n", head, s.Host, path, rest)
		} else {
			fmt.Fprintf(&list, "- [%s](%s.md)\n", p.Title, path)
			s.Set(path+".md", Page{Kind: "text/markdown; charset=utf-8", Body: text})
		}
	}
	s.Set("/llms.txt", Page{Kind: "text/plain; charset=utf-8", Body: list.String()})
	if full {
		s.Set("/llms-full.txt", Page{Kind: "text/plain; charset=utf-8", Body: all.String()})
	}
}

// Describe adds an OpenAPI description, which the header of the page that a
// crawl begins with names (RFC 8631).
func (s *Site) Describe() {
	at := strings.TrimRight(s.Seed, "/") + "/openapi.json"
	s.Set(at, Page{Kind: "application/json", Body: `{"openapi":"3.1.0","info":{"title":"Demo API of ` + s.Host + `"},"paths":{"/things":{"get":{"summary":"All things",` +
		`"responses":{"200":{"description":"The things","content":{"application/json":{"schema":{"type":"object","properties":{"id":{"type":"string","description":"Which thing of ` + s.Host + ` it is"}}}}}}}}}}}`})
	seed, _ := s.Page(s.Seed)
	seed.Header = http.Header{"Link": {"<" + at + `>; rel="service-desc"`}}
	s.Set(s.Seed, seed)
}

// markdown is the page as its author wrote it.
func (p Page) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.Title)
	for _, sec := range p.Sections {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", sec.Heading, sec.Text)
		if sec.Code != "" {
			fmt.Fprintf(&b, "```%s\n%s\n```\n\n", sec.Lang, sec.Code)
		}
		for i, row := range sec.Table {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
			}
		}
		b.WriteByte('\n')
	}
	for _, l := range p.Links {
		fmt.Fprintf(&b, "- [%s](%s)\n", strings.Trim(l[strings.LastIndexByte(strings.TrimRight(l, "/"), '/')+1:], "/"), l)
	}
	return b.String()
}
