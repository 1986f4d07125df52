package article

import (
	"encoding/json"
	"html"
	"slices"
	"strings"
)

// jsonLD is what the page's JSON-LD (schema.org) says of its article.
type jsonLD struct {
	headline, body, section, description string
	published, modified                  string
	authors                              []string
	paid                                 bool // isAccessibleForFree says no
}

// articleTypes are schema.org's Article and those below it that news use.
var articleTypes = []string{"NewsArticle", "Article", "ReportageNewsArticle", "AnalysisNewsArticle", "OpinionNewsArticle", "BackgroundNewsArticle",
	"ReviewNewsArticle", "AskPublicNewsArticle", "BlogPosting", "LiveBlogPosting", "SocialMediaPosting", "Report", "ScholarlyArticle", "TechArticle", "Review", "Recipe", "MedicalWebPage"}

// readLinked reads the article out of a page's JSON-LD. Scripts that are no JSON
// are ignored: many pages have some.
func readLinked(scripts []string) jsonLD {
	var best map[string]any
	rank := len(articleTypes)
	var page map[string]any
	var look func(v any, depth int)
	look = func(v any, depth int) {
		if depth > 6 {
			return
		}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e, depth+1)
			}
		case map[string]any:
			for _, t := range texts(v["@type"]) {
				t = strings.TrimPrefix(strings.TrimPrefix(t, "https://schema.org/"), "http://schema.org/")
				if i := slices.Index(articleTypes, t); i >= 0 && (i < rank || i == rank && best != nil && best["articleBody"] == nil && v["articleBody"] != nil) {
					best, rank = v, i
				}
				if t == "WebPage" && page == nil {
					page = v
				}
			}
			for _, key := range []string{"@graph", "mainEntity", "mainEntityOfPage", "hasPart"} {
				if key == "hasPart" && best != nil {
					continue
				}
				look(v[key], depth+1)
			}
		}
	}
	for _, s := range scripts {
		s = strings.TrimSpace(s)
		s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "<!--"), "<![CDATA["), "]]>")
		s = strings.TrimRight(strings.TrimSpace(strings.TrimSuffix(s, "-->")), "; \n")
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			// Raw line ends in strings are the usual mistake.
			if json.Unmarshal([]byte(strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s)), &v) != nil {
				continue
			}
		}
		look(v, 0)
	}
	var l jsonLD
	for _, v := range []map[string]any{page, best} {
		if free, said := truth(v["isAccessibleForFree"]); said {
			l.paid = !free
		}
	}
	for _, v := range []map[string]any{best, page} {
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
	if best == nil {
		return l
	}
	if l.published == "" {
		l.published = first(texts(best["dateCreated"]))
	}
	l.headline = collapse(html.UnescapeString(first(texts(best["headline"]))))
	l.body = html.UnescapeString(first(texts(best["articleBody"])))
	l.description = html.UnescapeString(first(texts(best["description"])))
	l.section = collapse(first(texts(best["articleSection"])))
	l.authors = names(best["author"])
	return l
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
