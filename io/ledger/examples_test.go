package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A few examples of each kind stay, whatever the order in which tallies are added.
func TestExamples(t *testing.T) {
	parts := []Examples{{"dns": {"d", "b"}}, {"dns": {"a", "b", "e"}, "404": {"x"}}, nil, {"dns": {"c"}}}
	sum := func(order ...int) Tally {
		var t Tally
		for _, i := range order {
			t.Add(Tally{HTTP: HTTP{Examples: parts[i]}})
		}
		return t
	}
	want := Examples{"dns": {"a", "b", "c"}, "404": {"x"}}
	assert.Equal(t, want, sum(0, 1, 2, 3).HTTP.Examples)
	assert.Equal(t, want, sum(3, 2, 1, 0).HTTP.Examples)
	var halves Tally
	halves.Add(sum(0, 1))
	halves.Add(sum(2, 3))
	assert.Equal(t, want, halves.HTTP.Examples)
	assert.Equal(t, []string{"d", "b"}, parts[0]["dns"], "what is added stays as it is")

	part := sum(0, 1, 2, 3).Minus(sum(0))
	assert.Equal(t, Examples{"dns": {"a", "c"}, "404": {"x"}}, part.HTTP.Examples)
	part.Add(sum(0))
	assert.Equal(t, want, part.HTTP.Examples)
	assert.Nil(t, sum(1).Minus(sum(1)).HTTP.Examples)

	assert.Equal(t, "https://a.sg/?token=REDACTED", ExampleText("https://a.sg/?token=swordfish"))
	assert.LessOrEqual(t, len(ExampleText("https://a.sg/"+strings.Repeat("é", 500))), maxExampleSize)
	assert.NotContains(t, ExampleText("https://a.sg/\x1b[31m"), "\x1b")
}
