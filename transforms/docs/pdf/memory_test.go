//go:build linux

package pdf

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// children names the files that a child process of TestMemory reads, with line breaks between them.
const children = "SEED_TEST_PDF"

// TestMemory reads documents in a process of its own, which prints its peak and the reason after each. What one document needed
// must not add to the next one's.
func TestMemory(t *testing.T) {
	if names := os.Getenv(children); names != "" {
		for name := range strings.SplitSeq(names, "\n") {
			body, err := os.ReadFile(name)
			require.NoError(t, err)
			_, err = Read(context.Background(), body)
			status, rerr := os.ReadFile("/proc/self/status")
			require.NoError(t, rerr)
			_, after, _ := strings.Cut(string(status), "VmHWM:")
			var kb int
			_, serr := fmt.Sscan(after, &kb)
			require.NoError(t, serr)
			fmt.Printf("\npeak %d %v\n", kb, err)
		}
		return
	}
	t.Parallel()
	tree, err := os.ReadFile("testdata/form-tree.pdf")
	require.NoError(t, err)
	const tooMuch = "the PDF needs too much memory: over 256 MB"
	dir, base := t.TempDir(), 0
	documents := []struct {
		name string
		body []byte
		why  string
	}{
		{"one page", Document{Pages: Write(prose)}.Bytes(), "<nil>"},
		{"a tree of forms", tree, tooMuch},
		{"a form in itself", bytes.ReplaceAll(tree, []byte("/X 6 0 R"), []byte("/X 5 0 R")), tooMuch},
	}
	var files []string
	for _, d := range documents {
		files = append(files, filepath.Join(dir, d.name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, d.name), d.body, 0o600))
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory$")
	c.Env = append(os.Environ(), children+"="+strings.Join(files, "\n"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(string(out), "\npeak ")[1:]
	require.Len(t, lines, len(documents), "%s", out)
	for i, d := range documents {
		line, _, _ := strings.Cut(lines[i], "\n")
		text, why, _ := strings.Cut(line, " ")
		kb, err := strconv.Atoi(text)
		require.NoError(t, err)
		if i == 0 {
			base = kb << 10
		}
		t.Logf("%s: %d MB", d.name, kb>>10)
		assert.LessOrEqual(t, kb<<10, base+memory, d.name)
		assert.Equal(t, d.why, why, d.name)
	}
}
