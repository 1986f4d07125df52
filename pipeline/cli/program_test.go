package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// Main is the program without its server.
func Main(args []string, stdout, stderr io.Writer) int { return Program{}.Main(args, stdout, stderr) }

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return Program{}.run(ctx, args, stdout, stderr)
}

// parseOptions are the options with which a run of this command line would start.
func parseOptions(args []string, stderr io.Writer) (o Options, err error) {
	p := &program{stdout: io.Discard, stderr: stderr, begin: func(context.Context) error { return nil }}
	err = p.execute(context.Background(), append([]string{"run"}, args...))
	return p.o, err
}

// parseLine is parseOptions for a line that may begin with a command.
func parseLine(args []string) (Options, error) {
	p := &program{stdout: io.Discard, stderr: io.Discard, begin: func(context.Context) error { return nil }}
	err := p.execute(context.Background(), args)
	return p.o, err
}

// Serve are the options with which a server of this command line would start.
func Serve(ctx context.Context, args []string, file map[string]string, stderr io.Writer) (s store.Store, environ []string, log *slog.Logger,
	find explore.Opener, starts option.Runs, err error) {
	m := Program{Serve: func(ctx context.Context, _, _ string, options ServerOptions, _ []option.Job) (err error) {
		s, environ, log, find, starts, err = options(ctx, file)
		return err
	}}
	err = m.run(ctx, append([]string{"serve"}, args...), io.Discard, stderr)
	return s, environ, log, find, starts, err
}

// commandsOf calls f for each command that a person may use.
func commandsOf(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			commandsOf(sub, f)
		}
	}
}

// commandList returns a Markdown list of all commands, with those of their flags that no run has.
func commandList() string {
	var b strings.Builder
	runs, told := newFlags(new(Options)), map[string]bool{}
	m := Program{Serve: func(context.Context, string, string, ServerOptions, []option.Job) error { return nil }}
	commandsOf(m.Root(), func(c *cobra.Command) {
		var again []string
		if !c.HasParent() || jobName(c) != "" && c.Parent().HasParent() { // as that above it
			return
		}
		fmt.Fprintf(&b, "- `%s` %s\n", strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), c.Root().Name()+" "), " [flags]"), c.Short)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if o := runs.Lookup(f.Name); (o == nil || f.Name == "limit" && o.Usage != f.Usage) && !f.Hidden && f.Name != "help" && f.Name != helpAll && !slices.Contains(oftenBeams, f.Name) {
				if told[f.Name+f.Usage] {
					again = append(again, "`--"+f.Name+"`")
					return
				}
				told[f.Name+f.Usage] = true
				fmt.Fprintf(&b, "  - `--%s` %s\n", f.Name, f.Usage)
			}
		})
		if again != nil {
			fmt.Fprintf(&b, "  - as above: %s\n", strings.Join(again, ", "))
		}
	})
	return b.String()
}

// Every job's help has at most 16 flags, and the groups of them all have some for the seed job.
func TestHelpIsShort(t *testing.T) {
	emptyEnv(t)
	for _, j := range pipeline.Names() {
		text := here(t, "help "+j).stdout
		assert.LessOrEqual(t, len(regexp.MustCompile(`(?m)^ +--`).FindAllString(text, -1)), 16, j)
		assert.GreaterOrEqual(t, len(regexp.MustCompile(`(?m)^ +--`).FindAllString(here(t, "help "+j+" --help-all").stdout, -1)), 16, j)
		for _, g := range option.Groups {
			assert.Equal(t, j != "migrate" && j != "docs" || g != option.Polite, strings.Contains(text, "\n"+string(g)+"\n"), "%s: %s", j, g)
		}
	}
}

// A shell completes commands, flags and the values that a flag may have.
func TestCompletion(t *testing.T) {
	emptyEnv(t)
	name := filepath.Base(os.Args[0])
	for shell, mark := range map[string]string{"bash": "complete -o default -F __start_" + name, "zsh": "#compdef " + name, "fish": "complete -c " + name, "powershell": "-CommandName '" + name + "'"} {
		a := here(t, "completion "+shell)
		assert.Equal(t, exitOK, a.code, a.stderr)
		assert.Contains(t, a.stdout, mark, shell)
	}
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte(here(t, "completion bash").stdout), 0o600))
	out, err := exec.CommandContext(t.Context(), "bash", "-n", script).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line, want := range map[string][]string{
		"runs ":               {"ls", "show", "log", "rm", "cancel", "pause", "resume", "promote", "rollback"},
		"plan ":               {"seed", "docs", "catalog", "news", "migrate"},
		"seed --co":           {"--concurrency", "--config", "--connect-to", "--contact", "--country"},
		"docs --prov":         {"--provider"},
		"catalog --savers":    nil,
		"seed --web ":         {"live", "demo"},
		"seed --layout=":      {"objects", "table"},
		"completion ":         {"bash", "zsh", "fish", "powershell"},
		"errors ls --state ":  {"open", "dismissed", "all"},
		"seed --environment_": {"--environment_config", "--environment_type"},
	} {
		args := append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitOK, Main(args, &stdout, &stderr), stderr.String())
		lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
		assert.ElementsMatch(t, want, lines[:len(lines)-1], line)
	}
}

// What scripts of before write does what its new spelling does.
func TestOldSpellings(t *testing.T) {
	resetBeam(t)
	emptyEnv(t)
	dir := smallBucket(t, true)
	t.Chdir(dir)
	require.Equal(t, exitOK, here(t, "--web=demo --host-delay=0s --log-level=error --store=b").code)
	for before, now := range map[string]string{
		"runs list":                            "runs ls",
		"runs":                                 "runs ls",
		"dead-letters list --job=seed":         "errors ls --job=seed",
		"dead-letters":                         "errors",
		"export --what=domains --to=-":         "export domains -",
		"export --what=domains --to=-  ":       "export domains",
		"export --what=domains --schema":       "export domains --schema",
		"changes --job=seed":                   "changes seed",
		"--until=list":                         "seed --until=list",
		"--job=seed --until=list --country=sg": "seed --until=list --country=sg",
		"--job=migrate --dry-run":              "plan migrate",
	} {
		old, fresh := here(t, before+" --store=b"), here(t, now+" --store=b")
		assert.Equal(t, exitOK, old.code, "%s: %s", before, old.stderr)
		assert.Equal(t, fresh, old, before)
		assert.NotEmpty(t, old.stdout+old.stderr, before)
	}
	for before, now := range map[string]string{
		"--job=catalog --web=demo --concurrency=3": "catalog --web=demo --concurrency=3",
		"--job=docs --provider=stripe":             "docs --provider=stripe",
		"--force":                                  "seed --force",
	} {
		old, err := parseLine(strings.Fields(before + " --store=b"))
		require.NoError(t, err)
		fresh, err := parseLine(strings.Fields(now + " --store=b"))
		require.NoError(t, err)
		assert.Equal(t, old.RunOptions, fresh.RunOptions, before)
	}
	t.Setenv("SEED_JOB", "docs")
	o, err := parseLine([]string{"--store=b"})
	require.NoError(t, err)
	assert.Equal(t, "docs", o.Job)
	o, err = parseLine([]string{"news", "--store=b"})
	require.NoError(t, err)
	assert.Equal(t, "news", o.Job, "the command says which")
}

// A variable that sets nothing is named, with the one that was probably meant; those that the program reads are known.
func TestVariables(t *testing.T) {
	emptyEnv(t)
	t.Setenv("SEED_HOSTDELAY", "3s")
	t.Setenv("SEED_SERVER_TOKEN_FILE", "x")
	o := Options{}
	newFlags(&o)
	assert.Equal(t, []string{"the variable SEED_HOSTDELAY sets nothing; did you mean SEED_HOST_DELAY?"}, o.strangers())
	a := here(t, "config show seed --host-delay=2s")
	assert.Equal(t, "pipeline: the variable SEED_HOSTDELAY sets nothing; did you mean SEED_HOST_DELAY?\n", a.stderr)
	t.Setenv("SEED_HOSTDELAY", "")
	literal := regexp.MustCompile(`"(SEED_[A-Z_]+)"`)
	found := 0
	for _, dir := range []string{"../../pipeline", "../../server", "../../io", "../../transforms", "../../cmd"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range literal.FindAllStringSubmatch(string(b), -1) {
				t.Setenv(m[1], "x")
				found++
				assert.Empty(t, o.strangers(), "%s: %s is no variable that the program knows", path, m[1])
				t.Setenv(m[1], "")
			}
			return err
		}))
	}
	assert.Greater(t, found, 10)
}

// Each option says where its value comes from, secrets apart.
func TestConfigShow(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	writeFile(t, "c.yaml", "rate: 5\nconcurrency: 7\nsavers: 3\nhost-delay: 5s\nsession-max-pages: 9\n") // catalog has a default delay of its own
	t.Setenv("SEED_RATE", "6")
	t.Setenv("SEED_DB", "postgres://u:hunter2@h/d")
	a := here(t, "config show catalog --json --config=c.yaml --concurrency=8 --contact=a@b.example")
	require.Equal(t, exitOK, a.code, a.stderr)
	got := map[string]setting{}
	for line := range strings.Lines(a.stdout) {
		var s setting
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		got[s.Name] = s
	}
	for _, want := range []setting{{"concurrency", "8", "flag"}, {"rate", "6", "SEED_RATE"}, {"savers", "3", "c.yaml"}, {"host-delay", "5s", "c.yaml"}, {"limit", "9", "c.yaml"}, {"lanes", "1", "worked out"}, {"store", "out", "worked out"}} {
		assert.Equal(t, want, got[want.Name])
	}
	assert.NotContains(t, a.stdout, "hunter2")
	assert.NotContains(t, got, "layout", "an option of seed")
	assert.Equal(t, exitOK, here(t, "config check catalog --contact=a@b.example").code)
	assert.Equal(t, exitUsage, here(t, "config check catalog --concurrency=0").code)
	refused := here(t, "config show catalog --concurrency=0")
	assert.Contains(t, refused.stderr, "a run would be refused: --concurrency=0: use 1 to 10000")
	assert.Contains(t, refused.stdout, "concurrency")
	assert.NoDirExists(t, "out")
}

// What lists or shows has a form for programs.
func TestJSON(t *testing.T) {
	emptyEnv(t)
	t.Chdir(smallBucket(t, true))
	require.Equal(t, exitOK, here(t, "--web=demo --host-delay=0s --log-level=error --store=b").code)
	for line, has := range map[string]string{
		"runs --store=b":                             `"job":"seed"`,
		"status --store=b":                           `"state":"done"`,
		"errors --store=b":                           `"id":`,
		"alerts --store=b":                           `"silences":`,
		"ls domains --store=b":                       `"registrable_domain":`,
		"version":                                    `"beam":`,
		"config show seed --store=b":                 `"from":"flag"`,
		"changes seed --store=b":                     "",
		"try https://kind-urlset-1.com/a --web=demo": `"allowed": true`,
	} {
		a := here(t, line+" --json")
		require.Equal(t, exitOK, a.code, "%s: %s", line, a.stderr)
		assert.Contains(t, a.stdout, has, line)
		for d := json.NewDecoder(strings.NewReader(a.stdout)); d.More(); {
			var v map[string]any
			require.NoError(t, d.Decode(&v), line)
		}
	}
	plain := here(t, "status --store=b").stdout
	assert.Regexp(t, `^RUN .*\n\S+ +seed +direct +done .*\n$`, plain)
	id := strings.Fields(strings.Split(plain, "\n")[1])[0]
	assert.Contains(t, here(t, "status "+id+" --store=b").stdout, "domains_collected")
}
