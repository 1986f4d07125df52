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

// The page about adding a site: its files are written, its commands run, and their
// output has what the page shows.
func TestAddASite(t *testing.T) {
	page, err := os.ReadFile("../../docs/add-a-site.md")
	require.NoError(t, err)
	dir := t.TempDir()
	var last answer
	commands, shown := 0, 0
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		switch b[1] {
		case "yaml":
			name := strings.TrimPrefix(strings.SplitN(b[2], "\n", 2)[0], "# ")
			writeFile(t, filepath.Join(dir, name), b[2])
		case "sh":
			for line := range strings.Lines(b[2]) {
				args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/pipeline ")
				require.True(t, ok, line)
				last = start(t, dir, args, func(c *exec.Cmd) { c.Env = append(c.Env, "SEED_LOG_LEVEL=error") })
				require.Equal(t, ExitOK, last.code, "%s\n%s", line, last.stderr)
				commands++
			}
		case "text":
			for line := range strings.Lines(b[2]) {
				assert.Contains(t, last.stdout, line)
			}
			shown++
		}
	}
	assert.Equal(t, []int{7, 3}, []int{commands, shown})
	assert.Contains(t, last.stdout, "my-gadgets")
	assert.Contains(t, last.stdout, "price")
}
