package chunk

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// encoding is cl100k_base. Its words come from a scanner in place of a regular expression, which takes quadratic time
// on runs of space, and most of the time on all other text.
type encoding struct {
	ranks map[string]uint32
	known [1 << 14]atomic.Pointer[knownWord] // words of several tokens, by their hash; a later word replaces an earlier one
	seed  maphash.Seed
}

var cl100k = sync.OnceValue(func() *encoding { return &encoding{ranks: ranks(), seed: maphash.MakeSeed()} })

// maxSpace is the longest run of space, in bytes, that is counted token by token.
// In a longer run each byte counts as a token, which is never too few.
const maxSpace = 256

// Tokens returns the number of tokens of cl100k_base in text. Special tokens count
// as ordinary text.
func Tokens(text string) int { return tokensTo(text, math.MaxInt) }

// tokensTo is Tokens, but it stops counting over limit.
func tokensTo(text string, limit int) int {
	e := cl100k()
	count := 0
	for text != "" && count <= limit {
		n := wordLength(text)
		word := text[:n]
		text = text[n:]
		if _, ok := e.ranks[word]; ok {
			count++
			continue
		}
		if n > maxSpace && strings.TrimSpace(word) == "" {
			count += n
			continue
		}
		count += e.parts(word)
	}
	return count
}

// parts returns the number of tokens of a word that is not one token. Merging takes a hundred
// times as long as a look-up, and pages of one site share many such words.
func (e *encoding) parts(word string) int {
	slot := &e.known[maphash.String(e.seed, word)%uint64(len(e.known))]
	if k := slot.Load(); k != nil && k.word == word {
		return k.tokens
	}
	tokens := merged(word, e.ranks)
	if len(word) <= maxKnown {
		slot.Store(&knownWord{strings.Clone(word), tokens})
	}
	return tokens
}

// maxKnown is the length in bytes of the longest word that is remembered. With the
// length of encoding.known it bounds the memory to 2 MiB.
const maxKnown = 64

type knownWord struct {
	word   string
	tokens int
}

// maxToken is at least the length of the longest token of cl100k_base, in bytes.
const maxToken = 256

// count returns Tokens(text), or any number over limit when text has more tokens:
// merging the pairs of a word of megabytes would take seconds.
func count(text string, limit int) int {
	if len(text) > maxToken*limit {
		return limit + 1
	}
	return tokensTo(text, limit)
}

// wordLength returns the length of the first match of cl100k_base's pattern in s.
// The pattern's alternatives, in order:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func wordLength(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	r, size := utf8.DecodeRuneInString(s)
	if unicode.IsLetter(r) {
		return size + letters(s[size:])
	}
	number := unicode.IsNumber(r)
	if !number && r != '\r' && r != '\n' {
		if n := letters(s[size:]); n > 0 {
			return size + n
		}
	}
	if number {
		for range 2 {
			next, n := utf8.DecodeRuneInString(s[size:])
			if n == 0 || !unicode.IsNumber(next) {
				break
			}
			size += n
		}
		return size
	}
	start := 0
	if r == ' ' {
		start = 1
	}
	if n := span(s[start:], mark); n > 0 {
		n += start
		return n + span(s[n:], func(r rune) bool { return r == '\r' || r == '\n' })
	}
	run := span(s, unicode.IsSpace)
	if end := strings.LastIndexAny(s[:run], "\r\n"); end >= 0 {
		return end + 1
	}
	if run < len(s) {
		if _, last := utf8.DecodeLastRuneInString(s[:run]); last < run {
			return run - last
		}
	}
	return max(run, size)
}

// letters returns the length of the letters that s begins with.
func letters(s string) int {
	n := 0
	for n < len(s) && (s[n]|0x20)-'a' < 26 {
		n++
	}
	if n < len(s) && s[n] >= utf8.RuneSelf {
		n += span(s[n:], unicode.IsLetter)
	}
	return n
}

func mark(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// span returns the length of the beginning of s whose runes satisfy is.
func span(s string, is func(rune) bool) int {
	for i, r := range s {
		if !is(r) {
			return i
		}
	}
	return len(s)
}

func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(s) < 3 {
			return 0
		}
		switch second := s[2] | 0x20; s[1] | 0x20 {
		case 'l':
			if second == 'l' {
				return 3
			}
		default:
			if second == 'e' {
				return 3
			}
		}
	}
	return 0
}
