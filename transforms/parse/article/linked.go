package article

import (
	"bytes"
	"encoding/json"
	"html"
	"slices"
	"strings"
)

// jsonLD is what the page's JSON-LD (schema.org) says about its article.
type jsonLD struct {
	headline, body, section, description string
	published, modified                  string
	authors                              []string
	paid                                 bool // isAccessibleForFree says no
}

// articleTypes are schema.org's Article and those below it that news use.
var articleTypes = []string{"NewsArticle", "Article", "ReportageNewsArticle", "AnalysisNewsArticle", "OpinionNewsArticle", "BackgroundNewsArticle",
	"ReviewNewsArticle", "AskPublicNewsArticle", "BlogPosting", "LiveBlogPosting", "SocialMediaPosting", "Report", "ScholarlyArticle", "TechArticle", "Review", "Recipe", "MedicalWebPage"}

// readLinked reads the article out of a page's JSON-LD. Scripts that are not JSON
// are ignored: many pages have some.
func readLinked(scripts [][]byte) jsonLD {
	o := ldObjects{rank: len(articleTypes)}
	for _, s := range scripts {
		if v, ok := parseScript(s); ok {
			o.search(v, 0)
		}
	}
	var l jsonLD
	for _, v := range []map[string]any{o.page, o.article} {
		if free, said := truth(v["isAccessibleForFree"]); said {
			l.paid = !free
		}
	}
	for _, v := range []map[string]any{o.article, o.page} {
		if v == nil {
			continue
		}
		if l.published == "" {
			l.published = first(texts(v["datePublished"]))
		}
		if l.modified == "" {
			l.modified = first(texts(v["dateModified"]))
		}
	}
	if o.article == nil {
		return l
	}
	if l.published == "" {
		l.published = first(texts(o.article["dateCreated"]))
	}
	l.headline = collapse(html.UnescapeString(first(texts(o.article["headline"]))))
	l.body = html.UnescapeString(first(texts(o.article["articleBody"])))
	l.description = html.UnescapeString(first(texts(o.article["description"])))
	l.section = collapse(first(texts(o.article["articleSection"])))
	l.authors = names(o.article["author"])
	return l
}

// parseScript parses a script, also one in a comment or CDATA section, or with line
// ends in its strings, which is a common mistake.
func parseScript(s []byte) (v any, ok bool) {
	s = bytes.TrimSpace(s)
	s = bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimPrefix(s, []byte("<!--")), []byte("<![CDATA[")), []byte("]]>"))
	s = bytes.TrimRight(bytes.TrimSpace(bytes.TrimSuffix(s, []byte("-->"))), "; \n")
	if json.Unmarshal(s, &v) == nil {
		return v, true
	}
	oneLine := bytes.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return ' '
		}
		return c
	}, s)
	err := json.Unmarshal(oneLine, &v)
	return v, err == nil
}

// ldObjects are the objects of a page's JSON-LD that describe its article.
type ldObjects struct {
	article map[string]any // of the first type in articleTypes, at best with a body
	rank    int            // its index in articleTypes
	page    map[string]any // the first WebPage
}

// search looks for the objects in v.
func (o *ldObjects) search(v any, depth int) {
	if depth > 6 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			o.search(e, depth+1)
		}
	case map[string]any:
		for _, t := range texts(v["@type"]) {
			t = strings.TrimPrefix(strings.TrimPrefix(t, "https://schema.org/"), "http://schema.org/")
			if i := slices.Index(articleTypes, t); i >= 0 && (i < o.rank || i == o.rank && o.article != nil && o.article["articleBody"] == nil && v["articleBody"] != nil) {
				o.article, o.rank = v, i
			}
			if t == "WebPage" && o.page == nil {
				o.page = v
			}
		}
		for _, key := range []string{"@graph", "mainEntity", "mainEntityOfPage", "hasPart"} {
			if key == "hasPart" && o.article != nil {
				continue
			}
			o.search(v[key], depth+1)
		}
	}
}

// truth is a schema.org Boolean, which pages write as a text or an address too.
func truth(v any) (is, said bool) {
	if b, ok := v.(bool); ok {
		return b, true
	}
	s := strings.ToLower(first(texts(v)))
	switch s[strings.LastIndexByte(s, '/')+1:] {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	}
	return false, false
}

// names are the names of persons in a schema.org value.
func names(v any) []string {
	var out []string
	add := func(s string) {
		s = collapse(html.UnescapeString(s))
		if s != "" && !strings.Contains(s, "://") && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	switch v := v.(type) {
	case string:
		add(v)
	case []any:
		for _, e := range v {
			for _, n := range names(e) {
				add(n)
			}
		}
	case map[string]any:
		for _, s := range texts(v["name"]) {
			add(s)
		}
	}
	return out
}

// texts are the strings of a value that may be one or a list.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	case map[string]any:
		return texts(v["@value"])
	}
	return nil
}

func first(all []string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}
