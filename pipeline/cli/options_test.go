package cli

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/seed"
)

// resetBeam restores Beam's own flags, which are global to the process, when the
// test ends.
func resetBeam(t *testing.T) {
	t.Helper()
	type kept struct {
		f *flag.Flag
		v string
	}
	var all []kept
	flag.CommandLine.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			all = append(all, kept{f, f.Value.String()})
		}
	})
	t.Cleanup(func() {
		for _, k := range all {
			if k.f.Value.String() != k.v {
				assert.NoError(t, k.f.Value.Set(k.v), "restoring --%s", k.f.Name)
			}
		}
	})
}

// emptyEnv removes the options from the environment of the test.
func emptyEnv(t *testing.T) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SEED_") {
			t.Setenv(name, "")
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func TestPrecedence(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	writeFile(t, "c.yaml", strings.Join([]string{
		"country: no", "category: 007", "date: 2026-01-28", // YAML 1.1 would make no a boolean, 007 a number, the date a time
		"force: true", "feeds: true", "homepage: false", "host-delay: 1s", "rate: 0.5", "lanes: 3", "store: mem://file", "parallelism: 4", "web: 'live'",
	}, "\n"))
	t.Setenv("SEED_LANES", "5")
	t.Setenv("SEED_FEEDS", "false")
	t.Setenv("SEED_HOST_DELAY", "2s")
	t.Setenv("SEED_ROBOTS_CACHE", "24h")
	t.Setenv("SEED_CONCURRENCY", "") // says nothing
	o, err := parseOptions([]string{"--config=c.yaml", "--host-delay=3s", "--force=false"}, io.Discard)
	require.NoError(t, err)
	type values struct {
		Country, Category, Date, Store string
		Force, Feeds, Homepage         bool
		HostDelay, RobotsCache         time.Duration
		Rate                           float64
		Lanes, Concurrency             int
		Parallelism                    string
	}
	collect := workerConfig(o).(seed.Config).Collect
	got := values{o.Country, o.Category, o.Date, o.Store, o.Force, collect.Feeds, collect.Homepage, o.HostDelay, collect.RobotsCache, o.Rate, o.Lanes, o.Concurrency, o.Flags.Lookup("parallelism").Value.String()}
	want := values{"no", "007", "2026-01-28", "mem://file", false, false, false, 3 * time.Second, 24 * time.Hour, 0.5, 5, 64, "4"}
	assert.Equal(t, want, got)

	t.Setenv("SEED_CONFIG", "c.yaml") // the file itself can be named so
	o, err = parseOptions(nil, io.Discard)
	assert.True(t, err == nil && o.Country == "no" && o.Lanes == 5, "by SEED_CONFIG: country %q, lanes %d, %v", o.Country, o.Lanes, err)
}

func TestDefaults(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	f := func(args string, want func(o Options) bool) {
		t.Helper()
		o, err := parseOptions(strings.Fields(args), io.Discard)
		assert.True(t, err == nil && want(o), "%s: %+v, %v", args, o, err)
	}
	f("", func(o Options) bool {
		return o.Job == "seed" && o.Runner == "direct" && o.Store == "out" && o.Sample && o.Lanes == 1 && o.Concurrency == 64 &&
			o.HostDelay == 200*time.Millisecond && o.MaxCrawlDelay == 30*time.Second && o.LogFormat == "json" && o.LogLevel == "info" && o.WebConfig("").UserAgent == "Newsfork-SeedEngine/1.0"
	})
	f("--watch=1m --store=b", func(o Options) bool { return o.Runner == "direct" })
	f("--watch=1m --streaming --store=b", func(o Options) bool { return o.Runner == "prism" })
	f("--watch=1m --streaming --runner=flink --endpoint=localhost:8099 --environment_type=EXTERNAL --store=s3://b", func(o Options) bool { return o.Runner == "flink" })
	f("--env=staging --store=r2://newsfork-datasets-{env}", func(o Options) bool { return o.Store == "r2://newsfork-datasets-staging" && !o.Sample })
	f("--env=dev --store=mem://", func(o Options) bool { return o.Store == "mem://default" })
	f("--runner=flink --endpoint=localhost:8099 --store=s3://b --parallelism=4 --environment_type=EXTERNAL", func(o Options) bool { return o.Lanes == 64 && o.Slots() == 4 })
	f("--runner=flink --endpoint=localhost:8099 --store=s3://b --parallelism=4 --lanes=7 --environment_type=EXTERNAL", func(o Options) bool { return o.Lanes == 7 })
	f("--runner=prism --parallelism=4", func(o Options) bool { return o.Lanes == 1 && o.LanesByInput && o.Slots() == 1 })
	f("--runner=prism --lanes=1", func(o Options) bool { return o.Lanes == 1 && !o.LanesByInput })
	f("--runner=direct", func(o Options) bool { return o.Lanes == 1 && o.LanesByInput })
	f("--runner=flink --endpoint=localhost:8099 --shared-filesystem --store=dir --environment_type=EXTERNAL", func(o Options) bool { return o.Store == "dir" })
	t.Setenv("SEED_DB", "postgres://me:secret@h/d")
	f("--job=news --runner=flink --endpoint=localhost:8099 --store=s3://b --environment_type=EXTERNAL", func(o Options) bool { return o.DB == "postgres://me@h/d" })
	f("--job=news --store=mem://", func(o Options) bool { return o.DB == "postgres://me:secret@h/d" })
	t.Setenv("SEED_DB", "")
	f("--runner=flink --endpoint=localhost:8099 --environment_type=LOOPBACK --store=dir --web=demo", func(o Options) bool { return o.Store == "dir" })
	f("--runner=universal --endpoint=localhost:8099 --environment_type=loopback --parallelism=2 --store=mem://x", func(o Options) bool { return o.Store == "mem://x" })
	f("--runner=dataflow --project=p --region=r --staging_location=gs://b/s --store=gs://b", func(o Options) bool { return o.Store == "gs://b" })
	f("--runner=dataflow --project=p --region=r --staging_location=gs://b/s --dry_run --store=gs://b", func(o Options) bool { return o.Flags.Lookup("dry_run").Value.String() == "true" })
}

// TestRefusals: wrong usage ends with exit code 2 and one line, which names what
// is wrong and says what to do. No file is created and no request is sent.
func TestRefusals(t *testing.T) {
	emptyEnv(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	asked := make(chan struct{}, 1000)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			_ = c.Close()
		}
	}()
	// A refused command has done nothing: the directory stays as it was, and the
	// server gets no request.
	f := func(args, culprit, advice string) {
		t.Helper()
		t.Run(args, func(t *testing.T) {
			t.Helper()
			resetBeam(t)
			t.Chdir(t.TempDir())
			writeFile(t, "unknown.yaml", "country: sg\ncuntry: de\n")
			writeFile(t, "self.yaml", "config: other.yaml\n")
			writeFile(t, "bad.yaml", "country: [sg\nx: y: z\n")
			writeFile(t, "list.yaml", "- country\n- sg\n")
			writeFile(t, "twice.yaml", "country: sg\ncountry: de\n")
			writeFile(t, "null.yaml", "store:\n")
			writeFile(t, "many.yaml", "country: [sg, de]\n")
			writeFile(t, "lanes.yaml", "lanes: many\n")
			writeFile(t, "delay.yaml", "host-delay: 5\n")
			writeFile(t, "force.yaml", "force: maybe\n")
			writeFile(t, "prices.yaml", "file: {reads_million: -1}\n")
			writeFile(t, "typo.yaml", "file: {read_million: 1}\n")
			writeFile(t, "r2.yaml", "r2: {reads_million: 1}\n")
			writeFile(t, "b/datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", `{"records":[]}`)
			writeFile(t, "b/research/datasets/country=sg/category=news/2026-01-28_0001.json", `{"records":[]}`)
			before := tree(t, ".")
			var stdout, stderr bytes.Buffer
			code := Main(strings.Fields(strings.ReplaceAll(args, "SERVER", listener.Addr().String())), &stdout, &stderr)
			line := strings.TrimSuffix(stderr.String(), "\n")
			if code != exitUsage || strings.Contains(line, "\n") || !strings.HasPrefix(line, "pipeline: ") || stdout.Len() > 0 {
				t.Errorf("exit %d, stdout %q, stderr:\n%s", code, stdout.String(), stderr.String())
			}
			if !strings.Contains(line, culprit) || !strings.Contains(line, advice) {
				t.Errorf("the message does not say %q and %q:\n%s", culprit, advice, line)
			}
			after := tree(t, ".")
			assert.True(t, slices.Equal(before, after), "it touched the disk:\n%q\n%q", before, after)
		})
	}
	f("--nonsense", "-nonsense", "help")
	f("--nonsense=1 --store=b", "-nonsense", "help")
	f("crawl", `"crawl"`, "use seed, docs")
	f("crawl --store=b", `"crawl"`, "use seed, docs")
	f("catalogue --store=b", `"catalogue" is no command`, "did you mean catalog?")
	f("rusn ls --store=b", `"rusn" is no command`, "did you mean runs?")
	f("runs lst --store=b", `runs "lst" is no command`, "did you mean ls?")
	f("plan --store=b", "plan: say what, before the flags", "seed, docs, catalog, news or migrate")
	f("plan", "plan: say what", "seed, docs, catalog, news or migrate")
	f("rm", "rm: say what", "older-than, domain, provider, site or publisher")
	f("plan sede --store=b", `plan "sede" is no command`, "did you mean seed?")
	f("docs https://a.example --store=b", `docs "https://a.example" is no command`, "help docs")
	f("seed de --store=b", "seed de", "write pipeline seed")
	f("--store=b runs", "runs", "write a command before all flags")
	f("--store=b help", "help", "write a command before all flags")
	f("--force true", "true", "write a command before all flags")
	f("seed --contry=sg --store=b", "--contry: there is no such flag", "did you mean country?")
	f("seed -store=b", "-store=b", "write two dashes: --store=b")
	f("seed --country", "--country needs a value", "help seed")
	f("catalog --savers=2 --store=b", "--savers is no flag", "a key of --config and the variable SEED_SAVERS")
	f("errors --sate=open --store=b", "--sate", "did you mean state?")
	f("completion tcsh", "completion tcsh", "bash, zsh, fish or powershell")
	f("--job=crawl", "--job=crawl", "use seed, ")
	f("--estimate=yes --store=b", "--estimate=yes", "--estimate=json")
	f("--estimate --watch=1m --store=b", "--watch", "leave --watch out")
	f("--estimate --until=list --store=b", "--estimate", "give one of them")
	f("--estimate --report=r.json --store=b", "--report=r.json", "leave --report out")
	f("--estimate --store=none", "none", "")
	f("--estimate --job=migrate --store=b", "--estimate", "leave it out")
	f("--estimate --job=docs --store=b", "no done run of --job=docs", "run it once")
	f("--estimate --job=docs", "out", "")
	f("--prices=none.yaml --store=b", "--prices=none.yaml", "no such file")
	f("--prices=prices.yaml --store=b", "file: reads_million is -1", "0 or more")
	f("--prices=typo.yaml --store=b", "read_million", "docs/operations.md")
	f("--prices=bad.yaml --store=b", "--prices=bad.yaml", "docs/operations.md")
	f("--prices=r2.yaml --store=b", "file:// stores", "leave --prices out")
	f("--job=", "--job=", "use seed, ")
	f("--runner=hadoop", "--runner=hadoop", "direct, prism, flink")
	f("--endpoint=localhost:8099 --store=b", "--endpoint=localhost:8099", "add --runner=universal")
	f("--runner=prism --environment_type=PROCESS --store=b", "--environment_type=PROCESS", "leave it out")
	f("--until=fetch", "--until=fetch", "list or extract")
	f("--env=test --store=b", "--env=test", "dev, staging or prod")
	f("--store=b-{env}", "b-{env}", "--env=dev")
	f("--env=prod", "--env=prod", "add --store=")
	f("runs --env=prod", "--env=prod", "add --store=")
	f("--store=", "--store=", "leave it out")
	f("--until= --store=b", "--until=", "list or extract")
	f("--country=SG", "--country=SG", "two lower-case letters")
	f("--country=sgp", "--country=sgp", "two lower-case letters")
	f("--category=a/b", "--category=a/b", "lower-case")
	f("--date=2026-02-30", "--date=2026-02-30", "YYYY-MM-DD")
	f("--date=2025-02-29", "--date=2025-02-29", "YYYY-MM-DD")
	f("--date=28.01.2026", "--date=28.01.2026", "YYYY-MM-DD")
	f("--date=2026-1-28", "--date=2026-1-28", "YYYY-MM-DD")
	f("--lanes=-1", "--lanes=-1", "1 to 100000")
	f("--lanes=x", "lanes", "help")
	f("--lanes=100001", "--lanes=100001", "1 to 100000")
	f("--concurrency=0", "--concurrency=0", "1 to 10000")
	f("--concurrency=1.5", "concurrency", "help")
	f("--rate=-1", "--rate=-1", "0 for no limit")
	f("--rate=NaN", "--rate=NaN", "0 for no limit")
	f("--rate=Inf", "--rate=+Inf", "0 for no limit")
	f("--host-delay=-1s", "--host-delay=-1s", "0 or more")
	f("--host-delay=200", "host-delay", "help")
	f("--adaptive-delay=-1", "--adaptive-delay=-1", "0 (off)")
	f("--server-delay=-1s", "--server-delay=-1s", "0 (off) or more")
	f("--cdn-rate=0", "--cdn-rate=0", "more than 0")
	f("--turns=", "--turns=", "use auto, off, or the path")
	f("--turns=/dev/null/turns", "--turns: the file of turns at sites, /dev/null/turns", "not a directory")
	f("--max-crawl-delay=0s", "--max-crawl-delay=0s", "30s")
	f("--robots-cache=-1h", "--robots-cache=-1h", "24h")
	f("--lease-ttl=10ms", "--lease-ttl=10ms", "1s or more")
	f("--max-child-sitemaps=0", "--max-child-sitemaps=0", "1 or more")
	f("--outage-threshold=1.5", "--outage-threshold=1.5", "0 (off) to 1")
	f("--outage-threshold=NaN", "--outage-threshold=NaN", "0 (off) to 1")
	f("--progress=bar", "--progress=bar", "auto or off")
	f("--log-format=xml", "--log-format=xml", "text or json")
	f("--log-level=loud", "--log-level=loud", "debug, info")
	f("--web=archive", "--web=archive", "live or demo")
	f("--web=demo --connect-to=SERVER", "--connect-to", "give one")
	f("--connect-to=localhost", "--connect-to=localhost", "host:port")
	f("--connect-to=:443", "--connect-to=:443", "host:port")
	f("--connect-to=localhost:https", "--connect-to=localhost:https", "host:port")
	f("--force=maybe", "force", "help")
	f("--report=no/such/r.json", "no/such", "create it first")
	f("--report=b", "--report=b", "name a file")
	f("--report=- --until=list --store=b", "--report=-", "leave --report out")
	// flags of the other job
	f("--dry-run --store=b", "--dry-run", "--until=list")
	f("--delete-verified", "--delete-verified", "leave it out")
	f("--job=migrate --feeds", "--feeds", "help migrate")
	f("--job=migrate --until=list", "--until", "help migrate")
	// layouts
	f("--layout=zip", "--layout=zip", "objects or table")
	f("--layout=", "layout", "objects or table")
	f("--layout=table --segment-age=0s", "--segment-age=0s", "such as 30s")
	f("--layout=table --store=b --watch=1m --streaming", "--layout=table", "--streaming")
	f("store compact all", "compact", "help store compact")
	f("rm domain --store=b", "rm domain", "rm domain NAME…")
	f("rm domain --store=b moh.gov.sg www.moh.gov.sg", "www.moh.gov.sg", "write moh.gov.sg")
	f("rm domain --store=b gov.sg.", "gov.sg.", "domain")
	// configuration files
	f("--config=none.yaml", "none.yaml", "no such file")
	f("--config=unknown.yaml", `"cuntry"`, "help")
	f("--config=self.yaml", `"config"`, "help")
	f("--config=bad.yaml", "bad.yaml", "YAML mapping")
	f("--config=list.yaml", "list.yaml", "YAML mapping")
	f("--config=twice.yaml", "twice.yaml", "YAML mapping")
	f("--config=null.yaml", "store", "write store: VALUE")
	f("--config=many.yaml", "country", "write country: VALUE")
	f("--config=lanes.yaml", `"many"`, "lanes")
	f("--config=delay.yaml", `"5"`, "host-delay")
	f("--config=force.yaml", `"maybe"`, "force")
	// filters that match nothing
	f("--country=zz", `--country="zz"`, "--until=list")
	f("--store=b --country=de", `--country="de"`, "--until=list")
	f("--store=b --country=sg --category=policy", `--category="policy"`, "--until=list")
	f("--store=b --date=2026-01-29", `--date="2026-01-29"`, "--until=list")
	f("--store=b --country=de --until=list", `--country="de"`, "--until=list")
	f("--job=migrate --country=zz", `--country="zz"`, "dry run")
	f("--job=migrate --store=b --date=2026-01-29", `--date="2026-01-29"`, "dry run")
	// stores
	f("--store=none", "none", "must exist")
	f("--store=file:///none/such", "/none/such", "must exist")
	f("--store=unknown.yaml", "unknown.yaml", "not a directory")
	f("--store=ftp://b", `"ftp"`, "use a directory")
	f("--store=mem://x", "mem://x", "use a directory or a bucket")
	f("--store=mem://", "mem://", "use a directory or a bucket")
	f("--store=s3://", "bucket's name is missing", "s3://bucket")
	f("--store=s3://b?region=eu&x=1", `"x"`, "takes endpoint and region")
	f("--store=s3://key:hunter2@b", "must not hold credentials", "AWS_ACCESS_KEY_ID")
	// remote runners
	for _, r := range []string{"flink", "spark", "universal"} {
		f("--runner="+r+" --store=s3://b", "needs --endpoint", "--endpoint=host:port")
		f("--runner="+r+" --store=s3://b --endpoint=localhost", "--endpoint=localhost", "host:port")
		f("--runner="+r+" --endpoint=SERVER --store=s3://b", "--environment_type", "PROCESS")
		f("--runner="+r+" --endpoint=SERVER", "sample bucket", "--store=s3://")
		f("--runner="+r+" --endpoint=SERVER --store=b", "--store=b", "--shared-filesystem")
		f("--runner="+r+" --endpoint=SERVER --store=b --environment_type=PROCESS", "--store=b", "--shared-filesystem")
		f("--runner="+r+" --endpoint=SERVER --store=mem://x --shared-filesystem", "mem://x", "use s3://")
		f("--runner="+r+" --endpoint=SERVER --store=s3://b --web=demo", "--web=demo", "direct or prism")
	}
	f("--runner=dataflow --store=gs://b", "needs --project", "--project=PROJECT")
	f("--runner=dataflow --store=gs://b --project=p", "needs --region", "--region=")
	f("--runner=dataflow --store=gs://b --project=p --region=r", "needs --staging_location", "gs://bucket/staging")
	f("--runner=dataflow --store=gs://b --project=p --region=r --staging_location=/tmp", "--staging_location=/tmp", "gs://bucket/staging")
	f("--runner=dataflow --project=p --region=r --staging_location=gs://b/s --store=b --shared-filesystem", "--store=b", "use s3://")
	f("--runner=dataflow --project=p --region=r --staging_location=gs://b/s --store=b --environment_type=LOOPBACK", "--store=b", "use s3://")
	// sub-commands
	f("help nonsense", "nonsense", "use seed, ")
	f("nonsense", "nonsense", "use seed, docs, catalog, news, migrate, plan, try, init, watch, demo, status, runs, ls, get, export, errors, changes, rm, removals, backup, restore, store, config, ")
	f("help seed migrate", `seed "migrate" is no command`, "help seed")
	f("version 2", "version 2", "write pipeline version")
	f("runs nonsense", "nonsense", "help runs")
	f("runs show", "runs show", "help runs")
	f("runs show a b --store=b", "runs show a b", "help runs")
	f("runs list x --store=b", "runs ls x", "help runs")
	f("runs --nonsense", "-nonsense", "help runs")
	f("runs", "out", "must exist")
	f("runs --store=b-{env}", "b-{env}", "--env=dev")
	f("runs --store=b --env=test", "--env=test", "dev, staging or prod")
	f("runs --config=unknown.yaml", `"cuntry"`, "help")
	f("runs show 20260101-000000-000-00000000 --store=b", "no run 20260101", "lists them")
	f("runs cancel 20260101-000000-000-00000000 --store=b", "no run 20260101", "lists them")
	f("runs show ../b --store=b", "../b", "lists them")
	f("dead-letters nonsense", "nonsense", "help errors")
	f("dead-letters show", "show", "help errors")
	f("dead-letters list x", "ls x", "help errors")
	f("dead-letters --job=crawl --store=b", "--job=crawl", "use seed, ")
	f("dead-letters show ../b --store=b", "../b", "lists them")
	f("dead-letters show abc --store=b", "abc", "lists them")
	f("dead-letters replay abc --store=b", "abc", "lists them")
	f("--host-delay=5", "--host-delay=5", "a number with its unit, such as 500ms")
	f("--concurrency=many", "--concurrency=many", "write a number")
	f("--strict=maybe", "--strict=maybe", "write true or false")
	f("--job=news --store=b --db=mysql://u@h/x", "--db", "with user@host/database after it")
	n := len(asked)
	assert.True(t, n <= 0, "%d connections were made by refused commands", n)
}

func TestRefusedEnvironment(t *testing.T) {
	f := func(name, value string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			resetBeam(t)
			emptyEnv(t)
			t.Chdir(t.TempDir())
			t.Setenv(name, value)
			var stdout, stderr bytes.Buffer
			if code := Main([]string{"--runner=direct"}, &stdout, &stderr); code != exitUsage || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), value) {
				t.Errorf("exit %d: %s", code, stderr.String())
			}
			left := tree(t, ".")
			assert.True(t, len(left) <= 0, "it made %q", left)
		})
	}
	f("SEED_LANES", "many")
	f("SEED_FORCE", "perhaps")
	f("SEED_HOST_DELAY", "soon")
	f("SEED_JOB", "crawl")
	f("SEED_COUNTRY", "SG")
	f("SEED_STORE", "none")
	f("SEED_CONFIG", "none.yaml")
	f("SEED_PARALLELISM", "wide") // one of Beam's
}

// TestBeamFlags: Beam's flags reach flag.CommandLine, from which the SDK fills
// the job's options; ours, which may say where secrets are, never do.
func TestBeamFlags(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	t.Setenv("SEED_JOB_NAME", "by-environment")
	writeFile(t, "c.yaml", "experiments: by-file\nstore: mem://secret-store\n")
	_, err := parseOptions([]string{"--config=c.yaml", "--parallelism=3", "--retain_docker_containers", "--country=sg", "--connect-to=secret-host:1"}, io.Discard)
	require.NoError(t, err)
	for name, want := range map[string]string{"parallelism": "3", "retain_docker_containers": "true", "job_name": "by-environment", "experiments": "by-file"} {
		assert.Equal(t, want, flag.Lookup(name).Value.String(), name)
	}
	set := map[string]bool{}
	flag.CommandLine.Visit(func(f *flag.Flag) { set[f.Name] = true })
	own := newFlags(new(Options))
	own.VisitAll(func(f *pflag.Flag) {
		// The SDK has a --runner of its own, which stays unset.
		if set[f.Name] || (flag.Lookup(f.Name) != nil && f.Name != "runner") {
			t.Errorf("--%s is in flag.CommandLine, and so in the job", f.Name)
		}
	})
	options := runtime.NewOptions() // the process's own keep what an earlier test's run loaded
	options.LoadOptionsFromFlags(nil)
	exported := options.Export().Options
	assert.EqualValues(t, "3", exported["parallelism"], exported)
	for name, value := range exported {
		assert.True(t, own.Lookup(name) == nil && !strings.Contains(value, "secret"), "the job's options show --%s=%s", name, value)
	}
}

func TestPublicOptions(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	t.Setenv("SEED_STORE", "mem://secret-store")
	o, err := parseOptions([]string{"--country=sg", "--report=secret.json", "--parallelism=2", "--host-delay=1s"}, io.Discard)
	require.NoError(t, err)
	got := o.Public()
	assert.True(t, len(got) == 2 && got["country"] == "sg" && got["host-delay"] == "1s", "public options %v", got)
}

func TestReach(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	args := []string{"--runner=flink", "--store=s3://b?endpoint=http://" + addr, "--endpoint=" + addr, "--environment_type=EXTERNAL"}
	o, err := parseOptions(args, io.Discard)
	require.NoError(t, err)
	assert.NoError(t, o.Reach(context.Background()), "a server that listens")
	require.NoError(t, listener.Close())
	var stdout, stderr bytes.Buffer
	start := time.Now()
	code := Main(args, &stdout, &stderr)
	if code != exitFailed || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), addr) || !strings.Contains(stderr.String(), "start it") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	took := time.Since(start)
	assert.True(t, took <= 3*time.Second, "it took %s to say so", took)
}

// tree is what lies under dir, with sizes and times of change.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all = append(all, p+" "+info.ModTime().Format(time.RFC3339Nano))
		return nil
	})
	require.NoError(t, err)
	return all
}
