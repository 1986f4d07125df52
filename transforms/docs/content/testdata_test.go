package content_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func testdata(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return b
}

// testCase is a case of a file in testdata. Each begins with "===" and maybe a name; "=>" stands before what is wanted. Above the first
// case is what the file is about.
type testCase struct{ name, in, want string }

func readCases(t *testing.T, file string) (all []testCase) {
	t.Helper()
	for _, c := range strings.Split(strings.TrimSuffix(string(testdata(t, file)), "\n"), "\n===")[1:] {
		name, c, _ := strings.Cut(c, "\n")
		in, want, _ := strings.Cut(c, "\n=>\n")
		all = append(all, testCase{strings.TrimSpace(name), in, want})
	}
	require.NotEmpty(t, all)
	return all
}

// TestCases compares the Markdown of parts of pages.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		for i, c := range readCases(t, "cases/"+filepath.Base(file)) {
			t.Run(fmt.Sprint(filepath.Base(file), " ", i+1, " ", c.name), func(t *testing.T) { require.Equal(t, c.want, markdownOf(t, c.in)) })
		}
	}
}
