package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ls and get show what a job found; after a removal neither the store nor the database has it any more.
func TestListGetAndRemove(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o700))
	at := " --store=" + filepath.Join(dir, "out")
	ok := func(line string) string {
		t.Helper()
		got := here(t, line+at)
		require.Equal(t, exitOK, got.code, got.stderr)
		return got.stdout
	}
	ok("catalog --web=demo --host-delay=0s --log-level=error --site=gadgets")
	var row struct {
		Key string `json:"product_key"`
	}
	lines := strings.Split(strings.TrimSpace(ok("ls products --json --limit=2")), "\n")
	require.Len(t, lines, 2)
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &row))
	assert.Regexp(t, `(?m)^SITE +KEY +STATE +CHANGED +URL$`, ok("ls products"))
	assert.Contains(t, ok("get products gadgets "+row.Key), `"product_key": "`+row.Key)
	for line, says := range map[string]string{
		"get products gadgets none": "nothing is stored under this key",
		"get products gadgets":      "write the whole of one, such as `get products gadgets G-0001`, `get products gadgets G-0002`",
		"get products none":         "get products none: nothing is stored under this key; search for it: `ls products` lists what is stored",
		"get products":              "write pipeline get products SITE [PRODUCT]",
		"export products --failed":  "--failed means nothing to products; use `errors ls`",
		"ls products --failed":      "means nothing to products",
		"ls products --provider=x":  "there is no such flag; see `help ls products`",
		"ls products --site=none":   "use gadgets",
		"rm site gadget":            "there is no such site; known are gadgets",
	} {
		got := here(t, line+at)
		assert.Equal(t, exitUsage, got.code, line)
		assert.Contains(t, got.stderr, says, line)
	}
	assert.Contains(t, ok("rm site gadgets --dry-run"), "gadgets: would remove ")
	assert.NotEmpty(t, ok("ls products"))
	assert.Contains(t, ok("rm site gadgets"), "gadgets: removed ")
	assert.Empty(t, ok("ls products"))
	assert.Regexp(t, `catalog +gadgets .* done `, ok("removals"))
	require.NoError(t, filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		for _, kept := range []string{"/runs/", "/removals/", "/demo"} {
			if err != nil || e.IsDir() || strings.Contains(name, kept) {
				return err
			}
		}
		b, err := os.ReadFile(name)
		assert.NotContains(t, strings.ToLower(string(b)), "gadgets", name)
		return err
	}))
}
