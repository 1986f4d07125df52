package simhash_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/simhash"
)

// story returns n words of a made-up language. Two seeds share its words, as two
// articles share those of their language.
func story(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for range n {
		word := r.IntN(1 + r.IntN(1500)) // some words are frequent
		for word += 30; word > 0; word /= 21 {
			b.WriteByte("bcdfghjklmnpqrstvwxyz"[word%21])
			b.WriteByte("aeiou"[word%5])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func TestSame(t *testing.T) {
	for seed := range uint64(40) {
		text := story(seed, 300)
		hash := simhash.Of(text)
		assert.Equal(t, hash, simhash.Of("“"+strings.ToUpper(strings.ReplaceAll(text, " ", ", "))+"”"), "case and punctuation do not count")
		near := map[string]string{
			"another first line": "(SEOUL) The agency's own reporter writes: " + text,
			"a line at its end":  text + "Copyright of the agency, all rights reserved",
			"without its end":    text[:len(text)*19/20],
			"a few other words":  strings.Replace(strings.Replace(text, " ", " but ", 1), "ba ", "then ", 2),
		}
		for what, other := range near {
			assert.True(t, simhash.Same(hash, simhash.Of(other)), "%s: %d bits", what, simhash.Distance(hash, simhash.Of(other)))
		}
		for other := range seed {
			assert.False(t, simhash.Same(hash, simhash.Of(story(other, 300))), "stories %d and %d", seed, other)
		}
	}
}

// Hashes are stored, and compared with those of later versions of the program.
func TestValuesStay(t *testing.T) {
	for text, want := range map[string]uint64{
		story(1, 100): 0x76c1853580b614af,
		"한국은행 금융통화위원회가 기준금리를 연 3.50%로 동결했다고 밝혔다. " + story(2, 60): 0x314d802a84952495,
		"東京都は二十三日、新しい図書館を来年四月に開くと発表した。建物は三階建てで、約十万冊の本が並ぶ予定だ。":     0x27d1f210a67bb1c6,
	} {
		assert.Equal(t, want, simhash.Of(text), "%#x of %.20s", simhash.Of(text), text)
	}
}

func TestTooShort(t *testing.T) {
	assert.Zero(t, simhash.Of("The bank kept its rate at 3.5 percent."))
	assert.Zero(t, simhash.Of(strings.Repeat("again and ", 500)), "few different pairs of words")
	assert.False(t, simhash.Same(0, 0))
	assert.NotZero(t, simhash.Of("東京都は二十三日、新しい図書館を来年四月に開くと発表した。"), "a script without spaces")
}

func FuzzOf(f *testing.F) {
	f.Add("a b c", "한국은행 금융통화위원회")
	f.Add(strings.Repeat("東", 100), "\xff\x00 é")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := simhash.Of(a), simhash.Of(b)
		assert.Equal(t, x, simhash.Of(a+" \n"), "space at the end of %q counts", a)
		if simhash.Distance(x, y) != simhash.Distance(y, x) || simhash.Same(x, x) != (x != 0) {
			t.Errorf("%#x and %#x are compared wrongly", x, y)
		}
	})
}
