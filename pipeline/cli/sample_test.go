package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// A larger sample is refused while too much of the last smaller one of the same selection failed.
func TestSampleGate(t *testing.T) {
	const never = "never"
	type past struct {
		options           string // of the run: sample, country
		state             ledger.State
		done, failed, age int64 // age in days
	}
	for name, c := range map[string]struct {
		past    []past // the oldest first
		args    string
		refused bool
	}{
		"nothing before":          {nil, "--sample=10%", false},
		"few failed":              {[]past{{"1%", ledger.Done, 80, 20, 0}}, "--sample=10%", false},
		"many failed":             {[]past{{"1%", ledger.Done, 79, 21, 0}}, "--sample=10%", true},
		"many failed, all":        {[]past{{"1%", ledger.Done, 79, 21, 0}}, "", true},
		"the same again":          {[]past{{"1%", ledger.Done, 79, 21, 0}}, "--sample=1%", false},
		"a smaller one":           {[]past{{"1%", ledger.Done, 79, 21, 0}}, "--sample=0.5%", false},
		"another gate":            {[]past{{"1%", ledger.Done, 79, 21, 0}}, "--sample=10% --sample-gate=0.3", false},
		"off":                     {[]past{{"1%", ledger.Done, 0, 100, 0}}, "--sample=10% --sample-gate=1", false},
		"mended":                  {[]past{{"1%", ledger.Done, 79, 21, 0}, {"1%", ledger.Done, 21, 0, 0}}, "--sample=10%", false},
		"the last smaller one":    {[]past{{"1%", ledger.Done, 100, 0, 0}, {"5%", ledger.Done, 79, 21, 0}}, "--sample=10%", true},
		"failed before its end":   {[]past{{"1%", ledger.Failed, 5, 0, 0}}, "--sample=10%", true},
		"of another country":      {[]past{{"1% kr", ledger.Done, 0, 100, 0}}, "--sample=10%", false},
		"of its country":          {[]past{{"1% sg", ledger.Done, 0, 100, 0}}, "--sample=10% --country=sg", true},
		"a large one has passed":  {[]past{{"1%", ledger.Done, 0, 100, 0}, {"20%", ledger.Done, 0, 100, 0}}, "--sample=10%", false},
		"long ago":                {[]past{{"1%", ledger.Done, 0, 100, 31}}, "--sample=10%", false},
		"a month ago":             {[]past{{"1%", ledger.Done, 0, 100, 29}}, "--sample=10%", true},
		"a job without a sample":  {[]past{{never, ledger.Done, 0, 100, 0}}, "--sample=10%", false},
		"a run that is not there": {[]past{{"1%", ledger.Running, 0, 100, 0}}, "--sample=10%", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallBucket(t, false)
			s, err := store.Open(t.Context(), filepath.Join(dir, "b"))
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			last := ""
			for i, p := range c.past {
				at := time.Now().Add(time.Duration(i-60)*time.Second - time.Duration(p.age)*24*time.Hour)
				r := ledger.Run{RunID: ledger.NewRunID(at), Job: "seed", StartedAt: at, Options: map[string]any{"layout": "table"}}
				if p.options == never {
					r.Job = "news"
				}
				sample, country, _ := strings.Cut(p.options, " ")
				if r.Options["sample"] = sample; country != "" {
					r.Options["country"] = country
				}
				require.NoError(t, ledger.Start(t.Context(), s, r))
				require.NoError(t, ledger.WriteReport(t.Context(), s, ledger.Report{RunID: r.RunID,
					Counts: ledger.Counts{"domains_collected": p.done, "domains_failed": p.failed}}))
				if last = r.RunID; p.state.Over() {
					_, err := ledger.Finish(t.Context(), s, last, p.state, nil, at)
					require.NoError(t, err)
				}
			}
			a := here(t, "plan seed --store="+filepath.Join(dir, "b")+" "+c.args)
			if !c.refused {
				require.Equal(t, exitOK, a.code, a.stderr)
				return
			}
			require.Equal(t, exitUsage, a.code, a.stdout)
			require.Contains(t, a.stderr, "failed in run "+last)
			require.Contains(t, a.stderr, "mend what `errors ls --run="+last+"` shows, and run that sample again")
		})
	}
}

// A sample is in the report, and plan counts the domains that a run visits.
func TestSampleOfARun(t *testing.T) {
	dir := smallBucket(t, false)
	base := " --store=b --sample=60%"
	a := start(t, dir, "plan seed --until=extract"+base)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "would visit up to 2 registrable domains")
	a = start(t, dir, "plan seed --estimate=json"+base)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, `"open": 2`)
	a = start(t, dir, "--runner=direct --web=demo --force --layout=table --host-delay=0s --progress=off"+base)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "\n  sample: 60% of the domains\n")
	require.Regexp(t, `(?m)^  domains_collected +2$`, a.stdout)
	at := " --store=" + filepath.Join(dir, "b")
	require.Empty(t, here(t, "ls domains --json"+at).stdout)
	var run string
	for line := range strings.Lines(a.stdout) {
		if id, ok := strings.CutPrefix(line, "Run "); ok {
			run, _, _ = strings.Cut(id, ":")
		}
	}
	a = here(t, "runs promote "+run+at)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "2 rows of run "+run+" are in the table, in place of 0")
	require.Equal(t, 2, strings.Count(here(t, "ls domains --json"+at).stdout, "\n"))
	a = here(t, "runs promote "+run+at)
	require.Equal(t, exitUsage, a.code)
	require.Contains(t, a.stderr, "run "+run+" has staged nothing")
	a = here(t, "runs rollback "+run+at)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Empty(t, here(t, "ls domains --json"+at).stdout)
	for args, want := range map[string]string{
		"seed --sample=0%":            "write a share of the domains, such as 1% or 0.5%",
		"seed --sample=100%":          "write a share of the domains, such as 1% or 0.5%",
		"watch seed --sample=1%":      "--watch and --sample=1%",
		"docs --sample=1% --web=demo": "--sample",
	} {
		a := here(t, args+at)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, want, args)
	}
}
