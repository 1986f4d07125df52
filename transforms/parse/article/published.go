package article

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	publishedMeta = []string{"article:published_time", "og:article:published_time", "og:published_time", "article:published", "datepublished",
		"parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime", "dc.date.issued", "dcterms.created", "dc.date", "dcterms.date", "dcterms.issued",
		"citation_publication_date", "citation_online_date", "prism.publicationdate", "pubdate", "publishdate", "publish-date", "publish_date", "publication_date", "article.published", "date", "article:create", "article_date_original", "rnews:datepublished",
		"last-modified-date", "date_published", "datecreated"}
	modifiedMeta = []string{"article:modified_time", "og:updated_time", "datemodified", "lastmod", "dcterms.modified", "last-modified"}
)

// published is when the article came out: the publisher's selector,
// article:published_time, time elements, JSON-LD, other meta, visible text, the day in the
// page's own address. A modification's time comes after all of them.
func (p *Page) published(c *Compiled) time.Time {
	if c.published != nil {
		var latest time.Time
		for _, n := range cascadia.QueryAll(p.Root, c.published) {
			switch t, what := elementTime(n, c.zone); {
			case t.IsZero():
			case what != modification:
				return t
			case latest.IsZero():
				latest = t
			}
		}
		if !latest.IsZero() {
			return latest
		}
	}
	if t, ok := ParseTime(p.meta["article:published_time"], c.zone); ok {
		return t
	}
	if t := p.timeElement(c.zone); !t.IsZero() {
		return t
	}
	if t, ok := ParseTime(p.ld.Published, c.zone); ok {
		return t
	}
	for _, name := range publishedMeta {
		if t, ok := ParseTime(p.meta[name], c.zone); ok {
			return t
		}
	}
	var latest time.Time
	for _, n := range p.times {
		t, what := elementTime(n, c.zone)
		if what != modification && !t.IsZero() {
			return t
		}
		if latest.IsZero() {
			latest = t
		}
	}
	if p.body != nil {
		if t := visibleTime(p.body, c.zone); !t.IsZero() {
			return t
		}
	}
	if u, err := url.Parse(cmp.Or(p.links["canonical"], p.meta["og:url"])); err == nil {
		if t := DayIn(u, c.zone); !t.IsZero() {
			return t
		}
	}
	if !latest.IsZero() {
		return latest
	}
	for _, name := range modifiedMeta {
		if t, ok := ParseTime(p.meta[name], c.zone); ok {
			return t
		}
	}
	t, _ := ParseTime(p.ld.Modified, c.zone) // zero where there is none
	return t
}

// DayIn is the day in an address's path, such as /2024/05/03/ or -20240503-, at its midnight in
// zone; zero where there is none. It is the last resort: an address may have been reused.
func DayIn(u *url.URL, zone *time.Location) time.Time {
	for _, m := range pathDay.FindAllStringSubmatch(u.Path, -1) {
		year, month, day := cmp.Or(m[1], m[4]), cmp.Or(m[2], m[5]), cmp.Or(m[3], m[6])
		if t, ok := date(year, month, day, "", "", "", "", "", zone); ok {
			return t
		}
	}
	return time.Time{}
}

// pathDay is a day with marks between its numbers, or eight digits that are no part of a number.
var pathDay = regexp.MustCompile(`(?:^|[^0-9])(?:((?:19|20)[0-9]{2})[/_-]([01]?[0-9])[/_-]([0-3]?[0-9])|((?:19|20)[0-9]{2})([01][0-9])([0-3][0-9]))(?:[^0-9]|$)`)

func (p *Page) modified(c *Compiled) time.Time {
	for _, s := range []string{p.meta["article:modified_time"], p.ld.Modified, p.meta["og:updated_time"]} {
		if t, ok := ParseTime(s, c.zone); ok {
			return t
		}
	}
	return time.Time{}
}

// timeElement is the time element that is marked as the
// publication's; where JSON-LD has another day than the page's first time
// element, the element may be another article's.
func (p *Page) timeElement(zone *time.Location) time.Time {
	for _, n := range p.times {
		if strings.Contains(attr(n, "itemprop"), "datePublished") || n.DataAtom == atom.Time && hasAttr(n, "pubdate") {
			if t, _ := elementTime(n, zone); !t.IsZero() {
				return t
			}
		}
	}
	if _, ok := ParseTime(p.ld.Published, zone); ok {
		return time.Time{} // JSON-LD says which time it has; an unmarked element does not
	}
	for _, n := range p.times {
		if inside(n, atom.Article, atom.Main, atom.Header) {
			if t, what := elementTime(n, zone); what != modification && !t.IsZero() {
				return t
			}
		}
	}
	return time.Time{}
}

// elementTime is an element's time, and the event that it is marked with.
func elementTime(n *html.Node, zone *time.Location) (time.Time, event) {
	t, what := stated(line(n), zone)
	for _, s := range []string{attr(n, "datetime"), attr(n, "content")} {
		if exact, ok := ParseTime(s, zone); ok {
			t = exact
			break
		}
	}
	if what == unsaid {
		what = said(textBefore(n))
	}
	if names := strings.ToLower(attr(n, "class") + " " + attr(n, "itemprop")); strings.Contains(names, "updat") || strings.Contains(names, "modif") {
		what = modification
	}
	return t, what
}

func hasAttr(n *html.Node, key string) bool {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return true
		}
	}
	return false
}

func inside(n *html.Node, atoms ...atom.Atom) bool {
	for a := n.Parent; a != nil; a = a.Parent {
		for _, want := range atoms {
			if a.DataAtom == want {
				return true
			}
		}
	}
	return false
}

// visibleTime is the first date in a short text of the page, which is where
// articles have theirs: 입력 2024.05.03 14:24, 3 May 2024, May 3, 2024. Where
// that is the time of a change, one near it that is not counts.
func visibleTime(n *html.Node, zone *time.Location) time.Time {
	const near = 12 // texts
	var latest time.Time
	before, since := "", 0
	var look func(*html.Node) (time.Time, bool)
	look = func(n *html.Node) (time.Time, bool) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.TextNode {
				if t, end := look(c); end {
					return t, true
				}
				continue
			}
			s := strings.TrimSpace(c.Data)
			if s == "" {
				continue
			}
			if !latest.IsZero() {
				if since++; since > near {
					return latest, true
				}
			}
			label := before
			before = s
			if len(s) < 8 || len(s) >= 120 || strings.Contains(s, "©") || strings.Contains(s, "ⓒ") {
				continue
			}
			t, what := stated(s, zone)
			if t.IsZero() {
				continue
			}
			before = "" // the label was this date's
			if what == unsaid {
				what = said(label)
			}
			if what != modification {
				return t, true
			}
			if latest.IsZero() {
				latest = t
			}
		}
		return time.Time{}, false
	}
	if t, found := look(n); found {
		return t
	}
	return latest
}

// event is what a time is the time of.
type event int

const (
	unsaid event = iota
	publication
	modification
)

var (
	labels        = regexp.MustCompile(`(?i)수정|업데이트|갱신|更新|修正|\bupdated\b|\bmodified\b|\blast update\b|aktualisiert|geändert|mis à jour|actualizado|aggiornato|atualizado|입력|등록|게재|작성|발행|송고|승인|기사전송|公開|配信|\bpublished\b|\bposted\b|veröffentlicht|\bpublié|publicado|pubblicato`)
	modifications = regexp.MustCompile(`(?i)^(?:수정|업데이트|갱신|更新|修正|updated|modified|last update|aktualisiert|geändert|mis à jour|actualizado|aggiornato|atualizado)$`)
)

func eventOf(label string) event {
	if modifications.MatchString(label) {
		return modification
	}
	return publication
}

// said is the event that a short text names for the date after it.
func said(s string) event {
	if len(s) > 60 {
		return unsaid
	}
	all := labels.FindAllString(s, -1)
	if len(all) == 0 {
		return unsaid
	}
	return eventOf(all[len(all)-1])
}

// textBefore is the text before an element, within its parent elements.
func textBefore(n *html.Node) string {
	for range 3 {
		for b := n.PrevSibling; b != nil; b = b.PrevSibling {
			switch b.Type {
			case html.TextNode:
				if s := strings.TrimSpace(b.Data); s != "" {
					return s
				}
			case html.ElementNode:
				return line(b)
			}
		}
		if n = n.Parent; n == nil {
			break
		}
	}
	return ""
}

// stated reads a text that may have several times, each with a label before or
// after it: the publication's, else one without a label, else the modification's.
func stated(s string, zone *time.Location) (time.Time, event) {
	t, ok := ParseTime(s, zone)
	if !ok {
		return time.Time{}, unsaid
	}
	at := labels.FindAllStringIndex(s, -1)
	if len(at) == 0 {
		return t, unsaid
	}
	type part struct {
		at   time.Time
		what event
	}
	var parts []part
	first, ahead := ParseTime(s[:at[0][0]], zone)
	last, _ := ParseTime(s[at[len(at)-1][1]:], zone)
	after := ahead && last.IsZero() // the labels come after their times
	if ahead && !after {
		parts = append(parts, part{first, unsaid})
	}
	for i, l := range at {
		from, to := l[1], len(s)
		if i+1 < len(at) {
			to = at[i+1][0]
		}
		if after {
			from, to = 0, l[0]
			if i > 0 {
				from = at[i-1][1]
			}
		}
		if t, ok := ParseTime(s[from:to], zone); ok {
			parts = append(parts, part{t, eventOf(s[l[0]:l[1]])})
		}
	}
	for _, want := range []event{publication, unsaid, modification} {
		for _, p := range parts {
			if p.what == want {
				return p.at, want
			}
		}
	}
	return t, unsaid
}

// The time of a day after a date, with numbers for hour, minute, second and the
// minute of the spoken form: 13:05:00, 1시 5분, 1시.
const (
	spoken = `\s?[시時](?:\s?(\d{1,2})\s?[분分]|[^가-힣\d]|$)`
	clock  = `(?:[^\d\n]{0,12}?(\d{1,2})(?::(\d{2})(?::(\d{2}))?|` + spoken + `))?`
)

var (
	isoDate    = regexp.MustCompile(`\b((?:19|20)\d{2})-(\d{1,2})-(\d{1,2})(?:[^\d\n]{1,12}?(\d{1,2})(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?|` + spoken + `)\s*(Z|UTC|GMT|KST|[+-]\d{2}:?\d{2})?)?`)
	dotDate    = regexp.MustCompile(`\b((?:19|20)\d{2})[./]\s?(\d{1,2})[./]\s?(\d{1,2})\.?` + clock)
	cjkDate    = regexp.MustCompile(`((?:19|20)\d{2})\s?[년年]\s?(\d{1,2})\s?[월月]\s?(\d{1,2})\s?[일日]` + clock)
	shortYear  = regexp.MustCompile(`(?:^|[^\w./-])(\d{2})[./-]\s?(\d{1,2})[./-]\s?(\d{1,2})\.?[^\d\n]{1,12}?(\d{1,2}):(\d{2})(?::(\d{2}))?`)
	dayFirst   = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:de\s+)?([\p{L}]{3,})\.?,?\s+(?:de\s+)?((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.h](\d{2}))?`)
	monthFirst = regexp.MustCompile(`(?i)\b([\p{L}]{3,})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2}):(\d{2})\s*([ap]\.?m)?)?`)
	euroDate   = regexp.MustCompile(`\b(\d{1,2})[./](\d{1,2})[./]((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.](\d{2}))?`)
	compact    = regexp.MustCompile(`^((?:19|20)\d{2})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})?)?(Z|[+-]\d{4})?$`)
	unixTime   = regexp.MustCompile(`^1\d{9}(\d{3})?$`)
)

// ParseTime reads a time in one of the forms that news pages use. A year of two
// digits counts only at the beginning, as in East Asia, and with a time of
// day. A time without an offset is in zone. ok is false for anything else.
func ParseTime(s string, zone *time.Location) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 {
		return time.Time{}, false
	}
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	if !strings.ContainsAny(s, "12") { // a year has one of them
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, time.RFC1123Z, time.RFC1123, time.RFC850, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 02 2006 15:04:05 GMT-0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			if zone, offset := t.Zone(); offset == 0 && zone == "KST" { // a name alone has no offset
				t = t.Add(-9 * time.Hour)
			}
			return t, plausible(t)
		}
	}
	if unixTime.MatchString(s) {
		n, err := strconv.ParseInt(s[:10], 10, 64)
		t = time.Unix(n, 0).UTC()
		return t, err == nil && plausible(t)
	}
	if m := compact.FindStringSubmatch(s); m != nil {
		return date(m[1], m[2], m[3], m[4], m[5], m[6], m[7], "", zone)
	}
	if m, near := find(isoDate, s); m != nil {
		return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], m[8], half(near), zone)
	}
	for _, form := range []*regexp.Regexp{cjkDate, dotDate} {
		if m, near := find(form, s); m != nil {
			return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], "", half(near), zone)
		}
	}
	if m, near := find(dayFirst, s); m != nil && month(m[2]) != "" {
		return date(m[3], month(m[2]), m[1], m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(monthFirst, s); m != nil && month(m[1]) != "" {
		return date(m[3], month(m[1]), m[2], m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(euroDate, s); m != nil {
		day, mon := m[1], m[2]
		if n, _ := strconv.Atoi(mon); n > 12 { // month first
			day, mon = mon, day
		}
		return date(m[3], mon, day, m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(shortYear, s); m != nil && yearFirst(s, zone) {
		return date("20"+m[1], m[2], m[3], m[4], m[5], m[6], "", half(near), zone)
	}
	return time.Time{}, false
}

// find returns the first match of a form, and the match with a following word for the
// half of the day.
func find(form *regexp.Regexp, s string) (m []string, near string) {
	at := form.FindStringSubmatchIndex(s)
	if at == nil {
		return nil, ""
	}
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 {
			m = append(m, "")
			continue
		}
		m = append(m, s[at[i]:at[i+1]])
	}
	return m, s[at[0]:min(at[1]+len(" 오후"), len(s))]
}

// yearFirst reports whether a date of three short numbers begins with the year,
// as in East Asia.
func yearFirst(s string, zone *time.Location) bool {
	switch zone.String() {
	case "KST", "JST", "Asia/Seoul", "Asia/Pyongyang", "Asia/Tokyo", "Asia/Shanghai", "Asia/Taipei", "Asia/Hong_Kong":
		return true
	}
	return strings.ContainsFunc(s, hangul)
}

// half is "pm" or "am" where a text says which half of the day it means.
func half(s string) string {
	low := strings.ToLower(s)
	switch {
	case strings.Contains(s, "오후"), strings.Contains(s, "낮"), strings.Contains(s, "저녁"), strings.Contains(s, "밤"), strings.Contains(s, "午後"), strings.Contains(low, " pm"), strings.Contains(low, " p.m"), afternoon.MatchString(low):
		return "pm"
	case strings.Contains(s, "오전"), strings.Contains(s, "새벽"), strings.Contains(s, "아침"), strings.Contains(s, "午前"), strings.Contains(low, " am"), strings.Contains(low, " a.m"):
		return "am"
	}
	return ""
}

var afternoon = regexp.MustCompile(`\dpm\b`)

func date(year, month, day, hour, minute, second, offset, half string, zone *time.Location) (time.Time, bool) {
	var n [6]int
	for i, s := range []string{year, month, day, hour, minute, second} {
		if s == "" {
			continue
		}
		v, err := strconv.Atoi(s)
		if err != nil {
			return time.Time{}, false
		}
		n[i] = v
	}
	if half == "pm" && n[3] < 12 && hour != "" {
		n[3] += 12
	}
	if half == "am" && n[3] == 12 {
		n[3] = 0
	}
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 || n[4] > 59 || n[5] > 60 {
		return time.Time{}, false
	}
	switch offset {
	case "":
	case "Z", "UTC", "GMT":
		zone = time.UTC
	case "KST":
		zone = time.FixedZone("KST", 9*3600)
	default:
		if o, err := time.Parse("-0700", strings.Replace(offset, ":", "", 1)); err == nil {
			zone = o.Location()
		}
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, zone)
	return t, t.Day() == n[2] && plausible(t)
}

// plausible rejects the zero times of content systems and typing errors.
func plausible(t time.Time) bool { return t.Year() >= 1980 && t.Year() < 2100 }

// months are the names of months by their first letters, in the languages that
// the cases of news pages have most.
var months = map[string]string{
	"jan": "1", "feb": "2", "mar": "3", "apr": "4", "may": "5", "jun": "6", "jul": "7", "aug": "8", "sep": "9", "oct": "10", "nov": "11", "dec": "12",
	"mär": "3", "mai": "5", "okt": "10", "dez": "12", "ene": "1", "abr": "4", "ago": "8", "dic": "12", "fév": "2", "avr": "4", "jui": "", "aoû": "8", "déc": "12",
	"gen": "1", "mag": "5", "giu": "6", "lug": "7", "set": "9", "ott": "10", "fev": "2", "out": "10", "maj": "5", "des": "12", "mei": "5", "agu": "8",
	"jän": "1", "juin": "6", "juil": "7", "янв": "1", "фев": "2", "мар": "3", "апр": "4", "мая": "5", "июн": "6", "июл": "7", "авг": "8", "сен": "9", "окт": "10", "ноя": "11", "дек": "12",
}

func month(name string) string {
	r := []rune(strings.ToLower(name))
	if len(r) >= 4 {
		if m := months[string(r[:4])]; m != "" {
			return m
		}
	}
	if len(r) < 3 {
		return ""
	}
	return months[string(r[:3])]
}
