// Package language says in which language a text is written. It knows the scripts of one
// language, such as Hangul, and elsewhere the most frequent words of each, which are a third of
// every text and hardly ever names. It is pure, and reads the beginning of a text only.
// No promise: see docs/library.md.
package language

import (
	_ "embed" // for words.txt
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	most   = 1_500 // bytes of a text that are read
	long   = 200   // bytes of a text that says more than what its page declares
	fewest = 12    // letters without which no language is named
)

// Of is a text's language as in BCP 47 (en, ko, zh), "" where that cannot be told.
func Of(text string) string {
	if len(text) > most {
		text = text[:most]
	}
	text = norm.NFC.String(text) // the lists have letters and marks in one character
	script, letters := scriptOf(text)
	switch {
	case letters < fewest:
		return ""
	case frequent[script] == nil: // one language alone is written in it
		return script
	}
	return byWords(text, script)
}

// scriptOf is the script of most letters: a language's code where one language alone is written in
// it, else its name.
func scriptOf(text string) (script string, letters int) {
	var counts [32]int
	kana := 0
	for _, c := range text {
		if c < 0x80 {
			if 'a' <= c|0x20 && c|0x20 <= 'z' {
				counts[0]++
			}
			continue
		}
		if !unicode.IsLetter(c) {
			continue
		}
		for i, s := range scripts {
			if unicode.Is(s.letters, c) {
				counts[i]++
				break
			}
		}
		if unicode.In(c, unicode.Hiragana, unicode.Katakana) {
			kana++
		}
	}
	best := 0
	for i := range scripts {
		letters += counts[i]
		weight := 1
		if i > 0 && scripts[i].dense { // a character is a syllable or a word, and names are often Latin
			weight = 3
		}
		counts[i] *= weight
		if counts[i] > counts[best] {
			best = i
		}
	}
	if counts[best] == 0 {
		return "", letters
	}
	script = scripts[best].name
	if script == "zh" && kana*3*10 > counts[best] { // Japanese has Chinese characters between its own
		script = "ja"
	}
	return script, letters
}

var scripts = []struct {
	name    string
	letters *unicode.RangeTable
	dense   bool
}{
	{"Latin", unicode.Latin, false}, {"ko", unicode.Hangul, true}, {"zh", unicode.Han, true}, {"ja", kana, true},
	{"Cyrillic", unicode.Cyrillic, false}, {"Arabic", unicode.Arabic, false}, {"Devanagari", unicode.Devanagari, false},
	{"el", unicode.Greek, false}, {"he", unicode.Hebrew, false}, {"th", unicode.Thai, true}, {"ka", unicode.Georgian, false}, {"hy", unicode.Armenian, false},
	{"ta", unicode.Tamil, false}, {"te", unicode.Telugu, false}, {"bn", unicode.Bengali, false}, {"kn", unicode.Kannada, false}, {"ml", unicode.Malayalam, false},
	{"gu", unicode.Gujarati, false}, {"pa", unicode.Gurmukhi, false}, {"or", unicode.Oriya, false}, {"si", unicode.Sinhala, false}, {"km", unicode.Khmer, true},
	{"lo", unicode.Lao, true}, {"my", unicode.Myanmar, true}, {"am", unicode.Ethiopic, true}, {"bo", unicode.Tibetan, true}, {"dv", unicode.Thaana, false},
}

var kana = &unicode.RangeTable{R16: append(append([]unicode.Range16{}, unicode.Hiragana.R16...), unicode.Katakana.R16...)}

// byWords is the language whose most frequent words a text has most of. A word of several
// languages counts for each of them, a part. One word alone, however often it is there, says
// nothing: ay is a month in Turkish and is in Tagalog.
func byWords(text, script string) string {
	var scores [64]float32
	var first [64]*uint8 // a language's first word in the text
	var several [64]bool // whether the text has another one
	known := frequent[script]
	words := 0
	var buf [24]byte // longer than any word of the lists
	word := buf[:0]
	end := func() {
		if len(word) > 0 {
			words++
			of := known[string(word)]
			for _, i := range of {
				scores[i] += 1 / float32(len(of))
				if first[i] == nil {
					first[i] = &of[0]
				}
				several[i] = several[i] || first[i] != &of[0]
			}
			word = buf[:0]
		}
	}
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z':
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c < utf8.RuneSelf || !unicode.IsLetter(c) && !unicode.IsMark(c):
			end()
			continue
		default:
			c = unicode.ToLower(c)
		}
		if len(word)+utf8.UTFMax <= len(buf) {
			word = utf8.AppendRune(word, c)
		}
	}
	end()
	best, second := 0, float32(0)
	for i := 1; i < len(codes); i++ {
		switch {
		case scores[i] > scores[best]:
			best, second = i, scores[best]
		case scores[i] > second:
			second = scores[i]
		}
	}
	if !several[best] || scores[best] < 1.5 || scores[best]*25 < float32(words) || scores[best] < second*1.05 {
		return ""
	}
	return codes[best]
}

// lists are the words that are most frequent in texts of each language: a script, a language and its words on each line.
//
//go:embed words.txt
var lists string

// codes are the languages of lists; the first is none.
var codes = func() []string {
	out := []string{""}
	for line := range strings.Lines(lists) {
		out = append(out, strings.Fields(line)[1])
	}
	slices.Sort(out)
	return out
}()

// frequent are the words of lists by script, each with its languages as indexes of codes.
var frequent = func() map[string]map[string][]uint8 {
	out := map[string]map[string][]uint8{}
	for line := range strings.Lines(lists) {
		words := strings.Fields(line)
		script := words[0]
		if out[script] == nil {
			out[script] = map[string][]uint8{}
		}
		i, _ := slices.BinarySearch(codes, words[1])
		for _, w := range words[2:] {
			if of := out[script][w]; !slices.Contains(of, uint8(i)) {
				out[script][w] = append(of, uint8(i))
			}
		}
	}
	return out
}()

// near are languages so close that a page's own word for its language counts.
var near = []string{"no nb nn da", "id ms", "hr sr bs", "pt gl", "cs sk", "tl fil", "bg mk sr", "zh yue", "es ca gl"}

// Page is the language of a page that declares one, and whose text is text: what is declared, unless
// the text is plainly in another. declared is in BCP 47's form, "" for none.
func Page(declared, text string) string {
	found := Of(text)
	base, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(declared, "_", "-")), "-")
	if found == "" || found == base {
		return declared
	}
	for _, group := range near {
		if all := strings.Fields(group); slices.Contains(all, base) && slices.Contains(all, found) {
			return declared
		}
	}
	if len(text) < long && declared != "" {
		return declared
	}
	return found
}
