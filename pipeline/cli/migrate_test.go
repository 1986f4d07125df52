package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The dry run prints what the migration would do with each file, and why.
func TestMigrationDryRun(t *testing.T) {
	dir := t.TempDir()
	const old, now = "b/research/datasets/country=sg/category=news/", "b/datasets/country=sg/category=news/date=2026-01-28/"
	for name, body := range map[string]string{
		old + "2026-01-28_0001.json": "new", old + "2026-01-28_0002.json": "same", old + "2026-01-28_0003.json": "one", old + "2026-01-28_0004.json": "longer",
		old + "2026-02-30_0001.json": "no day", old + "notes.txt": "nothing of ours",
		now + "raw_0002.json": "same", now + "raw_0003.json": "two", now + "raw_0004.json": "short",
	} {
		writeFile(t, filepath.Join(dir, name), body)
	}
	a := start(t, dir, "--job=migrate --store=b")
	require.Equal(t, exitOK, a.code, a.stderr)
	line := func(of string) string {
		for l := range strings.Lines(a.stdout) {
			if strings.Contains(l, of) {
				return strings.TrimSpace(l)
			}
		}
		return ""
	}
	for of, says := range map[string]string{
		"-28_0001.json": "raw_0001.json", "-28_0002.json": "is there already", "-28_0003.json": "the new key has other content", "-28_0004.json": "the new key has other content",
		"02-30_0001.json": "with a valid date", "would copy": "would copy 1 files", "conflict with": "1 are there already, 2 conflict with another file, 1 are misnamed",
	} {
		assert.Contains(t, line(of), says, of)
	}
	assert.True(t, !strings.Contains(a.stdout, "notes.txt") && !strings.Contains(line("-28_0001.json"), "already"), "%s", a.stdout)
}
