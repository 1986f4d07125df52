package article

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// publishedMeta are the meta elements that name the time of publication, or the page's.
var publishedMeta = []string{"og:article:published_time", "og:published_time", "article:published",
	"parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime", "dc.date.issued", "dcterms.created", "dc.date", "dcterms.date", "dcterms.issued",
	"citation_publication_date", "citation_online_date", "prism.publicationdate", "pubdate", "publishdate", "publish-date", "publish_date", "publication_date", "article.published", "date", "article:create", "article_date_original", "rnews:datepublished",
	"date_published", "datecreated", "dc.date.created", "created", "published_time", "publish_time", "published_date", "pub_date",
	"og:article:published", "og:datepublished", "og:publish_date", "og:pubdate", "og:regdate", "article:post_date", "article:publicationdate", "article.created", "originalpublicationdate", "publisheddate", "published-date", "publication-date",
	"citation_date", "dc.created", "dc:date", "dc:created", "dc.date.publication", "dateposted", "date_created", "displaydate", "content_create_date", "release_date", "gentime", "ptime", "bt:pubdate", "vr:published_time",
	"shareaholic:article_published_time", "mediator_published_time", "twt-published-at", "dcsext.articlefirstpublished", "analyticsattributes.articledate"}

// published is when the article came out: the publisher's selector, what the page tells machines
// (article:published_time, time elements, JSON-LD, other meta), what it shows its readers next to
// the headline or elsewhere, the day in the page's own address. A modification's time comes after all of them.
func (p *Page) published(c *Compiled, zone calendar, title string) time.Time {
	if c.published != nil {
		if first, latest := firstTime(cascadia.QueryAll(p.Root, c.published), zone, nil); !first.IsZero() {
			return first
		} else if !latest.IsZero() {
			return latest
		}
	}
	told, marked := p.told(zone)
	if marked && agree(told) {
		return told[0]
	}
	var first, latest time.Time
	if !marked {
		if first, latest = firstTime(p.times, zone, another); !first.IsZero() {
			told = append(told, first)
		}
	}
	if t := p.decide(told, marked, p.shownTime(title, zone), zone); !t.IsZero() {
		return t
	}
	if p.body != nil {
		if t := p.visibleTime(p.body, fold(title), zone); !t.IsZero() {
			return t
		}
	}
	for _, script := range p.gone.scripts {
		for _, m := range publishedField.FindAllSubmatch(script, 3) {
			if t, ok := zone.parse(string(m[1])); ok {
				return t
			}
		}
	}
	if !zone.day.IsZero() {
		return zone.day
	}
	if !latest.IsZero() {
		return latest
	}
	if t := p.modified(zone); !t.IsZero() {
		return t
	}
	for _, name := range []string{"datemodified", "lastmod", "dcterms.modified", "last-modified"} {
		if t, ok := zone.parse(p.meta[name]); ok {
			return t
		}
	}
	return time.Time{}
}

// told is when the article came out by what the page tells machines, the surest first. marked is set where the
// first is marked as the publication's; a meta element's time may be the page's own.
func (p *Page) told(zone calendar) (all []time.Time, marked bool) {
	add := func(s string) {
		if t, ok := zone.parse(s); ok {
			all = append(all, t)
		}
	}
	if t, ok := zone.parse(p.meta["article:published_time"]); ok {
		all = append(all, p.local(t, zone))
	}
	for _, n := range p.times {
		if (strings.Contains(dom.Attr(n, "itemprop"), "datePublished") || n.DataAtom == atom.Time && dom.HasAttr(n, "pubdate")) && !another(n) {
			if t, _ := elementTime(n, zone); !t.IsZero() {
				all = append(all, t)
				break
			}
		}
	}
	add(p.ld.Published)
	add(p.meta["datepublished"])
	if marked = len(all) > 0; !marked {
		outside := func(n *html.Node) bool { return !dom.Inside(n, atom.Article, atom.Main, atom.Header) || another(n) }
		if t, _ := firstTime(p.times, zone, outside); !t.IsZero() {
			all = append(all, t)
		}
	}
	for _, name := range publishedMeta {
		add(p.meta[name])
	}
	return all, marked
}

// agree reports whether times are of one day for readers too: none is of another day, and the first is not in UTC.
func agree(told []time.Time) bool {
	_, offset := told[0].Zone()
	return offset != 0 && !slices.ContainsFunc(told, func(t time.Time) bool { return !sameDay(t, told[0]) })
}

// decide is the time that counts: of those that the page tells machines, the one on the day that it shows its
// readers. Where none is, a time in UTC is moved to the day of its readers, which its address has too, and
// what they see is surer than a time that is not marked.
func (p *Page) decide(told []time.Time, marked bool, seen time.Time, zone calendar) time.Time {
	if len(told) == 0 {
		return seen
	}
	if i := slices.IndexFunc(told, func(t time.Time) bool { return sameDay(t, seen) }); i >= 0 {
		return told[i]
	}
	first, day := told[0], seen
	if !seen.IsZero() && first.After(seen.AddDate(1, 0, 0)) { // a mistake: readers see an article before it comes out
		return seen
	}
	if _, offset := first.Zone(); offset == 0 {
		if day.IsZero() && !first.Truncate(24*time.Hour).Equal(first) {
			day = zone.day
		}
		if t := onDay(first, day); !t.IsZero() {
			return t
		}
	}
	if !marked && !seen.IsZero() {
		return seen
	}
	return first
}

func sameDay(a, b time.Time) bool {
	ay, am, ad := a.Date()
	by, bm, bd := b.Date()
	return ay == by && am == bm && ad == bd
}

// onDay is a time in UTC with the offset that puts it on the day that readers see, zero where no zone
// on earth has that day then.
func onDay(t, shown time.Time) time.Time {
	const east, west = 14, -11 // hours
	for hours := range east + 1 {
		for _, offset := range []int{hours, -hours} {
			if local := t.In(time.FixedZone("", offset*3600)); offset >= west && sameDay(local, shown) {
				return local
			}
		}
	}
	return time.Time{}
}

// local is t with the offset that the page shows it in elsewhere: a time in UTC does not tell
// the day on which an article came out where its readers are. JSON-LD or a time element may have
// the same time with an offset, or without one in local time: then the two differ by whole
// quarters of an hour.
func (p *Page) local(t time.Time, zone calendar) time.Time {
	const most = 14 * time.Hour // of an offset
	if _, offset := t.Zone(); offset != 0 {
		return t
	}
	texts := []string{p.ld.Published}
	for _, it := range p.Data.Items[:min(len(p.Data.Items), 20)] {
		texts = append(texts, it.Text("datePublished"))
	}
	for _, n := range p.times[:min(len(p.times), 20)] {
		texts = append(texts, dom.Attr(n, "datetime"))
	}
	for _, text := range texts {
		stated, ok := zone.parse(text)
		if !ok {
			continue
		}
		if _, offset := stated.Zone(); offset != 0 && stated.Equal(t) {
			return stated
		}
		if apart := stated.Sub(t); apart != 0 && apart%(15*time.Minute) == 0 && apart.Abs() <= most &&
			stated.Location() == zone.Location && t.Second() != 0 && !strings.HasSuffix(text, "Z") {
			return t.In(time.FixedZone("", int(apart/time.Second)))
		}
	}
	return t
}

// address is the page's own, without that of an archive before it.
func (p *Page) address() (*url.URL, error) {
	s := cmp.Or(p.links["canonical"], p.meta["og:url"])
	if i := max(strings.LastIndex(s, "/http://"), strings.LastIndex(s, "/https://")); i > 0 {
		s = s[i+1:]
	}
	return url.Parse(s)
}

// DayIn is the day in an address's path, such as /2024/05/03/ or -20240503-, at its midnight in
// zone; zero where there is none. It is the last resort: an address may have been reused.
func DayIn(u *url.URL, zone *time.Location) time.Time {
	for _, m := range pathDay.FindAllStringSubmatch(u.Path, -1) {
		year, month, day := cmp.Or(m[1], m[6]), cmp.Or(m[2], m[7]), cmp.Or(m[3], m[4], m[5], m[8])
		if t, ok := date(year, month, day, "", "", "", "", "", zone); ok {
			return t
		}
	}
	return time.Time{}
}

// publishedField is a member of a script's data that has the time of publication.
var publishedField = regexp.MustCompile(`(?i)["'](?:[a-z_]*publish(?:ed|ing|)?(?:_?date|_?time|_?at|_?on)+|publication_?(?:date|time)|date_?published)\\?["']\s*:\s*\\?["']([^"'\\]{8,40})\\?["']`)

// pathDay is a day with marks between its numbers, or eight digits that are no part of a number. /2024/5/3-things is no day.
var pathDay = regexp.MustCompile(`(?:^|[^0-9])(?:((?:19|20)[0-9]{2})[/_-]([01]?[0-9])(?:[/_-]([0-3][0-9])|[_-]([1-9])|/([1-9])(?:/|$))|((?:19|20)[0-9]{2})([01][0-9])([0-3][0-9]))(?:[^0-9]|$)`)

func (p *Page) modified(zone calendar) time.Time {
	for _, s := range []string{p.meta["article:modified_time"], p.ld.Modified, p.meta["og:updated_time"]} {
		if t, ok := zone.parse(s); ok {
			return t
		}
	}
	return time.Time{}
}

// firstTime is the first time of elements that may be a publication's; latest is the first that is a change's.
func firstTime(elements []*html.Node, zone calendar, skip func(*html.Node) bool) (first, latest time.Time) {
	for _, n := range elements {
		if skip != nil && skip(n) {
			continue
		}
		switch t, what := elementTime(n, zone); {
		case t.IsZero():
		case what != modification:
			return t, latest
		case latest.IsZero():
			latest = t
		}
	}
	return time.Time{}, latest
}

// elementTime is an element's time, and the event that it is marked with. Its attribute is for machines
// and more exact than its text, but may be of another day: of the last change, or in UTC.
func elementTime(n *html.Node, zone calendar) (time.Time, event) {
	t, what := stated(line(n), zone)
	for _, s := range []string{dom.Attr(n, "datetime"), dom.Attr(n, "content"), dom.Attr(n, "title")} {
		if exact, ok := zone.parse(s); ok {
			t = elementDay(exact, t, what)
			break
		}
	}
	if what == unsaid {
		what = said(textBefore(n))
	}
	if changed(n) {
		what = modification
	}
	return t, what
}

// changed reports whether an element's names are those of a change's time only. Where an article was not changed they are often both.
func changed(n *html.Node) bool {
	names := strings.ToLower(dom.Attr(n, "class") + " " + dom.Attr(n, "itemprop"))
	return (strings.Contains(names, "updat") || strings.Contains(names, "modif")) && !strings.Contains(names, "publish") && !strings.Contains(names, "entry-date")
}

// elementDay is an element's exact time, unless its text says that another day is that of publication.
func elementDay(exact, text time.Time, what event) time.Time {
	if agrees(exact, text) {
		return exact
	}
	if _, offset := exact.Zone(); offset == 0 {
		if t := onDay(exact, text); !t.IsZero() {
			return t
		}
	}
	if what == publication {
		return text
	}
	return exact
}

// agrees reports whether an element's text has no other day than its exact time. A text may have the month first.
func agrees(exact, text time.Time) bool {
	swapped := text.Year() == exact.Year() && text.Day() == int(exact.Month()) && int(text.Month()) == exact.Day()
	return text.IsZero() || sameDay(exact, text) || swapped
}

// another reports whether an element is in a quotation, such as a post of a social network, or in a
// reader's comment: its time is not the article's.
func another(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n.DataAtom == atom.Blockquote || n.DataAtom == atom.Figcaption {
			return true
		}
		for _, key := range []string{"class", "id", "itemtype"} {
			for word := range strings.FieldsFuncSeq(strings.ToLower(dom.Attr(n, key)), func(c rune) bool { return c < 'a' || c > 'z' }) {
				if (word == "comment" || word == "comments") && n.DataAtom != atom.Body {
					return true
				}
			}
		}
	}
	return false
}

// visibleTime is the first date in a short text of the page, which is where
// articles have theirs: 입력 2024.05.03 14:24, 3 May 2024, May 3, 2024. Where
// that is the time of a change, one near it that is not counts. A reader's or a picture's is better than none.
func (p *Page) visibleTime(n *html.Node, headline string, zone calendar) time.Time {
	s := sight{p: p, headline: headline, zone: zone}
	if t, _ := s.look(n); !t.IsZero() {
		return t
	}
	if s.latest.IsZero() {
		return s.others
	}
	return s.latest
}

// sight is what visibleTime has seen.
type sight struct {
	p              *Page
	headline       string
	zone           calendar
	latest, others time.Time // the first time of a change, and of something else
	before         string    // the last text
	since, dates   int       // texts since latest; dates
}

// take takes a date. It returns the time to use, if the search ends.
func (s *sight) take(n *html.Node, t time.Time, what event) (time.Time, bool) {
	const most = 100 // dates
	if s.dates++; s.dates > most {
		return s.latest, true
	}
	switch {
	case another(n), what == unsaid && tells(n):
		if s.others.IsZero() {
			s.others = t
		}
	case what != modification:
		return t, true
	case s.latest.IsZero():
		s.latest = t
	}
	return time.Time{}, false
}

func (s *sight) look(n *html.Node) (time.Time, bool) {
	const near = 12 // texts
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.TextNode {
			if t := pointedAt(c, s.zone); !t.IsZero() {
				what := unsaid
				if changed(c) {
					what = modification
				}
				if t, end := s.take(c, t, what); end {
					return t, true
				}
			}
			if t, end := s.look(c); end {
				return t, true
			}
			continue
		}
		text := strings.TrimSpace(c.Data)
		if text == "" {
			continue
		}
		if !s.latest.IsZero() {
			if s.since++; s.since > near {
				return s.latest, true
			}
		}
		label := s.before
		s.before = text
		t, what := s.p.shownIn(c, text, s.zone)
		if t.IsZero() || names(s.headline, text) {
			continue
		}
		s.before = "" // the label was this date's
		if what == unsaid {
			what = said(label)
		}
		if t, end := s.take(c, t, what); end {
			return t, true
		}
	}
	return time.Time{}, false
}

// tells reports whether a text with a day is a sentence, which tells of another event than the article's publication.
func tells(n *html.Node) bool {
	const words = 7
	s := collapse(n.Data)
	return n.Type == html.TextNode && sentence(s) && !strings.HasSuffix(s, "m.") && len(strings.Fields(s)) >= words &&
		(n.Parent == nil || n.Parent.DataAtom != atom.Time)
}

// pointedAt is the exact time that readers see when they point at an element, as in a time's short form.
func pointedAt(n *html.Node, zone calendar) time.Time {
	if s := dom.Attr(n, "title"); len(s) >= len("2006-01-02T15:04Z") && s[4] == '-' && s[10] == 'T' {
		t, _ := zone.parse(s) // zero where it is none
		return t
	}
	return time.Time{}
}

// event is what a time is the time of.
type event int

const (
	unsaid event = iota
	publication
	modification
)

// Words before or after a time that say what it is the time of.
const (
	changeWords = `\breceived\b|\baccepted\b|\brevised\b|수정|업데이트|갱신|更新|修正|\bupdated\b|\bmodified\b|\blast update\b|\blast edited\b|aktualisiert|\bakt\.|geändert|überarbeitet|mis à jour|mise à jour|modifié|actualizado|actualización|modificado|aggiornato|aggiornamento|modificat|atualizado|atualização|actualitzat|actualizat|` +
		`bijgewerkt|gewijzigd|uppdaterad|ändrad|opdateret|oppdatert|päivitetty|muokattu|uuendatud|atjaunin|atnaujint|zaktualizowan|aktualizacja|aktualizován|aktualizovan|posodobljeno|ažurirano|ажурирано|обновлен|изменен|оновлен|обновен|frissítve|frissült|módosít|ενημέρωση|ενημερώθηκε|güncelle|` +
		`עודכן|تحديث|अपडेट|अद्यतन|cập nhật|diperbarui|แก้ไข|อัปเดต`
	releaseWords = `입력|등록|게재|작성|발행|송고|승인|기사전송|公開|配信|掲載|投稿日|发布|發布|發佈|\bpublished\b|\bposted\b|\bcreated\b|veröffentlicht|erstellt|erschienen|publié|publicado|publicación|pubblicat|publicação|publicat|` +
		`gepubliceerd|geplaatst|publicerad|publiceret|publisert|julkaistu|avaldatud|publicēt|paskelbta|opublikowan|publikacji|publikován|vydáno|publikovan|objavljeno|објављено|опубликован|опубліковано|публикуван|közzétéve|megjelent|δημοσίευση|δημοσιεύθηκε|δημοσιεύτηκε|yayın|` +
		`פורסם|نشر|प्रकाशित|đăng lúc|ngày đăng|diterbitkan|dipublikasikan|เผยแพร่`
)

// label is a word that says what a time is the time of.
type label struct {
	word string // without marks of expressions
	re   *regexp.Regexp
	what event
}

// labels have an expression each: one for all is too large for package regexp to be quick.
var labels = func() (all []label) {
	for _, of := range []struct {
		words string
		what  event
	}{{changeWords, modification}, {releaseWords, publication}} {
		for w := range strings.SplitSeq(of.words, "|") {
			all = append(all, label{strings.NewReplacer(`\b`, "", `\`, "").Replace(w), regexp.MustCompile(`(?i)` + w), of.what})
		}
	}
	return all
}()

// said is the event that a short text names for the date after it.
func said(s string) event {
	if len(s) > 60 {
		return unsaid
	}
	all := labelsIn(s)
	if len(all) == 0 {
		return unsaid
	}
	return all[len(all)-1].what
}

// labelAt is where a label is in a text.
type labelAt struct {
	from, to int
	what     event
}

// labelsIn are the labels of times in a text, in their order.
func labelsIn(s string) (all []labelAt) {
	low := strings.ToLower(s) // most texts have none, which is quicker to see without the expressions
	for i := range labels {
		if l := &labels[i]; strings.Contains(low, l.word) {
			for _, at := range l.re.FindAllStringIndex(s, -1) {
				all = append(all, labelAt{at[0], at[1], l.what})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b labelAt) int { return cmp.Compare(a.from, b.from) })
	end := 0
	return slices.DeleteFunc(all, func(l labelAt) bool { // a word in another
		if l.from < end {
			return true
		}
		end = l.to
		return false
	})
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
func stated(s string, zone calendar) (time.Time, event) {
	t, ok := zone.parse(s)
	if !ok {
		return time.Time{}, unsaid
	}
	at := labelsIn(s)
	if len(at) == 0 {
		return t, unsaid
	}
	type part struct {
		at   time.Time
		what event
	}
	var parts []part
	first, ahead := zone.parse(s[:at[0].from])
	last, _ := zone.parse(s[at[len(at)-1].to:])
	after := ahead && last.IsZero() && fold(s[at[len(at)-1].to:]) == "" // the labels come after their times
	if ahead && !after {
		parts = append(parts, part{first, unsaid})
	}
	for i, l := range at {
		from, to := l.to, len(s)
		if i+1 < len(at) {
			to = at[i+1].from
		}
		if after {
			from, to = 0, l.from
			if i > 0 {
				from = at[i-1].to
			}
		}
		if t, ok := zone.parse(s[from:to]); ok {
			parts = append(parts, part{t, l.what})
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
