package article

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// authorMeta are the meta elements that name the author, the surest first.
var authorMeta = []string{"author", "article:author", "article:author_name", "dable:author", "byl", "parsely-author", "sailthru.author",
	"citation_author", "dc.creator", "dcterms.creator", "dc:creator", "cxenseparse:author", "og:article:author"}

// libraries are those in which a name is written as Last, First.
var libraries = []string{"citation_author", "dc.creator", "dcterms.creator", "dc:creator"}

// authors are the people who wrote the article, in the page's order. Three sources name them: JSON-LD, the byline near the
// headline, and meta elements. Two sources that agree outvote the third. A byline with more names than JSON-LD counts.
// Accounts are no authors. A publisher that is named as the author counts if nobody else is named.
func (p *Page) authors(title, site string) []string {
	b := bylines{sites: slices.Clone(p.sites(site))}
	if u, err := p.address(); err == nil {
		labels := strings.Split(strings.ToLower(u.Hostname()), ".")
		b.sites = append(b.sites, fold(labels[max(0, len(labels)-2)]))
	}
	if p.ld.Item != nil {
		for _, it := range p.ld.Item.Items("publisher") {
			b.sites = append(b.sites, fold(it.Text("name")))
		}
	}
	b.sites = slices.DeleteFunc(b.sites, func(s string) bool { return s == "" })
	var told, meta []string
	for _, s := range p.ld.Authors {
		told = union(told, b.people(s, true))
	}
	for _, name := range authorMeta {
		for _, s := range p.Data.Meta[name] {
			last, first, ok := strings.Cut(s, ",")
			if ok && slices.Contains(libraries, name) && len(strings.Fields(last)) <= 2 && len(strings.Fields(first)) <= 2 {
				s = first + " " + last // as libraries write them
			}
			meta = union(meta, b.people(s, true))
		}
		if len(meta) > 0 {
			break
		}
	}
	shown := b.near(p.heading(title), len(told)+len(meta) == 0)
	if len(told)+len(shown)+len(meta) == 0 && p.body != nil {
		shown = b.only(p.body)
	}
	switch {
	case len(shown) > 0 && (len(told) == 0 || within(told, shown) || disjoint(told, shown) && (len(meta) == 0 || !within(meta, told))):
		return shown
	case len(told) > 0:
		return told
	case len(meta) > 0:
		return meta
	}
	return b.publisher
}

// within reports whether all of a's names are in b.
func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(name string) bool { return !among(name, b) })
}

// disjoint reports whether none of a's names is in b.
func disjoint(a, b []string) bool {
	return !slices.ContainsFunc(a, func(name string) bool { return among(name, b) })
}

func among(name string, all []string) bool {
	f := fold(name)
	return slices.ContainsFunc(all, func(s string) bool { return fold(s) == f })
}

// union is a with the names of b that it has not.
func union(a, b []string) []string {
	for _, name := range b {
		if !among(name, a) {
			a = append(a, name)
		}
	}
	return a
}

// bylines reads the names in bylines.
type bylines struct {
	sites     []string // the publisher's names, folded
	publisher []string // its names that were written as an author's
}

const (
	maxByline  = 300 // bytes
	maxLabel   = 60  // bytes before the label of a byline
	maxAuthors = 30
)

// byVerbs may precede "by" in the label of a byline. otherLabels are labels without it.
const (
	byVerbs     = `written|posted|published|reported|reporting|story|words|text|article|created|submitted|added|authored|analysis|opinion|contributed`
	otherLabels = `von|par|por|escrito por|publicado por|scritto da|a cura di|di|door|av|af|skrevet av|skrevet af|przez|geschrieben von|yazan|oleh|penulis|bởi|kirjoittaja|írta|szerző|napsal|napsala|piše|` +
		`autor|autora|autorin|autoren|autores|autori|auteur|auteurs|auteure|auteures|autore|autrice|author|authors|forfatter|skribent|reporter|text|texte|texto|tekst|words|автор|текст|από|συντάκτης|بقلم|كتب|الكاتب|מאת|लेखक|โดย|` +
		`作者|撰文|記者|记者|取材・文|文|글|취재`
)

// byLabel begins a byline, or is all of its text.
var byLabel = regexp.MustCompile(`(?i)^[^\pL\d]*(?:(?:(?:` + byVerbs + `)\s+)?by|` + otherLabels + `)(?:\s*[:：／/=＝]\s*|\s+|$)`)

// surname are the labels of bylines that names begin with too.
var surname = dom.Set("von di av af par por")

// tail begins what comes after a name: a day, a place, an address, a note.
// tailWords does in what readers see; the name of an organisation may have them.
var (
	tail      = regexp.MustCompile(`\s*(?:[(\[（【<|]|\s[-–—]+(?:\s|$)|@|https?:|\s\d|\d{1,2}[./:]\d)`)
	tailWords = regexp.MustCompile(`\s(?i:in|on|at|for|aus|from|of|für|is|published|updated|posted|last|with|mit)(?:\s|$)`)
)

// endsName reports whether a character may be one of tail. Most names have none.
func endsName(c rune) bool {
	return c < utf8.RuneSelf && strings.IndexByte("([<|-@:0123456789", byte(c)) >= 0 || c == '（' || c == '【' || c == '–' || c == '—'
}

// ands are words for "and".
const ands = `and|und|et|y|e|og|och|en|ve|и`

// separators stand between names, and between a name and a role or a place. conjunction does where both sides are whole names,
// one of conjunctions does where the names are texts of their own.
var (
	separators   = regexp.MustCompile(`\s*(?:[,،、;；／•·&]|\s/\s|\s\+\s)\s*(?:(?:` + ands + `)\s)?`)
	conjunction  = regexp.MustCompile(`\s+(?i:` + ands + `|i|та|with)\s+`)
	conjunctions = dom.Set(strings.ReplaceAll(ands, "|", " ") + " та")
)

// roles are words in what follows a name, and in no name. They are folded.
var roles = dom.Set(`reporter reporters editor editors editorial correspondent writer writers staff contributor contributors contributing columnist analyst director professor journalist producer fellow
	ceo cto founder cofounder chief phd md mba news agency redakteur redakteurin redaktion korrespondent korrespondentin journaliste rédacteur rédaction redactor redactora periodista redattore giornalista
	redacteur journalista repórter muhabir editör dziennikarz redaktör teacher intern manager specialist expert bureau desk photographer team press media journal magazine university institute blog
	engineer project program president minister officer consultant developer scientist researcher attorney speech service online gmbh inc ltd llc nachrichten`)

// hasRole reports whether a text has one of roles.
func hasRole(s string) bool {
	for w := range strings.FieldsFuncSeq(s, func(c rune) bool { return c == ' ' || c == '-' || c == ',' }) {
		if roles[fold(w)] {
			return true
		}
	}
	return false
}

// accounts are the names of accounts and not of people, folded; accountEnds are how others end.
var (
	accounts = dom.Set(`editor editors editorial editorialteam editorialstaff editorialboard staff webmaster guest root author authors writer
		unknown anonymous none null undefined default wordpress team na online newsroom desk superuser system pressrelease fail home menu
		share follow more email twitter facebook comment comments subscribe advertisement signin login name by`)
	accountEnds = dom.Set("feed feeds admin bot api rss import importer syndication autopost")
)

// isAccount reports whether a name is an account's.
func isAccount(s string) bool {
	f := strings.TrimPrefix(fold(s), "the")
	return accounts[f] || strings.HasPrefix(f, "admin") || strings.HasPrefix(f, "user") ||
		accountEnds[fold(s[strings.LastIndexAny(s, " .-_")+1:])]
}

// agency is a name that readers see as an author, and that no person has.
var agency = regexp.MustCompile(`^(?:AFP|AP|DPA|dpa|APA|SDA|sda|ATS|EFE|ANSA|EPA|PTI|ANI|IANS|NTB|TT|ANP|PAP|ČTK|MTI|UPI|epd|KNA|SID|Reuters|Ritzau|(?:The )?Associated Press|Press Association|PA Media)$`)

// hanReporter are names after a word for a reporter, each of two to four characters: 記者張小明／台北報導, 记者 张小明 李红.
var hanReporter = regexp.MustCompile(`^\P{Han}*(?:本报|見習)?(?:記者|记者|通讯员)[\s:：]*((?:\p{Han}{2,4}[\s　、]+)*\p{Han}{2,4})(?:[／/|\s]|$)`)

const koreanRoles = `기자|특파원|논설위원|칼럼니스트|통신원|앵커|리포터|편집위원|에디터|PD`

// koreanRole is a name before what its owner is.
var koreanRole = regexp.MustCompile(`((?:[가-힣]{2,4}\s?[·,/]\s?)*[가-힣]{2,4})\s*(?:(?:선임|수습|인턴|전문|객원|수석)\s*)?(?:` + koreanRoles + `)(?:[^가-힣]|$)`)

// koreanRank begins roles that are no names: 담당 기자.
var koreanRank = regexp.MustCompile(`^(?:담당|취재|사진|본지|전문|인턴|객원|수습|선임|온라인|편집|디지털|경제|사회|정치|산업|국제|문화|스포츠|뉴스|특별|시민|다른|해당|현장|일부|소속|구독)`)

// people are the names in a byline. told is set for JSON-LD, meta elements and marked elements: there one word may be a name.
func (b *bylines) people(s string, told bool) (names []string) {
	if s = collapse(html.UnescapeString(s)); strings.Contains(s, "@") {
		s = strings.TrimSpace(email.ReplaceAllString(s, ""))
	}
	if len(s) > maxByline || strings.Contains(s, "://") {
		return nil
	}
	if strings.ContainsFunc(s, hangul) {
		for _, m := range koreanRole.FindAllStringSubmatch(s, maxAuthors) {
			for _, name := range separators.Split(m[1], maxAuthors) {
				if !koreanRank.MatchString(name) {
					names = union(names, []string{name})
				}
			}
		}
		if len(names) > 0 {
			return names
		}
	}
	if strings.ContainsAny(s, "記记讯") {
		if m := hanReporter.FindStringSubmatch(s); m != nil {
			return strings.Fields(m[1])
		}
	}
	s, _ = unlabelled(s)
	if agency.MatchString(s) && !b.ofSite(s) {
		return []string{s}
	}
	for i, part := range separators.Split(s, maxAuthors) {
		for _, whole := range fullNames(part) {
			if whole == "" || '0' <= whole[0] && whole[0] <= '9' {
				continue
			}
			if strings.ContainsFunc(whole, endsName) {
				whole = upTo(tail, whole)
			}
			if !told && strings.Count(whole, " ") >= 2 {
				whole = upTo(tailWords, whole)
			}
			whole = strings.TrimFunc(whole, func(c rune) bool { return !unicode.IsLetter(c) && c != '.' && !unicode.IsMark(c) })
			if !isName(whole, told && i == 0) {
				continue
			}
			if b.ofSite(whole) {
				if len(b.publisher) == 0 {
					b.publisher = []string{whole}
				}
				continue
			}
			names = union(names, []string{whole})
		}
	}
	return names
}

// upTo is a text up to where an expression matches.
func upTo(end *regexp.Regexp, s string) string {
	if at := end.FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return s
}

// unlabelled is a byline without the label at its beginning, which ok reports.
func unlabelled(s string) (rest string, ok bool) {
	if !mayLabel(s) {
		return s, false
	}
	m := byLabel.FindString(s)
	if m == "" {
		return s, false
	}
	rest = s[len(m):]
	word := strings.ToLower(strings.TrimFunc(m, notLetter))
	if surname[word] && !strings.ContainsAny(m, ":：") && !agency.MatchString(rest) && len(strings.Fields(rest)) == 1 {
		return s, false
	}
	return rest, true
}

// fullNames are the names that a conjunction joins.
func fullNames(s string) []string {
	if strings.Count(s, " ") < 4 {
		return []string{s}
	}
	parts := conjunction.Split(s, -1)
	for _, part := range parts {
		if len(strings.Fields(part)) < 2 {
			return []string{s}
		}
	}
	return parts
}

// ofSite reports whether a name is the publisher's with a word such as "editorial staff", or its address.
func (b *bylines) ofSite(name string) bool {
	f := fold(name)
	return slices.ContainsFunc(b.sites, func(site string) bool {
		return f == site || len(site) >= 3 && strings.Contains(f, site) && (3*len(site) >= 2*len(f) || hasRole(name))
	})
}

// isName reports whether a text can be the name of a person or of an agency.
func isName(s string, single bool) bool {
	n := utf8.RuneCountInString(s)
	if n < 2 || n > 50 || strings.ContainsAny(s, "?!:;=\"“”_*#{}") || isAccount(s) {
		return false
	}
	fields := strings.Fields(s)
	if !single && noNames[strings.ToLower(strings.TrimFunc(fields[0], notLetter))] {
		return false
	}
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsUpper(first) && !unicode.IsLower(first) { // a script without capitals
		return len(fields) <= 4 && n <= 24 && (first < 0x3040 || n >= 2 && (single || n <= 6))
	}
	switch {
	case single && len(fields) <= 4:
		return true
	case len(fields) == 1, len(fields) > 6, hasRole(s):
		return false
	}
	return !slices.ContainsFunc(fields, func(w string) bool {
		c, _ := utf8.DecodeRuneInString(w)
		return unicode.IsLower(c) && !particles[strings.ToLower(strings.TrimRight(w, "."))] && !strings.ContainsAny(w, "'’-")
	})
}

// noNames begin texts near bylines, and no names.
var noNames = dom.Set(`monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche
	lunes martes miércoles jueves viernes sábado domingo january february march july september october november december
	twitter facebook instagram linkedin whatsapp youtube home follow share view read about contact sign log subscribe email print more all latest related comments posted updated published continue
	click minutes minuten minutos min photo image video source copyright the this how why what when edited`)

// particles are small words in names.
var particles = dom.Set(`de del della di da das do dos du des der den van von zu zur zum ter ten te la le les el al bin ibn ben abu af av y e und of dla san st mac`)

// piece is a text of a byline with its element.
type piece struct {
	text string
	of   *html.Node
}

// near is the byline between the headline and the article's first paragraphs, or shortly before the headline. If byAddress is
// set, a link to an author's page is a byline.
func (b *bylines) near(h *html.Node, byAddress bool) (names []string) {
	const (
		after, before, between = 120, 12, 6 // texts
		paragraphs             = 800        // bytes of long texts
		longer                 = 100
	)
	if h == nil {
		return nil
	}
	var first *html.Node // the element of the names
	texts, prose, most := 0, 0, after
	for n := following(h, nil); n != nil && texts < most && prose < paragraphs; {
		mark := markOf(n, byAddress)
		if mark&ofOthers != 0 || n.Type == html.ElementNode && neverText(n) {
			n = following(n, nil)
			continue
		}
		if isText(n) {
			if texts++; len(n.Data) > longer {
				prose += len(n.Data)
			}
		}
		if first == nil || alike(first, n) {
			if more := b.at(n, mark); len(more) > 0 {
				if names = union(names, more); first == nil {
					first = n
				}
				most = texts + between
				n = following(n, nil)
				continue
			}
		}
		n = next(n, nil)
	}
	texts = 0
	for n := preceding(h); n != nil && len(names) == 0 && texts < before; n = preceding(n) {
		if isText(n) {
			texts++
		}
		names = b.at(n, markOf(n, false))
	}
	return names
}

// only is the page's single byline, wherever it is. Several with different names belong to other articles.
func (b *bylines) only(body *html.Node) (names []string) {
	const most, nodes = 40, 20_000 // bylines, of the page
	found := 0
	for n, left := body.FirstChild, nodes; n != nil && found < most && left > 0; left-- {
		mark := markOf(n, false)
		if mark&ofOthers != 0 || n.Type == html.ElementNode && neverText(n) && n.DataAtom != atom.Footer {
			n = following(n, body)
			continue
		}
		more := b.at(n, mark)
		if len(more) == 0 {
			n = next(n, body)
			continue
		}
		if found++; len(names) > 0 && !within(more, names) {
			return nil
		}
		names = union(names, more)
		n = following(n, body)
	}
	return names
}

// at are the names of a byline that begins at n, an element that is marked as one or a text with a label.
func (b *bylines) at(n *html.Node, marked mark) []string {
	var pieces []piece
	size := 0
	if n.Type == html.TextNode {
		if !b.labels(strings.TrimSpace(n.Data)) || !sentenceOf(n, &pieces, &size) {
			return nil
		}
		return b.read(pieces, false)
	}
	if marked&(ofAuthor|surely) == 0 || marked&nextTo != 0 || !gather(n, &pieces, &size) {
		return nil
	}
	return b.read(pieces, marked&surely != 0)
}

// mayLabel reports whether a text has a word that labels have. Most texts have none, which is quicker to see without the expressions.
func mayLabel(s string) bool {
	from := strings.IndexFunc(s, unicode.IsLetter)
	if from < 0 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(s[from:])
	switch {
	case hangul(first):
		return slices.ContainsFunc(koreanWords, func(w string) bool { return strings.Contains(s, w) })
	case first >= 0x3040:
		return strings.ContainsRune("作撰记記文取本见見通", first)
	}
	word := s[from:min(len(s), from+24)]
	if to := strings.IndexFunc(word, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsMark(c) }); to >= 0 {
		word = word[:to]
	}
	if first >= utf8.RuneSelf {
		return labelWords[strings.ToLower(word)] || strings.ContainsFunc(s, hangul)
	}
	return labelLengths[word[0]|0x20]&(1<<len(word)) != 0 && labelWords[strings.ToLower(word)]
}

// labelWords are the first words of byLabel.
var labelWords = dom.Set(regexp.MustCompile(`( [^|]*)?\|`).ReplaceAllString("by|"+byVerbs+"|"+otherLabels, " "))

// koreanWords are what a Korean byline has one of.
var koreanWords = strings.Split("글|취재|"+koreanRoles, "|")

var labelLengths = lengthsOf(labelWords)

// sentenceOf collects the texts of a line from the text n on. It reports whether n begins the line, or follows a day.
func sentenceOf(n *html.Node, pieces *[]piece, size *int) bool {
	ends := func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Br, atom.Li, atom.Td, atom.Dd, atom.Dt, atom.Address:
			return true
		}
		return block(n)
	}
	top := n
	for top.Parent != nil && top.Parent.Type == html.ElementNode && !ends(top.Parent) {
		if before := top.PrevSibling; before != nil && !isLabelsDay(before) {
			return false
		}
		top = top.Parent
	}
	if before := top.PrevSibling; before != nil && !ends(before) && !isLabelsDay(before) {
		return false
	}
	for s := top; s != nil && !ends(s); s = s.NextSibling {
		switch {
		case isText(s):
			*size += len(s.Data)
			*pieces = append(*pieces, piece{collapse(s.Data), s.Parent})
		case !gather(s, pieces, size):
			return s != top
		}
	}
	return true
}

// isLabelsDay reports whether nothing or a day is before a byline's label.
func isLabelsDay(n *html.Node) bool {
	s := line(n)
	if n.Type == html.TextNode {
		s = collapse(n.Data)
	}
	return len(s) <= maxLabel && (s == "" || dated(s))
}

// equals reports whether two elements name authors in one way.
func equals(a, b *html.Node) bool {
	if a == nil {
		return false
	}
	return alike(a, b) || isAuthor(a) && isAuthor(b) || a.DataAtom == atom.A && b.DataAtom == atom.A && alike(a.Parent, b.Parent)
}

// labels reports whether a text begins as a byline does. The names of its elements do not matter.
func (b *bylines) labels(s string) bool {
	if len(s) > maxByline || !mayLabel(s) {
		return false
	}
	if strings.ContainsFunc(s, hangul) {
		return koreanRole.MatchString(s)
	}
	rest, ok := unlabelled(s)
	return strings.ContainsAny(s, "記记讯") && hanReporter.MatchString(s) || ok && (rest == "" || len(b.people(s, false)) > 0)
}

// read are the names in the texts of a byline: the first, and others that a conjunction or an equal element adds.
func (b *bylines) read(pieces []piece, sure bool) (names []string) {
	var first *html.Node
	joined, another, all, words := true, false, "", 0
	if i := slices.IndexFunc(pieces, func(p piece) bool {
		rest, ok := unlabelled(p.text)
		return ok && rest == "" || strings.HasSuffix(p.text, " by") || isAuthor(p.of) || isAuthor(p.of.Parent)
	}); i > 0 {
		pieces = pieces[i:]
	}
	for _, p := range pieces {
		all += " " + p.text
		words += strings.Count(p.text, " ")
	}
	if words == 0 && 1 < len(pieces) && len(pieces) <= 3 { // first and last name
		return b.people(all, sure)
	}
	for _, p := range pieces {
		s := beginsJoined(p.text)
		joined = joined || len(s) < len(p.text)
		rest, labelled := unlabelled(s)
		if noWriter(s) {
			another = true
		} else if labelled || strings.HasSuffix(s, " by") {
			another, joined = false, true
		}
		if labelled && rest == "" || s == "" {
			joined = true
			continue
		}
		if another {
			continue
		}
		more := b.people(s, sure && first == nil)
		if len(more) > 0 && (joined || equals(first, p.of)) {
			names = union(names, more)
			first = p.of
		} else if first != nil && !hasRole(s) {
			break
		}
		joined = endsJoined(p.text)
	}
	if len(names) == 0 {
		return b.people(all, sure)
	}
	return names
}

// beginsJoined returns a text without the conjunctions and marks at its beginning.
func beginsJoined(s string) string {
	for {
		s = strings.TrimLeft(s, " ,;/·•&")
		word, rest, _ := strings.Cut(s, " ")
		if !conjunctions[word] {
			return s
		}
		s = rest
	}
}

// endsJoined reports whether a name follows a text: it ends with a conjunction, a mark or a label.
func endsJoined(s string) bool {
	return s != "" && (strings.IndexByte(",;&", s[len(s)-1]) >= 0 || conjunctions[s[strings.LastIndexByte(s, ' ')+1:]] ||
		strings.HasSuffix(s, " by") || strings.HasSuffix(s, " von"))
}

// noWriter reports whether the last label of a text is of somebody else than the author, such as a photographer.
func noWriter(s string) bool {
	s = s[strings.LastIndexAny(s, "—–|")+1:]
	for w := range strings.FieldsSeq(s) {
		w = strings.ToLower(strings.TrimRight(w, ":"))
		if otherParts[w] || strings.HasPrefix(w, "photo") || strings.HasPrefix(w, "foto") || strings.HasPrefix(w, "illustrat") {
			return true
		}
	}
	return false
}

var otherParts = dom.Set("reviewed edited picture pictures translated checked fact-checked produced video bild bilder")

// gather collects the texts below n that may be names; it reports whether they are short enough for a byline.
func gather(n *html.Node, pieces *[]piece, size *int) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case isText(c):
			if *size += len(c.Data); *size > 2*maxByline {
				return false
			}
			*pieces = append(*pieces, piece{collapse(c.Data), n})
		case c.Type == html.ElementNode && !neverText(c) && c.DataAtom != atom.Time && namesOf(dom.Attr(c, "class"))&nextTo == 0:
			*size++ // a walk is bounded
			from := len(*pieces)
			if !gather(c, pieces, size) {
				return false
			}
			spaced := func(p piece) bool { return strings.Contains(p.text, " ") }
			if inner := (*pieces)[from:]; len(inner) > 1 && c.DataAtom == atom.A && !slices.ContainsFunc(inner, spaced) {
				*pieces = append((*pieces)[:from], piece{line(c), c}) // first and last names
			}
		}
	}
	return true
}

// isAuthor reports whether an element is the author in a vocabulary for machines.
func isAuthor(n *html.Node) bool {
	if n == nil {
		return false
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "rel", "itemprop", "property":
			for w := range strings.FieldsSeq(a.Val) {
				if w == "author" || w == "creator" || w == "schema:author" || w == "dc:creator" {
					return true
				}
			}
		}
	}
	return false
}

// mark is what an element's names say of it.
type mark uint8

const (
	ofAuthor mark = 1 << iota
	surely        // the author, and nothing else
	nextTo        // next to the author's name, or another's
	ofOthers      // other articles, or readers
)

// markOf returns the marks of an element. byAddress is set where a link to an author's page is one.
func markOf(n *html.Node, byAddress bool) (all mark) {
	if n.Type != html.ElementNode {
		return 0
	}
	if n.DataAtom == atom.Blockquote || n.DataAtom == atom.Figcaption {
		return ofOthers
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "class", "id", "data-testid", "data-test-id", "data-qa", "data-component":
			if namesOf(a.Val) == 0 {
				continue
			}
			for name := range strings.FieldsSeq(a.Val) {
				m := namesOf(name)
				if m&(ofAuthor|nextTo) == ofAuthor && a.Key != "id" {
					all |= ofAuthor
					if strings.HasSuffix(name, "author") || strings.HasSuffix(name, "name") {
						all |= surely
					}
				}
				if n.DataAtom != atom.Body {
					all |= m & ofOthers
				}
			}
		case "rel", "itemprop", "property":
			if isAuthor(n) {
				all |= ofAuthor | surely
			}
		case "href":
			if byAddress && n.DataAtom == atom.A && authorPath.MatchString(a.Val) {
				all |= ofAuthor
			}
		}
	}
	return all
}

// authorPath is in the address of an author's page.
var authorPath = regexp.MustCompile(`(?i)/(?:authors?|autor(?:e[ns]?|i)?|auteurs?|byline|by|writers?|journalists?|reporters?|contributors?|editors|columnists?|redaktion|redaktor|staff|profiles|opinion-writers)/[^/?#]{4,}`)

// markWords are the words in the names of elements, with what each says.
var markWords = func() map[string]mark {
	all := map[string]mark{}
	for of, list := range map[mark]string{
		ofAuthor: `author authors authorname byline bylines autor autoren autores auteur auteurs autore autori writer writers reporter reporters journalist journalists
			contributor contributors creator creators forfatter skribent postauthor articleauthor entryauthor authorbox byauthor writtenby postedby`,
		nextTo: `bio biography avatar image images img photo photos pic picture pictures social socials share follow followers desc description title role job position
			email mail twitter facebook date time timestamp datetime comment comments reply location more related recirc teaser teasers search count caption credit credits about icon stats rating
			most popular trending quote blockquote quotation tooltip hovercard popup hidden`,
		ofOthers: `comment comments related recommended recommendations trending popular mostread newsletter recirc sidebar disqus`,
	} {
		for word := range strings.FieldsSeq(list) {
			all[word] |= of
		}
	}
	return all
}()

var markLengths = lengthsOf(markWords)

// namesOf returns what the words in an element's name say.
func namesOf(name string) (all mark) {
	for i := 0; i < len(name); {
		begin := i
		if i = wordEnd(name, i); i == begin {
			i++
		} else {
			all |= ofWord(name[begin:i], markWords, &markLengths)
		}
	}
	return all
}
