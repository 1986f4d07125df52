//go:build e2e

// The end-to-end tests run the real program as a child process against a
// simulated web in this process. So they can kill it, see its exit code, and read
// its requests from the web's log.
package e2etest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

func TestMain(m *testing.M) {
	if os.Getenv(memoryFrom) != "" { // a child that runs the job in its own process
		os.Exit(m.Run())
	}
	os.Exit(rig.Main(m))
}

// args returns the arguments of a run, on the direct runner unless more names another.
func args(w rig.Web, storeURL string, more ...string) []string {
	return w.Args(storeURL, append([]string{"--runner=direct"}, more...)...)
}

func start(t testing.TB, w rig.Web, storeURL string, more ...string) *rig.Child {
	t.Helper()
	return w.Start(t, storeURL, append([]string{"--runner=direct"}, more...)...)
}

// startChild starts a command that trusts the CA in a file.
func startChild(t testing.TB, cmd *exec.Cmd, ca string) *rig.Child {
	t.Helper()
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca)
	return rig.Start(t, cmd)
}

// run runs the program to its end, and fails unless the exit code is 0.
func run(t testing.TB, w rig.Web, storeURL string, more ...string) *rig.Child {
	t.Helper()
	return w.Run(t, storeURL, append([]string{"--runner=direct"}, more...)...)
}

// bucket is a generated input.
type bucket struct {
	files   map[string]string
	domains map[string][]string // registrable domain → its marks in all partitions that name it
	inFile  map[string][]string // raw file → marks of its domains
}

// steadyKinds are kinds of hosts that always give the same response, and that
// never make the client wait for a time-out.
var steadyKinds = []string{"urlset", "index", "sitemap-gz", "rss", "atom", "text", "namespaced", "utf16", "wrong-type", "no-sitemap-line",
	"no-sitemap", "soft404", "euckr", "gzip", "br", "zstd", "no-robots", "robots-403", "robots-500", "robots-with-foreign-sitemap",
	"robots-bad-sitemap-lines", "disallow-all", "redirect-www", "redirect-http", "redirect-short", "redirect-loop", "redirect-private",
	"tls-refused", "tls-wrong-name"}

// generate makes a bucket. Each domain is in one to four of its files and
// partitions, some of them twice in one file. There are also a bad record, a
// truncated file, and a domain under two authorities.
func generate(domains int, kinds []string) bucket {
	b := bucket{files: map[string]string{}, domains: map[string][]string{}, inFile: map[string][]string{}}
	paths := []string{
		"country=sg/category=news/date=2026-01-28/raw_0001.json", "country=sg/category=news/date=2026-01-28/raw_0002.json",
		"country=sg/category=policy/date=2026-01-28/raw_0001.json", "country=kr/category=news/date=2026-01-29/raw_0001.json",
		"country=kr/category=news/date=2026-01-29/raw_0002.json", "country=de/category=education/date=2026-01-30/raw_0001.json",
		"country=gb/category=news/date=2026-01-30/raw_0001.json",
	}
	records := make([][]string, len(paths))
	ask := func(file int, domain, record string) {
		records[file] = append(records[file], record)
		key := "datasets/" + paths[file]
		raw, _ := hive.ParseRaw(key)
		mark := raw.Partition.DomainDir(domain) + "/domain_metadata.json.success"
		if !slices.Contains(b.domains[domain], mark) {
			b.domains[domain] = append(b.domains[domain], mark)
		}
		if !slices.Contains(b.inFile[key], mark) {
			b.inFile[key] = append(b.inFile[key], mark)
		}
	}
	for i := range domains {
		domain := fmt.Sprintf("%s-%d.com", kinds[i%len(kinds)], i+1)
		for n := range 1 + i%4 {
			file := (i*3 + n*5) % len(paths)
			ask(file, domain, fmt.Sprintf(`{"raw_url":"https://%s/about/%d"}`, domain, n))
			if i%5 == 0 {
				ask(file, domain, fmt.Sprintf(`{"raw_url":"http://www.%s/again"}`, domain))
			}
			if i%7 == 0 {
				cc := strings.TrimPrefix(paths[file][:10], "country=")
				ask(file, domain, fmt.Sprintf(`{"raw_url":"https://%s/","normalized_domain":"%[1]s","domain_id":"org:%s:%[1]s"}`, domain, cc))
			}
		}
	}
	records[2] = append(records[2], `{"raw_url":"https://10.0.0.1/"}`)
	for i, p := range paths {
		b.files["datasets/"+p] = `{"meta":{},"records":[` + strings.Join(records[i], ",\n") + `]}`
	}
	b.files["datasets/country=gb/category=policy/date=2026-01-30/raw_0001.json"] = `{"records":[{"raw_url":"https://urlset-9999.com/"},{"raw_`
	b.files["datasets/country=gb/category=policy/date=2026-01-30/raw_metadata.json"] = `{}`
	return b
}

// marks returns the valid completion marks in a store: all of them, or those of
// the forced run that has not ended yet.
func marks(t testing.TB, url string, forced bool) map[string]bool {
	t.Helper()
	s := rig.Open(t, url)
	var id string
	if forced {
		for o, err := range s.List(t.Context(), "force/seed/") {
			require.NoError(t, err)
			var f struct{ ID string }
			require.NoError(t, json.Unmarshal(rig.Get(t, s, o.Key), &f))
			id = f.ID
		}
		if id == "" {
			return nil // there is no forced run, or it is complete: the next one starts from the beginning
		}
	}
	out := map[string]bool{}
	for _, root := range []string{"datasets/", "processing/"} {
		for o, err := range s.List(t.Context(), root) {
			require.NoError(t, err)
			if !strings.HasSuffix(o.Key, hive.Success) {
				continue
			}
			if forced {
				h, err := s.Head(t.Context(), o.Key)
				require.NoError(t, err)
				if h.Metadata["forced-by"] != id {
					continue
				}
			}
			out[o.Key] = true
		}
	}
	tables, err := domaintable.Tables(t.Context(), s)
	require.NoError(t, err)
	for _, from := range tables {
		parts, err := from.Parts(t.Context())
		require.NoError(t, err)
		for _, p := range parts {
			if forced && p.ForcedBy != id {
				continue
			}
			done, err := p.ReadNames(t.Context(), s)
			require.NoError(t, err)
			for _, d := range done {
				for _, name := range d.Names {
					out[d.DomainDir(name)+"/domain_metadata.json.success"] = true
				}
			}
		}
	}
	return out
}
