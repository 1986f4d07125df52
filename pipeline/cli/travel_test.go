package cli

import (
	"encoding"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/catalog/sites"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// workerConfig returns all that the workers of a job learn of the options: they
// see none of the launcher's flags, files or environment.
func workerConfig(o Options) any { return o.Target().Config(o.RunOptions, o.LaneConfig(), "") }

// own are the flags that only the launcher needs, each with the reason.
var own = map[string]string{
	"job": "chooses the graph", "runner": "is where the graph goes", "env": "is filled into --store and --db", "config": "is read into the others",
	"until": "runs no graph", "dry-run": "runs no graph", "explain": "runs no graph", "diff": "runs no graph", "history": "runs no graph", "purge-provider": "runs no graph",
	"estimate": "runs no graph", "sample-gate": "refuses a run before its graph", "prices": "are for the launcher's report",
	"enable-provider": "runs no graph", "purge-expired": "runs no graph",
	"report": "is written by the launcher", "progress": "is shown by the launcher", "strict": "is about the exit code", "events": "are sent by the launcher",
	"watch": "is the launcher's loop, or the graph's own interval", "streaming": "chooses the graph", "from": "is the source of the unbounded graph", "shared-filesystem": "lets --store be a directory",
	"web": "the simulated web lives in the launcher", "demo-edition": "of the simulated web", "demo-changes": "of the simulated web",
	"url": "is one page, which the launcher makes a policy or a publisher of", "try": "runs no graph", "depth": "of --url", "tos-allowed": "of --url", "markdown": "is written by the launcher", "links": "of --markdown",
	"site": "chooses among the files that the launcher reads",
}

// Every flag is either the launcher's own, and then no worker sees its value, or
// it changes the configuration of the workers of its jobs.
func TestOptionsTravel(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	copyOne := func(name string, files interface{ ReadFile(string) ([]byte, error) }, file string) string {
		b, err := files.ReadFile(file)
		require.NoError(t, err)
		writeFile(t, filepath.Join(dir, name, file), string(b))
		return filepath.Join(dir, name)
	}
	first := func(entries []os.DirEntry, err error) string {
		require.NoError(t, err)
		i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".yaml") })
		return entries[i].Name()
	}
	writeFile(t, filepath.Join(dir, "news.yaml"), "delaySeconds: 9\n")
	writeFile(t, filepath.Join(dir, "hosts.yaml"), "hosts: {'*': {hours: '22:00-06:00 UTC'}}\n")
	writeFile(t, filepath.Join(dir, "pictured", "shop.yaml"), `{name: shop, list: {url: "https://shop.example/", product_link: {selector: a}}, key: id, fields: {id: {selector: b}, picture: {selector: img, type: image}}}`)
	values := map[string]string{
		"store": "gs://other", "raw-prefix": "raw/", "results-prefix": "out/", "db": "postgres://me@other/seed", "country": "sg", "category": "news", "date": "2026-01-28", "lanes": "2", "concurrency": "3",
		"rate": "2", "host-delay": "7s", "max-crawl-delay": "9s", "adaptive-delay": "9", "server-delay": "9s", "cdn-rate": "9", "turns": "/on/each/machine", "politeness": filepath.Join(dir, "hosts.yaml"), "connect-to": "127.0.0.1:1", "allow-private": "true", "log-format": "text", "log-level": "error",
		"hosts": "strict", "follow-index": "true", "max-child-sitemaps": "7", "feeds": "true", "homepage": "true", "parallel-fetch": "true", "robots-cache": "24h", "layout": "table", "segment-age": "9s",
		"sample": "7%", "outage-threshold": "0.5", "lease-ttl": "9s", "delete-verified": "true", "force": "true",
		"alerts": "success_rate=0.85", "policies": copyOne("policies", policies.Files, first(policies.Files.ReadDir("."))), "fallback": "true", "allow-unsandboxed-browser": "true", "limit": "9", "handoff-retention": "9h", "handoff-again": "true",
		"sites": filepath.Join(copyOne("sites", sites.Files, "demo/"+first(sites.Files.ReadDir("demo"))), "demo"), "bot": "{name: Acme/1.0, sign: always, page: https://other.example/bot}", "contact": "me@other.example", "list-fetchers": "9", "list-parsers": "9",
		"detail-fetchers": "9", "detail-parsers": "9", "savers": "9", "stop-after-known": "9", "details": "new", "tag-url": "http://localhost:1/v1", "tag-model": "m", "images": "true",
		"news-config": filepath.Join(dir, "news.yaml"), "publishers": copyOne("publishers", publishers.Files, first(publishers.Files.ReadDir("."))), "keep-html": "true", "reparse": "true", "due": "true",
		"provider": "toss-payments", "purpose": "ai-train", "publisher": "mk",
	}
	for _, j := range pipeline.All() {
		base := strings.Fields(onDataflow + "--job=" + j.Name)
		if j.SQL {
			base = append(base, "--db=postgres://seed@db.example/seed")
		}
		if j.Name == catalog.Job {
			base = append(base, "--contact=https://example.org/", "--sites="+filepath.Join(dir, "pictured"))
		}
		encoded := func(args ...string) (options Options, text string) {
			t.Helper()
			resetBeam(t)
			o, err := parseOptions(append(slices.Clone(base), args...), io.Discard)
			require.NoError(t, err)
			b, err := json.Marshal(workerConfig(o))
			require.NoError(t, err)
			return o, string(b)
		}
		o, plain := encoded()
		t.Run(j.Name, func(t *testing.T) { wholly(t, reflect.TypeOf(workerConfig(o)), j.Name, map[reflect.Type]bool{}) })
		newFlags(new(Options)).VisitAll(func(f *pflag.Flag) {
			t.Run(j.Name+" "+f.Name, func(t *testing.T) {
				switch why, launcher := own[f.Name]; {
				case !o.Flags.Get(f.Name).Means(j.Name):
					return
				case launcher:
					require.NotContains(t, values, f.Name, why)
					return
				case f.Name == "force" && j.Name == seed.Job:
					return // by the id of the forced run
				}
				require.Contains(t, values, f.Name, "a new flag: say in this test what the workers see of it")
				_, text := encoded("--" + f.Name + "=" + values[f.Name])
				require.NotEqual(t, plain, text)
				require.NotContains(t, text, dir, "a path of the launcher's machine says nothing to a worker")
			})
		})
	}
}

// No worker is sent a database's password, even when the launcher's SEED_DB has one.
func TestPasswordsStayAtHome(t *testing.T) {
	emptyEnv(t)
	t.Setenv("SEED_DB", "postgres://seed:dbPassw0rd@db.example/seed")
	for _, j := range pipeline.All() {
		if !j.SQL {
			continue
		}
		resetBeam(t)
		args := strings.Fields(onDataflow + "--job=" + j.Name)
		if j.Name == catalog.Job {
			args = append(args, "--contact=https://example.org/")
		}
		o, err := parseOptions(args, io.Discard)
		require.NoError(t, err)
		b, err := json.Marshal(workerConfig(o))
		require.NoError(t, err)
		require.Contains(t, string(b), "postgres://seed@db.example/seed")
		require.NotContains(t, string(b), "dbPassw0rd")
	}
}

// wholly checks that JSON, which carries DoFns to the workers, keeps every field of a type.
func wholly(t *testing.T, typ reflect.Type, at string, seen map[reflect.Type]bool) {
	t.Helper()
	if seen[typ] || typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		wholly(t, typ.Elem(), at, seen)
	case reflect.Struct:
		for f := range typ.Fields() {
			require.True(t, f.IsExported(), "%s.%s stays behind", at, f.Name)
			require.NotEqual(t, "-", f.Tag.Get("json"), "%s.%s stays behind", at, f.Name)
			wholly(t, f.Type, at+"."+f.Name, seen)
		}
	case reflect.Func, reflect.Chan, reflect.Interface:
		t.Errorf("%s is a %s, which cannot travel", at, typ.Kind())
	}
}
