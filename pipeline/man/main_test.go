package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/cli"
)

// Each command that a person may use has a page with its flags.
func TestPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	dir := t.TempDir()
	require.NoError(t, write([]string{dir}))
	pages := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		b, err := os.ReadFile(filepath.Join(dir, name+".1"))
		require.NoError(t, err)
		assert.Contains(t, string(b), `"Jan 2027"`, name)
		assert.Contains(t, string(b), ".SH SYNOPSIS", name)
		pages++
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(cli.Program{Serve: noServer}.Root())
	assert.Greater(t, pages, 50)
	seed, err := os.ReadFile(filepath.Join(dir, "pipeline-seed.1"))
	require.NoError(t, err)
	assert.Contains(t, string(seed), `\fB--country\fP=""`)
	assert.NotContains(t, string(seed), "parallel-fetch")
	catalog, err := os.ReadFile(filepath.Join(dir, "pipeline-catalog.1"))
	require.NoError(t, err)
	assert.Contains(t, string(catalog), `\fB--host-delay\fP=1s`, "the job's own default")
	_, err = os.Stat(filepath.Join(dir, "pipeline-run.1"))
	assert.ErrorIs(t, err, os.ErrNotExist, "the form of older scripts")
	assert.Error(t, write(nil))
}
