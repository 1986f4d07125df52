package index

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// stop are words that say nothing about a text.
var stop = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq("a an and are as at be by can do does for from has have how i if in into is it its me my of on or that the their then there these this to was what when where which who why will with you your") {
		stop[w] = true
	}
}

const (
	// maxWord is the longest word that is kept, in bytes; what is longer is no word.
	maxWord = 64
	// maxTerms is how many words of a question are looked for.
	maxTerms = 24
)

// words are the words of a text by which it is found, in the order of the text, in lower
// case: runs of letters and digits. A name of several parts, such as os.path or
// max_pages, is there whole, without what joins the parts, and in parts. Chinese,
// Japanese and Korean, which do not part words or add particles to them, are there as
// pairs of letters.
func words(text string) (all []string) {
	add := func(w string) {
		if w != "" && len(w) <= maxWord && !stop[w] {
			all = append(all, w)
		}
	}
	for name := range strings.FieldsFuncSeq(strings.ToLower(norm.NFKC.String(text)), func(r rune) bool { return !inWord(r) && !joins(r) }) {
		parts := strings.FieldsFunc(name, joins)
		for _, part := range parts {
			for _, run := range runs(part) {
				if r := []rune(run); paired(r[0]) && len(r) > 1 {
					for i := range len(r) - 1 {
						add(string(r[i : i+2]))
					}
					continue
				}
				add(run)
			}
		}
		if len(parts) > 1 && !strings.ContainsFunc(name, paired) {
			add(strings.Join(parts, ""))
		}
	}
	return all
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }
func joins(r rune) bool  { return r == '_' || r == '.' || r == '-' }

// paired reports whether a letter is of a script that is searched by pairs.
func paired(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// runs cuts a part where it changes between paired letters and others.
func runs(part string) (all []string) {
	begin := 0
	var before rune
	for i, r := range part {
		if i > 0 && paired(r) != paired(before) {
			all = append(all, part[begin:i])
			begin = i
		}
		before = r
	}
	return append(all, part[begin:])
}

// bag is the words of a text in alphabetical order.
func bag(text string) string {
	all := words(text)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// terms are the words of a question, each once.
func terms(question string) (all []string) {
	for _, w := range words(question) {
		if !slices.Contains(all, w) && len(all) < maxTerms {
			all = append(all, w)
		}
	}
	return all
}
