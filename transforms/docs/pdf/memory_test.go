//go:build linux

package pdf

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// child names the file that a child process of TestMemory reads.
const child = "SEED_TEST_PDF"

// TestMemory reads each document in a process of its own, which prints its peak and the reason.
func TestMemory(t *testing.T) {
	if name := os.Getenv(child); name != "" {
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
		return
	}
	t.Parallel()
	dir := t.TempDir()
	peak := func(name string, body []byte) (bytes int, why string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, body, 0o600))
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory$")
		c.Env = append(os.Environ(), child+"="+file)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, line, _ := strings.Cut(string(out), "\npeak ")
		line, _, _ = strings.Cut(line, "\n")
		kb, why, _ := strings.Cut(line, " ")
		_, err = fmt.Sscan(kb, &bytes)
		require.NoError(t, err)
		return bytes << 10, why
	}
	base, why := peak("one", Document{Pages: Write(prose)}.Bytes())
	require.Equal(t, "<nil>", why)
	tree, err := os.ReadFile("testdata/form-tree.pdf")
	require.NoError(t, err)
	const tooMuch = "the PDF needs too much memory: over 256 MB"
	for name, tt := range map[string]struct {
		body []byte
		why  string
	}{
		"a tree of forms":  {tree, tooMuch},
		"a form in itself": {bytes.ReplaceAll(tree, []byte("/X 6 0 R"), []byte("/X 5 0 R")), tooMuch},
	} {
		got, why := peak(name, tt.body)
		t.Logf("%s: %d MB, one page %d MB", name, got>>20, base>>20)
		assert.LessOrEqual(t, got, base+memory, name)
		assert.Equal(t, tt.why, why, name)
	}
}
