package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// config makes the commands that explain the options of a job.
func (p *program) config() *cobra.Command {
	var asJSON bool
	show := p.each("show JOB", "each option of a job, its value, and where that comes from: flag, variable, file or default", anyJob, noPreset, func(c *cobra.Command, err error) error {
		if err != nil && !asJSON {
			p.log("a run would be refused: %s", usage.OneLine(err))
		}
		return p.showConfig(jobName(c), asJSON)
	})
	for _, c := range show.Commands() {
		c.Flags().BoolVar(&asJSON, "json", false, "JSON: one object a line")
	}
	return family("config", "the options of a job and where they are set: show, check", show, p.each("check JOB", "refuse what a run would refuse, and run nothing", anyJob, noPreset, func(c *cobra.Command, err error) error {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "a run of the %s job would begin\n", p.o.Job)
		}
		return err
	}))
}

// setting is an option's value.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (p *program) showConfig(job string, asJSON bool) error {
	return list(asJSON, p.stdout, func(yield func(setting, error) bool) {
		for _, o := range p.o.Flags.All {
			if o.Name == "job" || !o.Means(job) {
				continue
			}
			v := cmp.Or(p.o.Flags.Value(o.Name), o.DefaultOf(job))
			if o.Has(option.Secret) {
				v = ledger.Redact(v)
			}
			from := cmp.Or(p.o.from[o.Name], "default")
			if from == "default" && v != o.DefaultOf(job) {
				from = "worked out"
			}
			if !yield(setting{o.Name, v, from}, nil) {
				return
			}
			if o.Name != "politeness" {
				continue
			}
			for _, pattern := range slices.Sorted(maps.Keys(p.o.Hosts)) {
				if !yield(setting{o.Name + " " + pattern, p.o.Hosts[pattern].String(), v}, nil) {
					return
				}
			}
		}
	}, "OPTION\tVALUE\tFROM", func(s setting) []string { return []string{s.Name, s.Value, s.From} })
}

// status makes the command that says how runs are.
func (p *program) status() *cobra.Command {
	var asJSON bool
	c := p.ofStore("status [RUN]", "how a run is, or the last ones", jsonLines(&asJSON),
		func(ctx context.Context, s store.Store, w []string) error {
			if len(w) > 0 {
				run, err := runNamed(ctx, s, w[0])
				if err != nil {
					return err
				}
				return p.statusOf(ctx, s, run, asJSON)
			}
			seen := map[string]bool{}
			return listRuns(ctx, s, asJSON, p.stdout, func(r ledger.Run) bool {
				wanted := !seen[r.Job] || !r.State.Over()
				seen[r.Job] = true
				return wanted
			})
		})
	return c
}

// statusOf says how a run is.
func (p *program) statusOf(ctx context.Context, s store.Store, run ledger.Run, asJSON bool) error {
	report, err := reportOf(ctx, s, run)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(report)
	}
	return report.WriteTable(p.stdout, nil)
}

// completion makes the command that prints a shell's completion of this program's commands and flags.
func (p *program) completion() *cobra.Command {
	c := p.command("completion SHELL", "completion for bash, zsh, fish or powershell", nil, nil)
	c.ValidArgs = []string{"bash", "zsh", "fish", "powershell"}
	c.Long = c.Short + ".\nSuch as: source <(pipeline completion bash)"
	c.RunE = func(c *cobra.Command, w []string) error {
		root := c.Root()
		root.Use = filepath.Base(os.Args[0]) // the name by which the shell calls it
		switch w[0] {
		case "bash":
			return root.GenBashCompletionV2(p.stdout, true)
		case "zsh":
			return root.GenZshCompletion(p.stdout)
		case "fish":
			return root.GenFishCompletion(p.stdout, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(p.stdout)
		}
		return usage.Errorf("completion %s: use %s%s", w[0], usage.Or(c.ValidArgs), meant(w[0], c.ValidArgs))
	}
	return c
}

// build is what this program was built from.
type build struct {
	Version  string    `json:"version"`
	Commit   string    `json:"commit"`
	Time     time.Time `json:"time,omitzero"`
	Modified bool      `json:"modified,omitempty"`
	Go       string    `json:"go"`
	Beam     string    `json:"beam"`
}

// built reads what the Go toolchain recorded. A test's binary, and one of `go run`, has no commit.
func built() build {
	v := build{Version: "devel", Commit: "unknown"}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = b.GoVersion
	if b.Main.Version != "" && b.Main.Version != "(devel)" {
		v.Version = b.Main.Version
	}
	for _, d := range b.Deps {
		if d.Path == "github.com/apache/beam/sdks/v2" {
			v.Beam = d.Version
		}
	}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time, _ = time.Parse(time.RFC3339, s.Value) // zero if it is none
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// version makes the command that prints what this program was built from.
func (p *program) version() *cobra.Command {
	var asJSON bool
	return p.command("version", "the program's version, with Go's and Beam's", jsonLines(&asJSON), func(context.Context, []string) error {
		v := built()
		if asJSON {
			return json.NewEncoder(p.stdout).Encode(v)
		}
		changed := ""
		if v.Modified {
			changed = ", with changes that are not committed"
		}
		_, err := fmt.Fprintf(p.stdout, "seed-engine %s\ncommit %s%s\n%s\nBeam %s\n", v.Version, v.Commit, changed, v.Go, v.Beam)
		return err
	})
}
