//go:build e2e && nightly

package safety

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// Another project's crawler: its packages, and the program that runs it.
var others = []struct{ name, packages, script string }{
	{"Scrapy 2.19.0", "scrapy==2.19.0", "scrapy_driver.py"},
	{"Crawlee 1.11.0", "crawlee[beautifulsoup,httpx]==1.11.0", "crawlee_driver.py"},
	{"crawl4ai 0.9.5", "crawl4ai==0.9.5", "crawl4ai_driver.py"},
	{"colly 2.3.0", "", ""},
}

// TestOthers has no verdict: it prints rows of the table of docs/politeness.md.
func TestOthers(t *testing.T) {
	for _, o := range others {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			command := []string{filepath.Join(dir, "colly")}
			if o.script == "" {
				out, err := exec.Command("go", "build", "-C", "crawlers/colly", "-o", command[0], ".").CombinedOutput()
				require.NoError(t, err, string(out))
			} else {
				bin, err := rig.FromPyPI(filepath.Join(dir, "venv"), o.packages)
				require.NoError(t, err)
				command = []string{filepath.Join(bin, "python"), filepath.Join("crawlers", o.script)}
			}
			web := StartWeb(t, false)
			Row(t, o.name, Run(t, web, Script(t, web, dir, command), Kills...))
		})
	}
}
