package provider

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	dayForm    = regexp.MustCompile(`^20\d\d-\d\d-\d\d`)
	year       = regexp.MustCompile(`^20\d\d$`)
	twoDigits  = regexp.MustCompile(`^\d\d$`)
	monthName  = regexp.MustCompile(`^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)$`)
	escaped    = regexp.MustCompile(`%..`)
	longNumber = regexp.MustCompile(`\d{4,}`)
)

// segment is a part of a path as a pattern of addresses has it.
type segment struct {
	form          string // year, day, two, month, number or word
	before, after string // of a number or a day: what stands around it
	digits        int
}

// segmentOf returns a part of a path as a pattern has it. The parts before it say whether
// two digits are of a date.
func segmentOf(text string, before []segment) segment {
	dated := slices.ContainsFunc(before, func(s segment) bool { return s.form == "year" })
	switch {
	case year.MatchString(text):
		return segment{form: "year"}
	case dated && twoDigits.MatchString(text):
		return segment{form: "two"}
	case dated && monthName.MatchString(text):
		return segment{form: "month"}
	case dayForm.MatchString(text):
		return segment{form: "day", after: text[10:]}
	}
	all := longNumber.FindAllStringIndex(escaped.ReplaceAllString(text, "%__"), -1)
	if len(all) == 0 {
		return segment{form: "word", before: text}
	}
	at := all[len(all)-1]
	return segment{form: "number", before: text[:at[0]], after: text[at[1]:], digits: at[1] - at[0]}
}

// addressForm is what articles' addresses have in common.
type addressForm struct {
	segments [][]segment // of each address
	query    string      // key of the number in the query
}

// Pattern returns a regular expression for articleUrl that many of these addresses of
// articles match, and how many. It is "" if they have no date, number or name in common.
func Pattern(addresses []*url.URL) (expression string, matched int) {
	forms := map[string]*addressForm{}
	for _, u := range addresses {
		var parts []segment
		for _, text := range strings.Split(strings.Trim(u.EscapedPath(), "/"), "/") {
			parts = append(parts, segmentOf(text, parts))
		}
		var key strings.Builder
		for _, p := range parts {
			key.WriteString(p.form + "/")
		}
		query := ""
		if m := numberedQuery.FindString(u.RawQuery); m != "" {
			query, _, _ = strings.Cut(strings.TrimPrefix(m, "&"), "=")
		}
		key.WriteString(path.Ext(u.Path) + "?" + query)
		f := forms[key.String()]
		if f == nil {
			f = &addressForm{query: query}
			forms[key.String()] = f
		}
		f.segments = append(f.segments, parts)
	}
	all := make([]*addressForm, 0, len(forms))
	for _, f := range forms {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *addressForm) int {
		return cmp.Or(len(b.segments)-len(a.segments), strings.Compare(a.expression(), b.expression()))
	})
	var some []string
	for _, f := range all {
		if e := f.expression(); e != "" && len(some) < 3 && len(f.segments)*20 >= len(addresses) {
			some = append(some, e)
		}
	}
	switch len(some) {
	case 0:
		return "", 0
	case 1:
		expression = "^/" + some[0]
	default:
		expression = "^/(?:" + strings.Join(some, "|") + ")"
	}
	is := regexp.MustCompile(expression)
	for _, u := range addresses {
		if is.MatchString(u.RequestURI()) {
			matched++
		}
	}
	if matched == 0 { // such as a path that begins with several slashes
		return "", 0
	}
	return expression, matched
}

// expression returns the pattern after the first slash, "" if it says too little.
func (f *addressForm) expression() string {
	var out []string
	sure, open := f.query != "", false // open: it ends with a title
	for i := range f.segments[0] {
		at := func(of func(segment) string) (values []string) {
			for _, parts := range f.segments {
				values = append(values, of(parts[i]))
			}
			return values
		}
		s := f.segments[0][i]
		open = false
		switch s.form {
		case "year":
			out, sure = append(out, `20\d\d`), true
		case "two":
			out = append(out, `\d\d`)
		case "month":
			out = append(out, `[a-z]{3}`)
		case "day":
			out, sure = append(out, `20\d\d-\d\d-\d\d`+same(at(func(s segment) string { return s.after }), false)), true
		case "number":
			digits := s.digits
			for _, parts := range f.segments {
				digits = min(digits, parts[i].digits)
			}
			out, sure = append(out, same(at(func(s segment) string { return s.before }), true)+fmt.Sprintf(`\d{%d,}`, min(digits, 5))+same(at(func(s segment) string { return s.after }), false)), true
		default:
			names := at(func(s segment) string { return s.before })
			slices.Sort(names)
			if names = slices.Compact(names); len(names) == 1 && len(f.segments) > 1 {
				sure = sure || names[0] != "" && i < len(f.segments[0])-1
				out = append(out, regexp.QuoteMeta(names[0]))
				continue
			}
			any := `[^/?]+`
			if names[0] == "" { // two slashes
				any = `[^/?]*`
			}
			out, open = append(out, any), true
		}
	}
	if !sure {
		return ""
	}
	e := strings.Join(out, "/")
	switch {
	case f.query != "":
		e += `\?(?:.*&)?` + regexp.QuoteMeta(f.query) + `=`
	case open && !strings.ContainsAny(e, `{`) && !strings.Contains(e, `20\d\d`): // only names: what is below is something else
		e += `/?$`
	}
	return e
}

// same returns a pattern of texts before or after a number: the text if it is always the
// same, else any with the end that all have in common next to the number.
func same(texts []string, before bool) string {
	common := texts[0]
	has := strings.HasPrefix
	if before {
		has = strings.HasSuffix
	}
	for _, t := range texts {
		for !has(t, common) {
			if before {
				common = common[1:]
			} else {
				common = common[:len(common)-1]
			}
		}
	}
	differ := slices.ContainsFunc(texts, func(t string) bool { return t != common })
	switch quoted := regexp.QuoteMeta(strings.ToValidUTF8(common, "")); {
	case before && differ:
		return `[^/?]*` + quoted
	case differ && common == "":
		return "" // the pattern has no end
	default:
		return quoted
	}
}
