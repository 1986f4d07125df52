package catalog

import (
	"context"
	"net/url"
	"regexp"
	"strings"
)

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
