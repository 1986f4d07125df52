//go:build e2e

package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/server"
)

// deployBlocks are docs/deploy.md's fenced blocks of one language.
func deployBlocks(t *testing.T, language string) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../../docs/deploy.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	require.NotEmpty(t, out, language)
	return out
}

// TestUnit lets systemd read the unit of docs/deploy.md.
func TestUnit(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	text := strings.ReplaceAll(deployBlocks(t, "ini")[0], "/opt/seed-engine/server", program)
	unit := filepath.Join(t.TempDir(), "seed-engine.service")
	require.NoError(t, os.WriteFile(unit, []byte(text), 0o644))
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "seed-engine.service", "it has something to say")
}

// TestDeployedConfig starts no server but reads each configuration that
// docs/deploy.md and docs/server.md show.
func TestDeployedConfig(t *testing.T) {
	b, err := os.ReadFile("../../../docs/server.md")
	require.NoError(t, err)
	blocks := deployBlocks(t, "yaml")
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(b), -1) {
		blocks = append(blocks, m[1])
	}
	require.GreaterOrEqual(t, len(blocks), 2)
	for _, text := range blocks {
		_, err := server.ParseConfig([]byte(text), pipeline.Descriptions())
		assert.NoError(t, err, text)
	}
}
