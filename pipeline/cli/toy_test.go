package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() { beam.RegisterDoFn(reflect.TypeFor[greetFn]()) }

// toyConfig is the configuration of the toy job's workers.
type toyConfig struct {
	Lane     lane.Config
	Greeting string
}

// greetFn is the toy job: it counts greetings.
type greetFn struct {
	lane.DoFn
	Config toyConfig
}

// Setup implements Beam's.
func (fn *greetFn) Setup(ctx context.Context) error { return fn.Open(ctx, fn.Config.Lane) }

func (fn *greetFn) ProcessElement(_ []byte, emit func(ledger.Tally)) {
	var t ledger.Tally
	if fn.Config.Greeting == "nobody" {
		t.DeadLetter("deaf")
	} else {
		t.Count("greetings", int64(len(fn.Config.Greeting)))
		t.Warn("hoarse", "the toy", "", 2)
	}
	fn.Worker.Emit(emit, t)
}

// toyJob is what somebody adds for a new job: this value, and a line in pipeline.Jobs.
func toyJob() pipeline.Job {
	greeting := ""
	return pipeline.Job{Job: ledger.Job{Name: "toy", Title: "Toy", Counts: []string{"greetings", "silences"}, Warnings: map[string]string{"hoarse": "hoarse {n} times"},
		Purpose: ledger.Purpose{Kept: "greetings", Refused: "deaf"}},
		Options: func(s *option.Set) {
			s.Take("lanes")
			s.Text(&greeting, "greeting", "hello", "what the toy says").NotEmpty("say something").Previews("--greeting=quiet").In(option.What)
		},
		Check: func(*pipeline.RunOptions) error {
			if greeting == "rude" {
				return usage.Errorf("--greeting=%s: be polite", greeting)
			}
			return nil
		},
		Config: func(_ pipeline.RunOptions, l lane.Config, _ string) any { return toyConfig{l, greeting} },
		Build: func(s beam.Scope, config any) {
			cfg := config.(toyConfig)
			lane.Total(s, cfg.Lane, beam.ParDo(s, &greetFn{Config: cfg}, beam.Impulse(s)))
		},
		LiveCount: "greetings", Unit: "greetings",
		Extend: func(_ context.Context, _ store.Store, r *ledger.Report) error {
			r.Alerts = append(r.Alerts, "the toy says "+greeting)
			return nil
		},
	}
}

// A job that is added by one value and one line appears everywhere.
func TestToyJob(t *testing.T) {
	emptyEnv(t)
	before := pipeline.Jobs
	t.Cleanup(func() { pipeline.Jobs = before })
	pipeline.Jobs = append(slices.Clone(before), toyJob)
	dir := t.TempDir()

	t.Run("help", func(t *testing.T) {
		require.Contains(t, here(t, "help").stdout, "migrate toy ")
		own := here(t, "help toy").stdout
		require.Contains(t, own, "-greeting")
		require.Contains(t, own, `(default "hello")`)
		require.NotContains(t, own, "-robots-cache")
		require.NotContains(t, here(t, "help seed").stdout, "-greeting")
		require.Contains(t, flagList(), "- `--greeting=hello` what the toy says\n")
		require.Contains(t, here(t, "--job=nothing").stderr, "migrate or toy")
	})
	t.Run("flags", func(t *testing.T) {
		for args, want := range map[string]string{
			"--greeting=hi --store=" + dir:                     "--greeting means nothing to --job=seed",
			"--job=toy --robots-cache=1h --store=" + dir:       "--robots-cache means nothing to --job=toy",
			"--job=toy --greeting= --store=" + dir:             "--greeting= is empty; say something",
			"--job=toy --greeting=rude --store=" + dir:         "--greeting=rude: be polite",
			"--job=toy --dry-run --store=" + dir:               "--dry-run is for --job=migrate; for a dry run of toy use --greeting=quiet",
			"--job=docs --dry-run --store=" + dir:              "--dry-run means nothing to --job=docs",
			"--job=toy --watch=1m --store=" + dir:              "--watch means nothing to --job=toy",
			"dead-letters --job=tic --store=" + dir:            "migrate or toy",
			"runs rm --older-than=1d --job=tic --store=" + dir: "migrate or toy",
		} {
			a := here(t, args)
			require.Equal(t, exitUsage, a.code, args)
			require.Contains(t, a.stderr, want)
		}
		s, environ, _, _, _, err := Serve(t.Context(), []string{"--store=" + dir, "--greeting=hi"}, nil, io.Discard)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Contains(t, environ, "SEED_GREETING=hi")
	})
	t.Run("description", func(t *testing.T) {
		all := Descriptions()
		require.Equal(t, toyJob().Job, all[len(all)-1].Job, "the jobs that cmd/server gets")
	})
	t.Run("run", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "report.json")
		t.Setenv("SEED_GREETING", "good day")
		a := here(t, "--job=toy --runner=direct --store="+dir+" --report="+file)
		require.Equal(t, exitOK, a.code, a.stderr)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		r := report(t, b)
		require.Equal(t, "toy", r.Job)
		require.Equal(t, ledger.Done, r.State)
		require.EqualValues(t, len("good day"), r.Counts["greetings"])
		require.Equal(t, "good day", r.Options["greeting"])
		require.Equal(t, []string{"the toy: hoarse 2 times", "the toy says good day"}, r.Alerts)
		require.Contains(t, r.Counts, "silences", "a count of the job is there at 0")
		require.Regexp(t, `Counts\n +greetings +8\n +silences +0\n`, a.stdout, "the table")
		require.Regexp(t, r.RunID+`\s+toy\s+direct\s+done`, here(t, "runs --store="+dir).stdout)
		require.Equal(t, exitOK, here(t, "dead-letters --job=toy --store="+dir).code)
		var shown ledger.Report
		require.NoError(t, json.Unmarshal([]byte(here(t, "runs show "+r.RunID+" --store="+dir).stdout), &shown))
		require.Equal(t, r.Counts, shown.Counts)
		require.Equal(t, "8 greetings", toyJob().LiveText(ledger.Tally{Counts: r.Counts}))
	})
	t.Run("purpose", func(t *testing.T) {
		t.Setenv("SEED_GREETING", "nobody")
		a := here(t, "--job=toy --runner=direct --store="+dir)
		require.Equal(t, exitFailed, a.code)
		require.Contains(t, a.stderr, "the store refused everything that the run collected")
	})
}
