package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// domains says which domains did not answer and why, in both layouts, and which have an
// index of sitemaps.
func TestDomains(t *testing.T) {
	emptyEnv(t)
	for _, layout := range []string{"objects", "table"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"),
			fmt.Sprintf(`{"meta":{"country":"sg","category":"news","record_count":3},"records":[{"raw_url":%q},{"raw_url":%q},{"raw_url":%q}]}`,
				"https://kind-urlset-1.com/a", "https://kind-index-2.com/", "https://kind-no-such-host-3.org/"))
		got := here(t, "--web=demo --host-delay=0s --log-level=error --store="+dir+" --layout="+layout)
		require.Equal(t, exitOK, got.code, got.stderr)

		for args, want := range map[string][]string{
			"":                            {"kind-index-2.com", "kind-no-such-host-3.org", "kind-urlset-1.com"},
			"--failed":                    {"kind-no-such-host-3.org"},
			"--failed --run=last":         {"kind-no-such-host-3.org"},
			"--index":                     {"kind-index-2.com"},
			"--failed --since=2099-01-01": nil,
			"--failed --date=2026-01-28":  {"kind-no-such-host-3.org"},
		} {
			got := here(t, "ls domains --json --store="+dir+" "+args)
			require.Equal(t, exitOK, got.code, got.stderr)
			var names []string
			for line := range strings.Lines(got.stdout) {
				var row struct {
					Name string `json:"registrable_domain"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				names = append(names, row.Name)
			}
			assert.ElementsMatch(t, want, names, "%s %s", layout, args)
			assert.Equal(t, want == nil, strings.Contains(got.stderr, "nothing matches"), args)
		}
		got = here(t, "ls domains --failed --country=us --store="+dir)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, "the store has country/category/date sg/news/2026-01-28")
		got = here(t, "ls domains --failed --store="+dir)
		table := strings.Split(got.stdout, "\n")
		require.Len(t, table, 3, got.stdout)
		assert.Equal(t, []string{"DOMAIN", "COUNTRY", "CATEGORY", "DATE", "AT", "STATE", "REASON", "MESSAGE"}, strings.Fields(table[0]))
		cells := strings.Fields(table[1])
		assert.Equal(t, []string{"kind-no-such-host-3.org", "sg", "news", "2026-01-28", "unreachable", "dns", "no", "such", "host", "(NXDOMAIN)"}, append(cells[:4], cells[5:]...))
	}
}

// What domains refuses says what to write in place of it.
func TestDomainsRefused(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	for args, want := range map[string]string{
		"failed":              "write pipeline ls domains",
		"--index --failed":    "leave --failed out",
		"--run=../x":          "is no run's id; `runs` lists them",
		"--run=none":          "there is no run none in this store",
		"--run=last":          "there is no run of the seed job in this store",
		"--country=Singapore": "two lower-case letters",
	} {
		got := here(t, "ls domains --store="+dir+" "+args)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Contains(t, got.stderr, want, args)
	}
}
