package chunk_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

// TestTokens compares the scanner with the library's own counting, and both with
// counts of tiktoken and bpe-openai.
func TestTokens(t *testing.T) {
	library := codec.NewCl100kBase()
	f := func(text string, want int) {
		t.Helper()
		got := chunk.Tokens(text)
		second, err := library.Count(text)
		if err != nil || got != second || want >= 0 && got != want {
			t.Errorf("%q: %d tokens, the library %d (%v), want %d", text, got, second, err, want)
		}
	}
	f("", 0)
	f("hello world", 2)
	f("tiktoken is great!", 6)
	f("お誕生日おめでとう", 9)
	f("2 + 2 = 4", 7)
	f("antidisestablishmentarianism", 6)
	for _, s := range []string{
		"don't We'LL they'Re 'tis ''s x'", "a1b22c333d4444", "  two   three    four", "\ttab\t\ttabs\n\n\n  indented\r\n", "end ", "end  \n ",
		"!!!\n\n", " !a", "$5.00 — 10 %", "한국어 문장입니다. 둘째 문장!", "👩‍👩‍👧‍👦 e\u0301 \u00a0x", "func main() {\n\tfmt.Println(\"hi\")\n}\n", "<|endoftext|>", "x\u2028y\u0085z", "½²Ⅳ١٢٣",
	} {
		f(s, -1)
	}
	// Space between line ends is one word here, and two in the library.
	for text, want := range map[string]int{"\n \n": 1, "0\n \n": 2, " \n \n": 1, "\n\n \n\n x": 3, "00000000\n \n": 4} {
		require.Equal(t, want, chunk.Tokens(text))
	}
	require.GreaterOrEqual(t, chunk.Tokens(strings.Repeat(" \n", 1<<18)), 1<<10, "a run of space")
}

// The library ignores the byte 0x7f, which is a token of cl100k_base.
func TestDelete(t *testing.T) {
	for text, want := range map[string]int{"\x7f": 1, "a\x7f": 2, "\x7f\x7f\x7f": 3, "hello\x7fworld": 3} {
		require.Equal(t, want, chunk.Tokens(text))
	}
}

// Words longer than those that are remembered, of letters and of marks, against the library.
func TestMerged(t *testing.T) {
	library, random := codec.NewCl100kBase(), rand.New(rand.NewPCG(1, 2))
	for _, letters := range []string{"abcdefgh", "aA", "가나다라마바사", "e\u0301äöü", "#=-_*", "=", "a"} {
		for _, n := range []int{65, 200, 3000} {
			var word strings.Builder
			for range n {
				r := []rune(letters)
				word.WriteRune(r[random.IntN(len(r))])
			}
			want, err := library.Count(word.String())
			require.NoError(t, err)
			require.Equal(t, want, chunk.Tokens(word.String()))
		}
	}
}

// A word of several tokens is remembered and counts the same each time, also where
// others of the same hash replace it, and for goroutines that count at the same time.
func TestTokensAgain(t *testing.T) {
	library := codec.NewCl100kBase()
	want := make([]int, 11_000)
	for i := range want {
		n, err := library.Count(fmt.Sprintf("wörtlich%cxqz", rune(0xac00+i)))
		require.NoError(t, err)
		want[i] = n
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				for i := range want {
					if got := chunk.Tokens(fmt.Sprintf("wörtlich%cxqz", rune(0xac00+i))); got != want[i] {
						t.Errorf("word %d: %d tokens, want %d", i, got, want[i])
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// A small chunk joins its neighbour when both together have exactly Max tokens, but not when they have more.
func TestMergeToTheLimit(t *testing.T) {
	first, second := "## A\n\n"+strings.Repeat("word ", 30)+"end.", "## B\n\nmore words."
	l := chunk.Limits{Max: chunk.Tokens(first) + chunk.Tokens(second), Min: 20}
	require.Equal(t, l.Max, chunk.Tokens(first+"\n\n"+second))
	require.Len(t, chunk.Split("p", first+"\n\n"+second, nil, l), 1)
}

// A chunk that begins within an item of a list or a definition has its first line or its term in the path, and ends with
// it. An item begins a chunk where it is whole in one, but not in the one before.
func TestItems(t *testing.T) {
	p := func(letter string, n int) string { return strings.TrimSpace(strings.Repeat(letter+" ", n)) }
	l := chunk.Limits{Max: 60, Min: 10}
	for markdown, want := range map[string][]string{
		"# M\n\nopen FILE\n: " + p("a", 50) + "\n\n  " + p("b", 50) + "\n\n  c\n\nshut\n: d":                                   {"M: M open FILE : a", "M/open FILE: b c", "M: shut : d"},
		"# M\n\nopen\n: " + p("a", 100) + "\n\n[x\n: y":                                                                        {"M: M open : a", "M/open: a", "M: [x : y"},
		"# M\n\n- one\n\n  " + p("a", 30) + "\n\n- two\n\n  " + p("b", 40):                                                     {"M: M - one a", "M: - two b"},
		"1. `f(x)`\n\n   - in\n\n     " + p("a", 50) + "\n\n     " + p("b", 50) + "\n\n   " + p("c", 20) + "\n\n" + p("d", 20): {": 1. f(x) - in", "f(x)/in: a", "f(x)/in: b", "f(x): c", ": d"},
		"- #### m\n\n  ```\n  - code\n  ```\n\n  " + p("a", 55) + "\n\n  " + p("b", 20):                                        {": - m - code", "m: a", "m: b"},
		"- " + p("a", 30) + "\n- " + p("b", 40) + "\n- c":                                                                      {": - a", ": - b - c"},
		"- a\n- b\n- c\n\n  " + p("d", 55):                                                                                     {": - a - b - c", "c: d"},
		"## A\n\n" + p("a", 57) + "\n\n### R\n\nx\n\n## B\n\n" + p("b", 40):                                                    {"A: A a", "A/R: R x", "B: B b"},
		"# M\n\n- ```\n  x\n  ```\n\n  " + p("a", 55) + "\n\nNote: " + p("b", 20):                                              {"M: M - x", "M: a", "M: Note: b"},
	} {
		var got []string
		for _, c := range chunk.Split("p", markdown, nil, l) {
			said := slices.Compact(strings.FieldsFunc(c.Text, func(r rune) bool { return strings.ContainsRune(" \n`#", r) }))
			got = append(got, strings.Join(c.Path, "/")+": "+strings.Join(said, " "))
		}
		require.Equal(t, want, got, markdown)
	}
}

var spaceBetweenLineEnds = regexp.MustCompile(`[\r\n][\t\v\f\x{85}\p{Z}]+[\r\n]`)

func FuzzTokens(f *testing.F) {
	library := codec.NewCl100kBase()
	f.Add("don't  stop\n\n 123456 한글!\r\n")
	f.Add(" \u00a0\t'Ll x'rE")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || !utf8.ValidString(text) || strings.ContainsAny(text, "ſ\x7f") || spaceBetweenLineEnds.MatchString(text) {
			return // these differ on purpose: the folding of ſ into s, and the cases in TestTokens
		}
		want, err := library.Count(text)
		require.NoError(t, err)
		require.Equal(t, want, chunk.Tokens(text))
	})
}

func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", i%10)
	}
	return strings.TrimSpace(b.String()) + "."
}

func TestSplit(t *testing.T) {
	long := words(40) // over 50 tokens
	page := "before\n\n" + long + "\n\n# Title\n\n" + long + "\n\n## A `code` \\_x\\_\n\n### A1\n\n" + long + "\n\n## B\n\nsmall\n\n## C\n\n" + long
	chunks := chunk.Split("https://e.com/a", page, nil, chunk.Default)
	var got []string
	for i, c := range chunks {
		first, _, _ := strings.Cut(c.Text, "\n")
		got = append(got, fmt.Sprint(strings.Join(c.Path, "/"), "|", first))
		require.False(t, c.Ordinal != i || c.Tokens != chunk.Tokens(c.Text) || len(c.ID) != 32 || len(c.Hash) != 64, "chunk %d: %+v", i, c)
	}
	want := []string{"|before", "Title|# Title", "Title/A code _x_/A1|## A `code` \\_x\\_", "Title|## B"}
	require.Equal(t, want, got)
	require.Regexp(t, `^## B\n\nsmall\n\n## C\n\nword0`, chunks[3].Text, "the small section is with the one after it")
}

// TestTogether checks what is in one chunk, and under which headings.
func TestTogether(t *testing.T) {
	long := words(60) // over 50 tokens
	half := words(110)
	code := "```\n" + strings.Repeat("line of code\n", 60) + "```"
	for name, c := range map[string]struct {
		page string
		want []string // path | first line | last line
	}{
		"a small section is no part of the one before": {
			"# API\n\n" + long + "\n\n## GET /charges\n\n" + long + "\n\n## POST /charges\n\nMakes one.\n\n## DELETE /charges\n\n" + long,
			[]string{"API|# API|" + long, "API/GET /charges|## GET /charges|" + long, "API|## POST /charges|" + long},
		},
		"small sections make a chunk of what they are all below": {
			"# T\n\n" + long + "\n\n## Words\n\n### A\n\n" + words(15) + "\n\n### B\n\n" + words(15) + "\n\n### C\n\nthree\n\n## Next\n\n" + long,
			[]string{"T|# T|" + long, "T/Words|## Words|three", "T/Next|## Next|" + long},
		},
		"a small introduction goes with what is below it": {
			"# T\n\n" + long + "\n\n## A\n\nshort\n\n### A1\n\n" + long + "\n\n## B\n\n" + long,
			[]string{"T|# T|" + long, "T/A|## A|" + long, "T/B|## B|" + long},
		},
		"an introduction is with its code where that begins a chunk": {
			"# T\n\n" + half + "\n\n" + half + "\n\nCall it so:\n\n" + code,
			[]string{"T|# T|" + half, "T|Call it so:|```"},
		},
		"an introduction is with the first piece of what is cut": {
			"# T\n\n" + long + "\n\n**Call it so:**\n\n```\n" + strings.Repeat("line of code\n", 300) + "```",
			[]string{"T|# T|" + long, "T|**Call it so:**|```", "T|```|```", "T|```|```"},
		},
		"a heading is with the first sentences of what is cut": {
			"# T\n\n" + strings.Repeat("One sentence of eight words is here now. ", 60),
			[]string{"T|# T|", "T|One sentence of eight words is here now. "},
		},
		"an introduction leads to the sections below it": {
			"# T\n\n" + long + "\n\nThese are the calls:\n\n## GET\n\n" + long,
			[]string{"T|# T|" + long, "T|These are the calls:|" + long},
		},
		"a section without text is not part of its neighbour": {
			"# T\n\n" + long + "\n\n## A\n\n## B\n\n" + long,
			[]string{"T|# T|## A", "T/B|## B|" + long},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range chunk.Split("p", c.page, nil, chunk.Default) {
				lines := strings.Split(c.Text, "\n")
				got = append(got, strings.Join(c.Path, "/")+"|"+lines[0]+"|"+lines[len(lines)-1])
			}
			for i := range min(len(got), len(c.want)) {
				require.True(t, strings.HasPrefix(got[i], c.want[i]), "chunk %d: %q, want %q", i, got[i], c.want[i])
			}
			require.Len(t, got, len(c.want))
		})
	}
}

func TestAnchor(t *testing.T) {
	long := words(60)
	page := long + "\n\n# T\n\n" + long + "\n\n## A\n\n" + long + "\n\n### A1\n\n" + long + "\n\n## B\n\n" + long + "\n\n## C\n\n" + long
	var got []string
	for _, c := range chunk.Split("p", page, []string{"t", "a", "", "b"}, chunk.Default) {
		got = append(got, strings.Join(c.Path, "/")+"#"+c.Anchor)
	}
	require.Equal(t, []string{"#", "T#t", "T/A#a", "T/A/A1#a", "T/B#b", "T/C#t"}, got)
}

// A chunk of a document of pages begins on the page that its anchor names, whatever its
// section is and whatever it was joined with.
func TestSplitPages(t *testing.T) {
	long := words(60)
	var page strings.Builder
	var starts []int
	for i, text := range []string{"# T\n\n" + long, "", "## A\n\nshort", "more\n\n" + strings.Repeat(long+"\n\n", 10), "## B\n\nshort:\n\n" + long} {
		if i > 0 {
			page.WriteString("\n\n")
		}
		starts = append(starts, page.Len())
		page.WriteString(strings.TrimSpace(text))
	}
	var got []string
	for _, c := range chunk.SplitPages("p", page.String(), starts, chunk.Default) {
		got = append(got, strings.Join(c.Path, "/")+"#"+c.Anchor)
	}
	require.Equal(t, []string{"T#page=1", "T/A#page=3", "T/A#page=4", "T/A#page=4", "T/B#page=5"}, got)
	require.Equal(t, "page=1", chunk.SplitPages("p", "before\n", []int{3}, chunk.Default)[0].Anchor, "what is before all is on the first page")
}

// TestSmall: a chunk under 50 tokens that would fit into one with a neighbour is
// merged with it.
func TestSmall(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "## Section %d\n\n%s\n\n", i, words(i*i%170+1))
	}
	chunks := chunk.Split("p", b.String(), nil, chunk.Default)
	for i, c := range chunks {
		require.LessOrEqual(t, c.Tokens, chunk.Default.Max)
		if i > 0 && min(c.Tokens, chunks[i-1].Tokens) < chunk.Default.Min && chunk.Tokens(chunks[i-1].Text+"\n\n"+c.Text) <= chunk.Default.Max {
			t.Errorf("chunks %d and %d of %d and %d tokens fit into one", i-1, i, chunks[i-1].Tokens, c.Tokens)
		}
	}
	require.GreaterOrEqual(t, len(chunks), 20)
}

func TestCode(t *testing.T) {
	var code []string
	for i := range 400 {
		code = append(code, fmt.Sprintf("    value_%d = compute(%d)  # line", i, i))
	}
	chunks := chunk.Split("p", "# T\n\n```python\n"+strings.Join(code, "\n")+"\n```\n\nafter", nil, chunk.Default)
	var lines []string
	for i, c := range chunks {
		require.LessOrEqual(t, c.Tokens, 500)
		if strings.Count(c.Text, "```") != 2 || strings.Count(c.Text, "```python\n") != 1 {
			t.Errorf("chunk %d is no code block by itself: %q", i, c.Text)
		}
		for l := range strings.SplitSeq(c.Text, "\n") {
			if strings.Contains(l, "value_") {
				lines = append(lines, l)
			}
		}
	}
	require.Equal(t, code, lines)
	// A line that alone is over the limit is cut, and nothing of it is lost.
	chunks = chunk.Split("p", "```\nshort\n"+strings.Repeat("x1 ", 2000)+"\nlast\n```", nil, chunk.Default)
	sum := 0
	for _, c := range chunks {
		require.LessOrEqual(t, c.Tokens, 500)
		sum += strings.Count(c.Text, "x1")
	}
	if sum != 2000 || !strings.Contains(chunks[0].Text, "short") || !strings.Contains(chunks[len(chunks)-1].Text, "last") {
		t.Errorf("%d of 2000 words in %d chunks", sum, len(chunks))
	}
}

func TestTable(t *testing.T) {
	page := "| Name | Type |\n| --- | --- |\n"
	for i := range 200 {
		page += fmt.Sprintf("| parameter_%d | string |\n", i)
	}
	chunks := chunk.Split("p", page, nil, chunk.Default)
	rows := 0
	for _, c := range chunks {
		rows += strings.Count(c.Text, "| parameter_")
		if c.Tokens > 500 || !strings.HasPrefix(c.Text, "| Name | Type |\n| --- | --- |\n") {
			t.Errorf("%d tokens: %.80q", c.Tokens, c.Text)
		}
	}
	require.Equal(t, 200, rows)
	require.GreaterOrEqual(t, len(chunks), 3)
}

func TestProse(t *testing.T) {
	sentence := "이 문장은 청크를 나누는 방법을 설명한다. The next sentence is in English, and it is longer. "
	chunks := chunk.Split("p", strings.Repeat(sentence, 60), nil, chunk.Default)
	var joined []string
	for i, c := range chunks {
		require.LessOrEqual(t, c.Tokens, 500)
		if i < len(chunks)-1 && !strings.HasSuffix(c.Text, ".") {
			t.Errorf("chunk %d ends inside a sentence: %q", i, c.Text[len(c.Text)-40:])
		}
		joined = append(joined, c.Text)
	}
	require.Equal(t, strings.Repeat(sentence, 60), strings.Join(joined, " ")+" ")
}

// TestLongWords has lines for which simpler code takes quadratic time.
func TestLongWords(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 1<<17), strings.Repeat("=", 1<<17), strings.Repeat("한", 1<<15), "```\n" + strings.Repeat("x", 1<<17) + "\n```"} {
		letters := 0
		for _, c := range chunk.Split("p", text, nil, chunk.Default) {
			require.LessOrEqual(t, c.Tokens, 500)
			letters += len(strings.NewReplacer("`", "", "\n", "").Replace(c.Text))
		}
		require.Equal(t, len(strings.Trim(text, "`\n")), letters)
	}
}

func TestID(t *testing.T) {
	a, b := words(60), words(80)
	first := chunk.Split("p", "# A\n\n"+a+"\n\n# B\n\n"+b, nil, chunk.Default)
	moved := chunk.Split("p", "# New\n\n"+words(70)+"\n\n# B\n\n"+b+"\n\n# A\n\n"+a+"\n\n# A\n\n"+a, nil, chunk.Default)
	require.Len(t, first, 2)
	require.Len(t, moved, 4)
	require.Equal(t, []string{first[0].ID, first[1].ID}, []string{moved[2].ID, moved[1].ID}, "the same text has the same id")
	require.NotEqual(t, moved[2].ID, moved[3].ID, "two equal texts of a page have two ids")
	require.Equal(t, moved[2].Hash, moved[3].Hash)
	require.NotEqual(t, first[0].ID, chunk.Split("q", "# A\n\n"+a, nil, chunk.Default)[0].ID, "texts of two pages have two ids")
}

func TestPreview(t *testing.T) {
	c := chunk.Chunk{Text: strings.Repeat("한", 501)}
	require.Equal(t, chunk.MaxPreview, utf8.RuneCountInString(c.Preview()))
	require.Equal(t, "short", (chunk.Chunk{Text: "short"}).Preview())
}

func TestEmpty(t *testing.T) {
	for _, text := range []string{"", "\n\n", "   \n"} {
		require.Empty(t, chunk.Split("p", text, nil, chunk.Default))
	}
}

func TestQuality(t *testing.T) {
	var q chunk.Quality
	require.Nil(t, q.Outside())
	q.Add([]chunk.Chunk{{Hash: "a", Tokens: 300, Text: "x"}, {Hash: "b", Tokens: 200, Text: "x"}})
	q.Add([]chunk.Chunk{{Hash: "c", Tokens: 250, Text: "x"}})
	require.Nil(t, q.Outside())
	q.Add([]chunk.Chunk{{Hash: "a", Tokens: 10, Text: "# Heading\n\n---"}})
	q.Add(nil)
	values := func() map[string]float64 {
		out := map[string]float64{}
		for _, f := range q.Outside() {
			out[f.Name] = f.Value
		}
		return out
	}
	require.Equal(t, map[string]float64{"average_tokens": 190, "empty_ratio": 0.25, "duplicate_ratio": 0.25}, values())
	q.Add(make([]chunk.Chunk, 96))
	require.Equal(t, map[string]float64{"average_tokens": 7.6, "empty_ratio": 0.97, "duplicate_ratio": 0.96}, values())
	q = chunk.Quality{}
	q.Add(make([]chunk.Chunk, 21))
	q.Add(make([]chunk.Chunk, 22))
	require.InDelta(t, 21.5, values()["chunks_per_page"], 0)
}

// A chunk with a few other words counts as a repetition, one that only begins alike or is
// about something else does not.
func TestNearDuplicates(t *testing.T) {
	sentence := func(about string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Word%d of %s says what number %d is about. ", i, about, i*7)
		}
		return b.String()
	}
	of := func(text string) chunk.Chunk {
		return chunk.Chunk{Text: text, Tokens: chunk.Tokens(text), Hash: text}
	}
	var q chunk.Quality
	q.Add([]chunk.Chunk{of(sentence("charges", 12))})
	require.Zero(t, q.Duplicate)
	q.Add([]chunk.Chunk{of(strings.Replace(sentence("charges", 12), "Word3", "Note", 1))})
	require.Equal(t, 1, q.Duplicate)
	q.Add([]chunk.Chunk{of(sentence("charges", 12))})
	require.Equal(t, 2, q.Duplicate)
	q.Add([]chunk.Chunk{of(sentence("charges", 12) + strings.Repeat("And more of it. ", 40)), of("Another text: " + words(80)), of("Few words.")})
	require.Equal(t, 2, q.Duplicate)
}

// The rows of a table in a list or a quote have its head too, wherever the table is cut.
func TestTableInList(t *testing.T) {
	for _, margin := range []string{"", "  ", "> "} {
		lines := []string{margin + "| Name | Meaning |", margin + "| --- | --- |"}
		for i := range 100 {
			lines = append(lines, fmt.Sprintf("%s| field_%d | some words about it |", margin, i))
		}
		chunks := chunk.Split("p", strings.Join(lines, "\n"), nil, chunk.Default)
		require.Greater(t, len(chunks), 2)
		for _, c := range chunks {
			require.True(t, strings.HasPrefix(c.Text, lines[0]+"\n"+lines[1]+"\n"), c.Text)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("# A\n\ntext\n\n```go\ncode\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |", 100)
	f.Add("> ```\n> x\n- ~~~~ y\n####### no\n#", 20)
	f.Add("text\n\n| a |\n| --- |"+strings.Repeat("\t", 527), 100) // the second half is empty
	f.Fuzz(func(t *testing.T, markdown string, limit int) {
		if limit < 20 || limit > 1000 || len(markdown) > 10_000 || !utf8.ValidString(markdown) {
			return
		}
		l := chunk.Limits{Max: limit, Min: limit / 10}
		got := chunk.Split("p", markdown, nil, l)
		var all strings.Builder
		for i, c := range got {
			if c.Tokens > limit || c.Tokens != chunk.Tokens(c.Text) || strings.TrimSpace(c.Text) == "" || !utf8.ValidString(c.Text) {
				t.Fatalf("chunk %d of %d tokens: %q", i, c.Tokens, c.Text)
			}
			all.WriteString(c.Text)
		}
		// Nothing is lost: all letters are there in order, with repeated heads between them.
		rest := all.String()
		for _, r := range markdown {
			if r <= ' ' || r == '\u0085' || r == '\u00a0' || r >= '\u1680' && r < '\u3001' {
				continue
			}
			at := strings.IndexRune(rest, r)
			require.GreaterOrEqual(t, at, 0, "%q lost from %q", r, markdown)
			rest = rest[at+utf8.RuneLen(r):]
		}
		chunk.Diff(chunk.Blocks(markdown), chunk.Blocks(all.String()))
	})
}
