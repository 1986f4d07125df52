// Package simhash tells texts that are nearly the same from others by a number of 64 bits
// (Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002). It is
// pure: no network, no clock, no logging. No promise: see docs/library.md.
package simhash

import (
	"math/bits"
	"unicode"
)

// near is the largest Distance of two texts that count as nearly the same: one is the
// other with a few words in a hundred changed, with another first line, or without its
// last tenth. Of 41,000 pairs of unrelated articles in six languages none is nearer than 17.
const near = 10

// minPairs is how many different pairs of words a text needs. The hash of a shorter one
// changes too much with each word.
const minPairs = 24

// Of returns the hash of a text: of its pairs of neighbouring words, without case and
// punctuation. In scripts without spaces each character is a word. 0 says that the text
// is too short to be compared.
func Of(text string) uint64 {
	pairs := map[uint64]struct{}{}
	var word, before uint64
	end := func() {
		if word != 0 {
			if before != 0 {
				pairs[mix(before*31+word)] = struct{}{}
			}
			before, word = word, 0
		}
	}
	for _, c := range text {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end()
			word = add(0, c)
			end()
		case unicode.IsLetter(c), unicode.IsDigit(c), unicode.IsMark(c):
			word = add(word, unicode.ToLower(c))
		default:
			end()
		}
	}
	end()
	if len(pairs) < minPairs {
		return 0
	}
	var votes [64]int
	for p := range pairs {
		for i := range votes {
			votes[i] += int(p>>i&1)*2 - 1
		}
	}
	var hash uint64
	for i, v := range votes {
		if v > 0 {
			hash |= 1 << i
		}
	}
	return max(hash, 1)
}

// Distance is the number of bits in which two hashes differ.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }

// Same reports whether two texts are nearly the same, by their hashes. A text that is
// too short is like no other.
func Same(a, b uint64) bool { return a != 0 && b != 0 && Distance(a, b) <= near }

// add adds a character to the hash of a word (FNV-1a, a character at a time).
func add(hash uint64, c rune) uint64 {
	if hash == 0 {
		hash = 14695981039346656037
	}
	return (hash ^ uint64(c)) * 1099511628211
}

// mix spreads a hash over all of its bits (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
