package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The first cell of a table that is no grid begins a line.
func TestFlatTableIsNoMark(t *testing.T) {
	require.Equal(t, "\\# | Name\n1\\. | a | b\n\\> | \\* | #", markdownOf(t,
		`<main><table><tr><th>#</th><th colspan="2">Name</th></tr><tr><td>1.</td><td>a</td><td>b</td></tr><tr><td>></td><td>*</td><td>#</td></tr></table></main>`))
}
