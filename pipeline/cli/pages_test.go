package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// follow does what a page of docs says, in a folder of its own: its files are written, its
// commands run, and their output has what the page shows.
func follow(t *testing.T, page string) (dir string, last answer, commands, shown int) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	require.NoError(t, err)
	dir = t.TempDir()
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		switch b[1] {
		case "yaml":
			name := strings.TrimPrefix(strings.SplitN(b[2], "\n", 2)[0], "# ")
			writeFile(t, filepath.Join(dir, name), b[2])
		case "sh":
			for line := range strings.Lines(b[2]) {
				environ, args, ok := strings.Cut(strings.TrimSpace(line), "go run ./cmd/pipeline ")
				require.True(t, ok, line)
				last = start(t, dir, args, func(c *exec.Cmd) { c.Env = append(c.Env, append(strings.Fields(environ), "SEED_LOG_LEVEL=error")...) })
				require.Equal(t, exitOK, last.code, "%s\n%s", line, last.stderr)
				commands++
			}
		case "text":
			for line := range strings.Lines(b[2]) {
				assert.Contains(t, last.stdout+last.stderr, strings.TrimSuffix(line, "\n"))
			}
			shown++
		}
	}
	return dir, last, commands, shown
}

func TestAddASite(t *testing.T) {
	_, last, commands, shown := follow(t, "add-a-site.md")
	assert.Equal(t, []int{7, 3}, []int{commands, shown})
	assert.Contains(t, last.stdout, "my-gadgets")
	assert.Contains(t, last.stdout, "price")
}

// The tutorial of each job. What its runs counted and failed with is explained in the
// reference pages.
func TestTutorial(t *testing.T) {
	dir, _, commands, shown := follow(t, "tutorial.md")
	assert.Equal(t, []int{19, 13}, []int{commands, shown})
	counters, err := os.ReadFile("../../docs/reference/counters.md")
	require.NoError(t, err)
	kinds, err := os.ReadFile("../../docs/reference/dead-letters.md")
	require.NoError(t, err)
	reports, err := filepath.Glob(filepath.Join(dir, "out", "runs", "*", "report.json"))
	require.NoError(t, err)
	require.Greater(t, len(reports), 7)
	for _, file := range reports {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		r := report(t, b)
		for name := range r.Counts {
			assert.Contains(t, string(counters), "- `"+name+"`", file)
		}
		for kind := range r.DeadLetters {
			assert.Contains(t, string(kinds), "- `"+kind+"`", file)
		}
	}
}
