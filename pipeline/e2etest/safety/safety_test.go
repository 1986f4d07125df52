//go:build e2e

package safety

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

var all = flag.Bool("all", rig.Nightly, "all sites and all crawlers")

func TestOurs(t *testing.T) {
	if !*all {
		web := StartWeb(t, true)
		v := Run(t, web, Ours(t, web, ""), 25, 50)
		Row(t, "direct, few sites", v)
		Polite(t, v, 2)
		return
	}
	for name, args := range map[string][]string{"direct": {"--runner=direct"}, "prism": {"--runner=prism", "--lanes=4"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := StartWeb(t, false)
			v := Run(t, web, Ours(t, web, "", append(args, SharedServer)...), Kills...)
			Row(t, name, v)
			Polite(t, v, len(Kills))
		})
	}
}

// Another project's crawler: its packages, and the program that runs it.
var others = []struct{ name, packages, script string }{
	{"Scrapy 2.19.0", "scrapy==2.19.0", "scrapy_driver.py"},
	{"Crawlee 1.11.0", "crawlee[beautifulsoup,httpx]==1.11.0", "crawlee_driver.py"},
	{"crawl4ai 0.9.5", "crawl4ai==0.9.5", "crawl4ai_driver.py"},
	{"colly 2.3.0", "", ""},
}

// TestOthers has no verdict: it prints rows of the table of docs/politeness.md.
func TestOthers(t *testing.T) {
	if !*all {
		t.Skip("only with -all: it needs PyPI and ten minutes")
	}
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
