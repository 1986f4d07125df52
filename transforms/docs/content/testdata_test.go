package content_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func testdata(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return b
}

// testCase is a row of a table in testdata.
type testCase struct{ Name, In, Want string }

// TestCases compares the Markdown of parts of pages.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		for i, c := range cases.Table[[]testCase](t, "cases/"+filepath.Base(file)) {
			t.Run(fmt.Sprint(filepath.Base(file), " ", i+1, " ", c.Name), func(t *testing.T) { require.Equal(t, c.Want, markdownOf(t, c.In)) })
		}
	}
}
