//go:build e2e && nightly

package e2etest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// TestIntegrations runs the Python of docs/integrations.md with the tools that it is for.
func TestIntegrations(t *testing.T) {
	page, err := os.ReadFile("../../docs/integrations.md")
	require.NoError(t, err)
	blocks := map[string][]byte{}
	for _, m := range regexp.MustCompile("(?ms)^```python\n# (\\w+).*?\n(.*?)^```").FindAllSubmatch(page, -1) {
		blocks[string(m[1])] = m[2]
	}
	python := func(t *testing.T, tool string, packages ...string) (dir, bin string) {
		t.Helper()
		require.Contains(t, blocks, tool)
		bin, err := rig.FromPyPI(t.TempDir(), packages...)
		if err != nil {
			rig.Missing(t, err)
		}
		dir = t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, tool+"_page.py"), blocks[tool], 0o600))
		return dir, bin
	}
	runs := func(t *testing.T, dir, store, program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PIPELINE="+rig.Program, "STORE="+store, "EXTRA=--web=demo", "DAGSTER_HOME="+dir,
			"AIRFLOW_HOME="+dir, "AIRFLOW__CORE__DAGS_FOLDER="+dir, "AIRFLOW__CORE__LOAD_EXAMPLES=False")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	store := t.TempDir()
	require.NoError(t, os.CopyFS(store, os.DirFS("../../testdata/bucket")))
	t.Run("dagster", func(t *testing.T) {
		dir, bin := python(t, "dagster", "dagster==1.13.29")
		runs(t, dir, store, filepath.Join(bin, "dagster"), "asset", "materialize", "-f", "dagster_page.py", "--select", "*")
		assert.Positive(t, rig.LastReport(t, store).Counts["domains_collected"])
	})
	t.Run("airflow", func(t *testing.T) {
		dir, bin := python(t, "airflow", "apache-airflow==3.1.8")
		runs(t, dir, store, filepath.Join(bin, "airflow"), "db", "migrate")
		runs(t, dir, store, filepath.Join(bin, "airflow"), "dags", "test", "seed_nightly")
		assert.EqualValues(t, "done", rig.LastReport(t, store).State)
	})
	t.Run("tables", func(t *testing.T) {
		dir, bin := python(t, "tables", "duckdb", "pandas", "polars", "pyarrow")
		runs(t, dir, store, rig.Program, "export", "domains", "domains.parquet", "--store="+store)
		assert.Contains(t, runs(t, dir, store, filepath.Join(bin, "python"), "tables_page.py"), "('sg', ")
	})
}
