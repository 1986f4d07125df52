//go:build e2e

package e2etest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// notRun marks a block of commands that this test does not run, with the reason.
const notRun = "<!-- not run by the tests: "

// readmeBlock is one ```sh block of the README.
type readmeBlock struct {
	line   int
	script string
	notRun string
}

func readmeBlocks(text string) []readmeBlock {
	var (
		out    []readmeBlock
		reason string
		open   *readmeBlock
	)
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open != nil && line == "```":
			out = append(out, *open)
			open, reason = nil, ""
		case open != nil:
			open.script += line + "\n"
		case line == "```sh":
			open = &readmeBlock{line: i + 1, notRun: reason}
		case strings.HasPrefix(line, notRun):
			reason = strings.TrimSuffix(strings.TrimPrefix(line, notRun), " -->")
		case line != "":
			reason = ""
		}
	}
	return out
}

// TestReadmeCommands runs the README's commands unchanged, one block after
// another, in a copy of the module, as a new user does on the first day.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	root := copyModule(t)
	ran := 0
	for _, b := range readmeBlocks(string(raw)) {
		if b.notRun != "" {
			t.Logf("README.md:%d left out: %s", b.line, b.notRun)
			continue
		}
		ran++
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.script)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("README.md:%d: %v\n%s\n%s", b.line, err, b.script, rig.Tail(string(out)))
		}
	}
	assert.True(t, ran >= 4, "ran %d blocks of README.md, want 4 or more: are they still marked ```sh?", ran)
	marks, err := filepath.Glob(filepath.Join(root, "out", "processing", "*", "*", "*", "*", "domain_metadata.json.success"))
	require.NoError(t, err)
	if len(marks) != 246 { // testdata/README.md, Expected numbers
		t.Errorf("the commands left %d finished domains in out/processing, want 246", len(marks))
	}
}

// copyModule copies the files that a clone would have, so that commands can write there.
func copyModule(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("../..", p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == ".git" || rel == "out" || rel == "bin" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, info.Mode().Perm())
	})
	require.NoError(t, err)
	return to
}
