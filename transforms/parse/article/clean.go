package article

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A line is removed when it says nothing but this. The expressions are for
// short lines: a sentence about advertising, or about copyright, stays.
var (
	advertisement    = regexp.MustCompile(`(?i)^[\[(<【\s*-]*(advertisements?|adverts?|ads?|sponsored( content)?|광고|anzeige|werbung|publicidad|publicité|pubblicità|reklama?|advertorial|story continues below advertisement|article continues below|スポンサーリンク|广告|廣告)[\])>】:\s*-]*$`)
	pictureLabel     = regexp.MustCompile(`^[\[(<]?\s*(?i:photos?|photo credit|image|images?|picture|pictures?|foto|fotos|bild|bilder|beitragsbild|titelbild|abbildung|abb\.|grafik|illustration|quelle|bildquelle|crédits?|credits?|copyright)( ?credits?| by)?\s*(:|©|\(c\))[^\n]{0,150}$`)
	pictureCredit    = regexp.MustCompile(`([\pL|.!?)”“"'’]\s*[(\[]?(©|\(c\))|[|.!?)”“"'’(\[]\s*(?i:foto|photo|bild|image|credit)s?\s*:)\s*[\pL\d][^.!?]{0,60}$`)
	email            = regexp.MustCompile(`[\pL\pN._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	reporter         = regexp.MustCompile(`^[\[(=/\s■◆▶#·]*[\pL]{0,6}[=\s/]*[가-힣]{2,4}\s*(선임|수습|인턴|전문|객원)?\s*(기자|특파원|논설위원|통신원|앵커|리포터|PD)(\s*[·,/=]\s*[가-힣]{2,4}\s*(선임|수습|인턴|전문)?\s*(기자|특파원|통신원)?)*[\])\s.=]*$`)
	copyrightLine    = regexp.MustCompile(`(?i)무단\s*(전재|복제|배포)|재배포\s*금지|저작권자\s*[ⓒ©(<:]|all rights reserved|^\W*(copyrights?|ⓒ|©|\(c\)\s)[\s\S]{0,100}$`)
	credit           = regexp.MustCompile(`^[\[(<]?\s*(사진|그래픽|자료|이미지|영상)\s*(출처|제공)?\s*[=:ㅣ|/][^.]{0,60}$`)
	invitation       = regexp.MustCompile(`^[▶☞※◀►☎✅📌👉]\s*\S.{0,80}$|^(Read more|READ MORE|Also read|ALSO READ|Read also|Lesen Sie auch|Lire aussi|Lea también|Leggi anche|Baca juga|See also|Related)\s*[:|]`)
	koreanInvitation = regexp.MustCompile(`(구독|좋아요|제보)(하기|하세요|해주세요|신청)|카카오톡\s*[:>]|기자\s*페이지|^\[?관련\s*기사|^\[?연관\s*기사`)
	others           = regexp.MustCompile(`(?i)^\W*(related( (news|stories|articles|topics|posts|content))?|read (more|also|next)|more (on|from|stories|about|news)\b.*|recommended( stories| for you)?|(most|top) (read|popular|viewed|stories)\b.*|(latest|recent|popular|other|trending) (news|stories|articles|posts|topics)|trending( now)?|share this( story| article| post)?|tell us what you think.*|\d+ (kommentare?|comments?|commentaires?|comentarios?|reacties)|kommentare? (schreiben|hinterlassen|verfassen)|(leave|post|add|write) a (comment|reply)|leave a reply.*|this entry was posted .*|関連(記事|キーワード|企業・業界|リンク)|관련\s*(기사|뉴스)|많이 본 (기사|뉴스)|주요\s*뉴스|이 시각 주요뉴스|相[关關](新闻|新聞|阅读|文章|链接))\W*$`)
	othersToo        = regexp.MustCompile(`(?i)^\W*(mehr (informationen|zu(m|r)? .*|themen|kolumnen|artikel|aus .*|nachrichten)|(alle |entdecke |unsere )?weitere \S*(mitteilungen|artikel|beiträge|themen|meldungen|nachrichten|informationen|geschichten|kolumnen|storys|links)( \S+){0,4}|(ähnliche|neueste|letzte|verwandte|beliebte|meistgelesene|kommentierte|empfohlene) (artikel|beiträge)|das (thema )?könnte (sie|dich) auch interessieren|(auch|noch) mehr .{0,40}:|über (den autor|die autorin|diese reihe)|((diesen )?(artikel|beitrag|seite)|news) (teilen|empfehlen|weiterempfehlen|drucken)|möchten sie den artikel teilen)\W*$`)
	endMail          = regexp.MustCompile(`[\s(\[/=]*([가-힣]{2,4}\s*(기자|특파원))?[\s(\[/=]*[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}[)\]\s]*$`)
)

// shortLine is the maximum number of characters of a line that clean may remove.
const shortLine = 160

// announces are whole lines that announce other articles, or what else is around the text, in lower
// case and without marks.
var announces = func() map[string]bool {
	all := map[string]bool{}
	for l := range strings.SplitSeq(`about the author|also read|comments|don't miss|dont miss|editor's picks|follow us|see also|share|tags|what to read next|while you are here|you may also like|you might also like|say your words|read this next
		auch interessant|das könnte ihnen auch gefallen|das könnte dir auch gefallen|empfehlungen der redaktion|kommentare|lesen sie auch|links zum thema|lust auf mehr|meistgelesen|passend zum thema|schlagworte|schlagwörter|schon gelesen|stichwörter|teilen|über den autor|weiterlesen|zur person
		à lire aussi|à lire également|à propos de l'auteur|à propos de l’auteur|articles liés|articles associés|articles récents|articles similaires|commentaires|les plus lus|lire aussi|partager|sur le même sujet|sur le même thème|voir aussi
		articoli correlati|commenti|condividi|leggi anche|artículos relacionados|comentarios|compartir|etiquetas|lea también|lo más leído|más noticias|noticias relacionadas|sobre el autor|sobre la autora|te puede interesar|te recomendamos|ver también|compartilhar|leia mais|leia também|notícias relacionadas|sobre a autora|sobre o autor|veja também
		gerelateerde artikelen|lees meer|lees ook|benzer haberler|ilgili konular|baca juga|les også|les mer|läs mer|læs også|czytaj także|czytaj też|czytaj również|komentarze|powiązane artykuły|zobacz także|zobacz też|zobacz również|читайте также|あわせて読みたい|延伸閱讀`, "\n") {
		for phrase := range strings.SplitSeq(strings.TrimSpace(l), "|") {
			all[phrase] = true
		}
	}
	return all
}()

// announcesOthers reports whether a line announces other articles, or what else is around
// the text. Two expressions are quicker than one: package regexp backtracks in small ones only.
func announcesOthers(l string) bool {
	if len(l) > 30 && l[len(l)-1] == '.' { // a sentence, as most lines are
		return false
	}
	return announces[strings.ToLower(strings.TrimFunc(l, notLetter))] || others.MatchString(l) || othersToo.MatchString(l)
}

func notLetter(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// clean removes the lines of advertisements, reporters' addresses and
// copyright, and those that a publisher's expressions match.
func clean(text string, drop []*regexp.Regexp) string {
	var lines []textLine
	for l := range strings.SplitSeq(text, "\n") {
		if l = collapse(l); l != "" {
			lines = append(lines, textLine{text: l})
		}
	}
	return cleanLines(lines, drop)
}

// cleanLines is clean for lines without needless space. It returns them as one text.
func cleanLines(lines []textLine, drop []*regexp.Regexp) string {
	var b strings.Builder
	for _, line := range lines {
		l := line.text
		if boilerplate(l) || matches(drop, l) {
			continue
		}
		// A reporter's address at a paragraph's end.
		if strings.Contains(l, "@") {
			if i := endMail.FindStringIndex(l); i != nil && i[0] > 0 && strings.ContainsAny(l[:i[0]], ".다!?") {
				l = strings.TrimSpace(l[:i[0]])
			}
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}

func matches(all []*regexp.Regexp, l string) bool {
	for _, m := range all {
		if m.MatchString(l) {
			return true
		}
	}
	return false
}

// boilerplate reports whether a line is about the article but not part of it.
func boilerplate(l string) bool {
	if len(l) > utf8.UTFMax*shortLine {
		return false
	}
	n := utf8.RuneCountInString(l)
	if n > shortLine {
		return false
	}
	// A cheap search for what each expression needs comes first: most lines have none.
	if n <= 60 && strings.IndexByte(".,?!;\"'0123456789", l[len(l)-1]) < 0 && advertisement.MatchString(l) {
		return true
	}
	if (l[0] >= utf8.RuneSelf || strings.IndexByte("RALBS", l[0]) >= 0 && strings.ContainsAny(l, ":|")) && invitation.MatchString(l) {
		return true
	}
	if (strings.ContainsAny(l, "ⓒ©(") || strings.Contains(l, "opyright") || strings.Contains(l, "OPYRIGHT") || strings.Contains(l, "eserved") || strings.Contains(l, "ESERVED") ||
		strings.Contains(l, "무단") || strings.Contains(l, "재배포")) && copyrightLine.MatchString(l) {
		return true
	}
	if credits(l) {
		return true
	}
	if strings.ContainsFunc(l, hangul) && (reporter.MatchString(l) || credit.MatchString(l) || koreanInvitation.MatchString(l)) {
		return true
	}
	if strings.Contains(l, "@") {
		if rest := email.ReplaceAllString(l, ""); len(rest) < len(l) && utf8.RuneCountInString(rest) <= 40 && !strings.ContainsAny(strings.TrimRight(rest, ". "), ".?!") {
			return true
		}
	}
	return false
}

func hangul(c rune) bool { return 0xac00 <= c && c <= 0xd7a3 }

// credits reports whether a line says who made a picture, at its beginning or its end.
func credits(l string) bool {
	mark := strings.Contains(l, "©") || strings.Contains(l, "(c)")
	if !mark && strings.IndexByte(l, ':') < 0 {
		return false
	}
	if pictureLabel.MatchString(l) {
		return true
	}
	for _, label := range []string{"oto", "ild", "mage", "redit"} {
		mark = mark || strings.Contains(l, label)
	}
	return mark && pictureCredit.MatchString(l)
}

// asks are in what pages ask of their readers after the text: to subscribe, to follow.
var asks = []string{"newsletter", "sign up", "subscribe", "abonnier", "posteingang", "inbox", "folge uns", "folgt uns", "folgen sie uns", "follow us", "follow me", "follow @",
	"like us", "our app", "unsere app", "click here", "klicken sie hier", "hier klicken", "suscrib", "suscríb", "s'inscrire", "s’inscrire", "inscrivez", "abonnez", "iscriviti", "join our", "log in", "logged in", "einloggen", "connectez-vous"}

// asksReaders reports whether a short paragraph asks something of the readers.
func asksReaders(l string) bool {
	l = strings.ToLower(l[:min(len(l), 400)])
	return len(l) < 400 && slices.ContainsFunc(asks, func(a string) bool { return strings.Contains(l, a) })
}
