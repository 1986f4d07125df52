package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// A request for a list page is made of the page's task: its number, and its address, whose
// fragment, which is not sent, tells pages with the same address apart (list.body):
// page=2, or cursor=abc.
const cursorMark = "cursor="

func (r *reader) firstPage() int {
	if r.site.List.FirstPage != nil {
		return *r.site.List.FirstPage
	}
	return 1
}

// bounded reports whether the number of products says how many pages the list has.
func (r *reader) bounded() bool { return r.total != nil && r.numbered && r.site.List.PageSize > 0 }

// saysEnd reports whether the site's pages say where the list ends.
func (r *reader) saysEnd() bool {
	return r.last != nil || r.bounded() || r.next != nil || r.cursor != nil || r.site.List.UntilEmpty
}

// pages returns the maximum number of list pages of a crawl.
func (r *reader) pages() int {
	switch {
	case r.site.List.Pages > 0:
		return r.site.List.Pages
	case r.saysEnd() || r.site.List.Format == formatSitemap:
		return maxListPages
	case !r.numbered:
		return 1
	}
	return defaultPages
}

// end returns the number of the last page that a crawl may read.
func (r *reader) end() int { return r.firstPage() + r.pages() - 1 }

// fill replaces the placeholders of a template.
func (r *reader) fill(template string, page int, cursor string) string {
	return strings.NewReplacer("{page}", strconv.Itoa(page), "{offset}", strconv.Itoa((page-r.firstPage())*r.site.List.PageSize), "{cursor}", cursor).Replace(template)
}

// listURL returns the address of a numbered page, or of the first page.
func (r *reader) listURL(page int) string {
	at := r.fill(r.site.List.URL, page, url.QueryEscape(r.site.List.FirstCursor))
	if page != r.firstPage() && at == r.fill(r.site.List.URL, r.firstPage(), url.QueryEscape(r.site.List.FirstCursor)) {
		at += fmt.Sprintf("#page=%d", page)
	}
	return at
}

// cursorURL returns the address of the page with a cursor.
func (r *reader) cursorURL(page int, cursor string) string {
	return r.fill(r.site.List.URL, page, url.QueryEscape(cursor)) + "#" + cursorMark + url.QueryEscape(cursor)
}

// cursorOf returns the cursor of a page's address.
func (r *reader) cursorOf(address string) string {
	_, mark, _ := strings.Cut(address, "#")
	if escaped, ok := strings.CutPrefix(mark, cursorMark); ok {
		if cursor, err := url.QueryUnescape(escaped); err == nil {
			return cursor
		}
	}
	return r.site.List.FirstCursor
}

// redirected returns the address at which a page was found, with the mark of its task.
func redirected(task, found string) string {
	found, _, _ = strings.Cut(found, "#")
	if _, mark, ok := strings.Cut(task, "#"); ok {
		return found + "#" + mark
	}
	return found
}

// listRequest returns the address and the body of the request for a list page; a request
// without body is nil.
func (r *reader) listRequest(address string, page int) (at string, body []byte) {
	at, _, _ = strings.Cut(address, "#")
	l := r.site.List
	if l.Body == "" {
		return at, nil
	}
	cursor := r.cursorOf(address)
	if l.BodyType == "form" {
		return at, []byte(r.fill(l.Body, page, url.QueryEscape(cursor)))
	}
	return at, []byte(r.fillJSON(l.Body, page, cursor))
}

// fillJSON replaces the placeholders of a text of JSON. Where {cursor} is in no text of it,
// the cursor is null as long as there is none, a text, or a number.
func (r *reader) fillJSON(template string, page int, cursor string) string {
	b, err := json.Marshal(cursor)
	if err != nil { // a string has no error
		b = []byte(`""`)
	}
	quoted, alone := string(b), string(b)
	switch {
	case cursor == "":
		alone = "null"
	case strings.ContainsRune("-0123456789", rune(cursor[0])) && json.Valid([]byte(cursor)):
		alone = cursor
	}
	var out strings.Builder
	inText := false
	for i, part := range strings.Split(template, "{cursor}") {
		switch {
		case i > 0 && inText:
			out.WriteString(quoted[1 : len(quoted)-1])
		case i > 0:
			out.WriteString(alone)
		}
		for at := 0; at < len(part); at++ {
			switch part[at] {
			case '\\':
				at++
			case '"':
				inText = !inText
			}
		}
		out.WriteString(r.fill(part, page, ""))
	}
	return out.String()
}

// contentType returns the media type of the list's body.
func (l list) contentType() string {
	if l.BodyType == "form" {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}

// listHash identifies what the file says about the list, and about what its pages leave in
// the journal: the products' addresses, and the fields of their rows.
func (r *reader) listHash() string {
	said := Site{List: r.site.List, Detail: r.site.Detail}
	if r.inRows {
		said = r.site
	}
	b, err := json.Marshal(said)
	if err != nil { // it has only texts, numbers and maps of them
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// seeds returns the list pages that are known before any page is read.
func (r *reader) seeds() []entry {
	last := r.firstPage()
	if !r.saysEnd() && r.numbered {
		last = r.end()
	}
	return r.numberedPages(r.firstPage(), last)
}

// numberedPages returns the list pages from first to last.
func (r *reader) numberedPages(first, last int) []entry {
	last = min(last, r.end())
	var out []entry
	for page := max(first, r.firstPage()); page <= last; page++ {
		out = append(out, entry{Kind: KindFetchListPage, URL: r.listURL(page), Page: page})
	}
	return out
}

// following returns the next list page, of which a list page has the link or the cursor.
func (r *reader) following(page int, p listPage) []entry {
	if page >= r.end() {
		return nil
	}
	switch {
	case p.next != "":
		return []entry{{Kind: KindFetchListPage, URL: p.next, Page: page + 1}}
	case p.cursor != "":
		return []entry{{Kind: KindFetchListPage, URL: r.cursorURL(page+1, p.cursor), Page: page + 1}}
	}
	return nil
}

// leavesMore reports whether there may be products that the crawl's list pages do not
// show: a page in the middle is empty, or says that the list has ended before it.
func (r *reader) leavesMore(page int, p listPage) bool {
	empty := len(p.products) == 0 && p.left == ""
	more := p.next != "" || p.cursor != ""
	switch {
	case r.site.List.Format == formatSitemap:
		return len(p.children) > 0 && page != r.firstPage()
	case r.site.List.UntilEmpty:
		return false
	case r.last != nil || r.bounded():
		return empty || p.last < page && (p.last > 0 || r.bounded())
	case r.next != nil || r.cursor != nil:
		return empty && (more || !p.none)
	}
	return false
}

// pastLimit reports whether the list continues, or may continue, after the last page that list.pages allows.
func (r *reader) pastLimit(page int, p listPage) bool {
	more, empty := p.next != "" || p.cursor != "", len(p.products) == 0 && p.left == ""
	switch {
	case r.site.List.Format == formatSitemap:
		return page == r.firstPage() && len(p.children) >= r.pages()
	case r.site.List.UntilEmpty:
		return !empty && page >= r.end() && (more || r.numbered)
	case r.last != nil || r.bounded():
		return p.last > r.end()
	case r.next != nil || r.cursor != nil:
		return more && page >= r.end()
	}
	return r.numbered && page == r.end() && !empty
}

var variable = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}`)

// variables returns the names of the environment variables in a header's value.
func variables(v string) (names []string) {
	for _, m := range variable.FindAllStringSubmatch(v, -1) {
		names = append(names, m[1])
	}
	return names
}

// header returns the headers of requests to the site, with the values of this process's
// environment.
func (r *reader) header() (http.Header, error) {
	h := http.Header{}
	for name, values := range r.headers {
		var missing string
		v := variable.ReplaceAllStringFunc(values[0], func(s string) string {
			value := os.Getenv(s[2 : len(s)-1])
			if value == "" {
				missing = s[2 : len(s)-1]
			}
			return value
		})
		if missing != "" {
			return nil, &failure{kind: "missing_environment", final: true, err: fmt.Errorf("headers.%s of its file needs the environment variable %s, which is not set where the crawl runs: set it and start the same command again", name, missing)}
		}
		h[name] = []string{v}
	}
	return h, nil
}

// sessionName matches the parameters in which shop systems and servers write the visit: each visit gets another one for
// the same page. Names that have other meanings too, such as sid and cid, are found by their values; see learnVisits.
var sessionName = regexp.MustCompile(`(?i)^;?(?:phpsessid|jsessionid|oscsid|zenid|xtcsid|mosid|cfid|cftoken|` +
	`aspsessionid[a-z]*|asp\.net_sessionid|(?:php|java)?_?sess(?:ion)?_?(?:id|key|token)|sessid)$`)

// sessionSegment is a segment in which ASP.NET writes the visit into the path: (S(token)).
var sessionSegment = regexp.MustCompile(`^\((?:[A-Z]\([A-Za-z0-9_-]+\))+\)$`)

// plain returns a product's address without the visit.
func (r *reader) plain(address string) string {
	visits := r.visits.Load()
	return withoutParameters(address, func(name, _ string) bool {
		return sessionName.MatchString(name) || visits != nil && (*visits)[name]
	})
}

// withoutParameters returns an address without the parameters that drop chooses. The name of a parameter of the path begins with ";".
func withoutParameters(address string, drop func(name, value string) bool) string {
	dropped := func(part, sign string) bool {
		name, value, _ := strings.Cut(part, "=")
		if text, err := url.QueryUnescape(name); err == nil {
			name = text
		}
		return drop(sign+name, value)
	}
	path, query, asks := strings.Cut(address, "?")
	var segments []string
	for segment := range strings.SplitSeq(path, "/") {
		if sessionSegment.MatchString(segment) {
			continue
		}
		parts := strings.Split(segment, ";")
		kept := parts[:1]
		for _, part := range parts[1:] {
			if !dropped(part, ";") {
				kept = append(kept, part)
			}
		}
		segments = append(segments, strings.Join(kept, ";"))
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		if !dropped(part, "") {
			kept = append(kept, part)
		}
	}
	if path = strings.Join(segments, "/"); !asks || len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// token reports whether a value looks like one that a program made up.
func token(value string) bool {
	digits := strings.ContainsAny(value, "0123456789")
	letters := strings.ContainsFunc(value, func(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' })
	return len(value) >= 16 || len(value) >= 6 && digits && letters || len(value) >= 8 && digits
}

// doubtful returns the parameters of products' links that look like a visit: their values are tokens, and without them the
// links still differ from each other.
func doubtful(links []string) (names map[string]bool) {
	values, plain := map[string]bool{}, map[string]map[string]bool{} // by name
	for _, at := range links {
		withoutParameters(at, func(name, value string) bool {
			if was, had := values[name]; value != "" {
				values[name] = (was || !had) && token(value)
			}
			return false
		})
	}
	for name, is := range values {
		if !is {
			continue
		}
		plain[name] = map[string]bool{}
		for _, at := range links {
			plain[name][withoutParameters(at, func(n, _ string) bool { return n == name })] = true
		}
		if len(plain[name]) == len(links) {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return names
}

// changed returns the names among doubtful whose values differ between two readings of the same links.
func changed(first, again []string, doubtful map[string]bool) map[string]bool {
	read := func(links []string, name string) map[string]string {
		values := map[string]string{}
		for _, at := range links {
			var own string
			plain := withoutParameters(at, func(n, value string) bool {
				if doubtful[n] && n == name {
					own = value
				}
				return doubtful[n]
			})
			values[plain] = own
		}
		return values
	}
	visits := map[string]bool{}
	for name := range doubtful {
		before, differ, same := read(first, name), 0, 0
		for at, value := range read(again, name) {
			was, had := before[at]
			switch {
			case had && was != value:
				differ++
			case had:
				same++
			}
		}
		if differ > 0 && same == 0 {
			visits[name] = true
		}
	}
	return visits
}

// readList reads a list page. Where its links have parameters that look like a visit, the first page that is read is
// requested once more: a parameter with another value then is dropped from all products' links.
func (v *visit) readList(ctx context.Context, t ParseListPageHtml) (listPage, error) {
	at := redirected(t.URL, t.at)
	known := v.reader.visits.Load() != nil
	p, err := v.reader.readList(at, t.HTMLContent)
	if err != nil || known || len(p.products) == 0 || v.reader.site.Detail.Format == formatNone {
		return p, err
	}
	v.learning.Lock()
	defer v.learning.Unlock()
	if v.reader.visits.Load() == nil {
		visits := map[string]bool{}
		if names := doubtful(p.products); names != nil {
			got, err := v.fetchList(ctx, t.entry)
			if err != nil {
				return p, err
			}
			again, err := v.reader.readList(redirected(t.URL, got.at), got.HTMLContent)
			if err != nil {
				return p, err
			}
			visits = changed(p.products, again.products, names)
		}
		if len(visits) > 0 {
			v.log.Info("session_parameters", "names", visits)
		}
		v.reader.visits.Store(&visits)
	}
	if len(*v.reader.visits.Load()) == 0 {
		return p, nil
	}
	return v.reader.readList(at, t.HTMLContent)
}
