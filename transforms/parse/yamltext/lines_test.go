package yamltext_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Untrusted text is one comment, and a value that is read as it was written.
func TestLines(t *testing.T) {
	hostile := "a: [\n# <b>&\"\\ 'x' {y}: é \u2028 #"
	var l yamltext.Lines
	l.Say("%s", hostile)
	l.Say("%s", strings.Repeat("x", 2000))
	l.Put("list:\n  - %s", yamltext.Quote(hostile))
	got, err := yamltext.Document([]byte(l.String()))
	require.NoError(t, err)
	assert.Equal(t, yamltext.Mapping{{Key: "list", Value: []any{hostile}}}, got)
	lines := strings.Split(l.String(), "\n")
	assert.Equal(t, []string{`# a: [ # <b>&"\ 'x' {y}: é #`, "list:", ""}, []string{lines[0], lines[2], lines[4]})
	assert.Len(t, lines[1], 1002)
	assert.Contains(t, lines[3], "<b>&")
}

func TestName(t *testing.T) {
	for s, want := range map[string]string{"docs.a-b.example": "docs-a-b-example", " (item no.)": "item-no", "상품": "", "": ""} {
		assert.Equal(t, want, yamltext.Name(s, "-"), s)
	}
}
