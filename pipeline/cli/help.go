package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const (
	// helpAll is the flag that makes a job's help show every flag.
	helpAll = "help-all"
	// columns is the width of help.
	columns = 110
)

// helpCommand explains a command.
func (p *program) helpCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "help [COMMAND…]", Short: "explain a command; `help JOB --" + helpAll + "` shows all flags of a job", DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, w []string) error {
			of, rest, err := c.Root().Find(w)
			if err != nil || len(rest) > 0 {
				return noCommand(of, append(rest, w...)[0])
			}
			if all && of.Flags().Lookup(helpAll) != nil {
				if err := of.Flags().Set(helpAll, "true"); err != nil {
					return fmt.Errorf("help: %w", err)
				}
			}
			return p.help(of)
		}}
	c.Flags().BoolVar(&all, helpAll, false, "show every flag of a job")
	return c
}

// help explains a command.
func (p *program) help(c *cobra.Command) error {
	var b strings.Builder
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Hidden = true
	switch job := jobName(c); {
	case c == c.Root() || c.Hidden && job != "":
		overview(&b, c.Root())
	case job != "":
		p.jobHelp(&b, c, job)
	default:
		fmt.Fprintf(&b, "%s\n\n%s\n", c.UseLine(), cmp.Or(c.Long, c.Short))
		for _, sub := range c.Commands() {
			if !sub.Hidden && jobName(sub) == "" {
				fmt.Fprintf(&b, "\n  %-34s %s", sub.Use, sub.Short)
			}
		}
		if c.HasAvailableSubCommands() {
			b.WriteByte('\n')
		}
		if text := c.LocalFlags().FlagUsagesWrapped(columns); text != "" {
			b.WriteString("\nFlags\n" + text)
		}
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

// jobName is the job of a command; "": none.
func jobName(c *cobra.Command) string { return strings.TrimSuffix(c.Annotations[jobOf], isFamily) }

// overview lists the commands in at most 25 lines.
func overview(b *strings.Builder, root *cobra.Command) {
	b.WriteString("pipeline COMMAND [flags]    crawls the web, each domain once; `help COMMAND` explains a command\n")
	for _, g := range root.Groups() {
		title, jobs := g.ID, []string{}
		line := func(use, short string) {
			fmt.Fprintf(b, "%-6s %-32s %s\n", title, use, short)
			title = ""
		}
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && jobName(c) != "" {
				jobs = append(jobs, c.Name())
			}
		}
		if len(jobs) > 0 {
			line(strings.Join(jobs, " "), "run this job")
		}
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && jobName(c) == "" && !c.Hidden {
				line(c.Use, c.Short)
			}
		}
	}
	b.WriteString("Another word than these is refused. A flag first means seed: pipeline --web=demo.\n")
}

// jobHelp lists a job's flags: those in groups, or with --help-all every one.
func (p *program) jobHelp(b *strings.Builder, c *cobra.Command, job string) {
	fmt.Fprintf(b, "%s [flags]    %s\n", c.CommandPath(), c.Short)
	all, _ := c.Flags().GetBool(helpAll)
	groups, more, n := map[option.Group]*pflag.FlagSet{}, pflag.NewFlagSet("", pflag.ContinueOnError), 0
	for _, g := range option.Groups {
		groups[g] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	for _, o := range p.o.Flags.All {
		f := c.Flags().Lookup(o.Name)
		switch {
		case f == nil:
		case o.Group != "":
			groups[o.Group].AddFlag(f)
			n++
		default:
			more.AddFlag(f)
			n++
		}
	}
	for _, g := range option.Groups {
		if groups[g].HasFlags() {
			fmt.Fprintf(b, "\n%s\n%s", g, groups[g].FlagUsagesWrapped(columns))
		}
	}
	if all {
		fmt.Fprintf(b, "\nMore\n%s", more.FlagUsagesWrapped(columns))
	} else {
		fmt.Fprintf(b, "\n--%s shows all %d flags. ", helpAll, n)
	}
	b.WriteString("Each is also SEED_NAME in the environment (--host-delay: SEED_HOST_DELAY) and a key of --config.\n" +
		"Beam's own flags keep their names: --" + strings.Join(oftenBeams, ", --") + " …\n")
	for _, sub := range c.Commands() {
		fmt.Fprintf(b, "\n%s    %s\n", sub.UseLine(), sub.Short)
	}
}

// words checks what follows a command, by its Use: WORD, [WORD] and WORD… .
func words(use string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, w := range strings.Fields(use)[1:] {
		most++
		if !strings.HasPrefix(w, "[") {
			least++
		}
		if strings.Contains(w, "…") {
			most = 1 << 20
		}
	}
	return func(c *cobra.Command, w []string) error {
		switch {
		case len(w) > most && c.HasSubCommands():
			return noCommand(c, w[0])
		case len(w) < least || len(w) > most:
			return usage.Errorf("%s: write %s; see %s", strings.TrimSpace(path(c)+" "+strings.Join(w, " ")), c.UseLine(), helpOf(c))
		}
		return nil
	}
}

// path is a command's name with those above it, as `help` takes it.
func path(c *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), c.Root().Name()))
}

// helpOf is how a command is explained.
func helpOf(c *cobra.Command) string {
	if c.Name() == "run" {
		return "`help JOB --" + helpAll + "`"
	}
	return "`" + strings.TrimSpace("help "+path(c)) + "`"
}

// names are the commands below one.
func names(c *cobra.Command) (all []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, sub.Name())
		}
	}
	return all
}

// noCommand is the error for a word that is no command.
func noCommand(c *cobra.Command, word string) error {
	all := names(c)
	if len(all) == 0 {
		return usage.Errorf("%s %q is no command: %[1]s has none below it; see %[3]s", path(c), word, helpOf(c))
	}
	return usage.Errorf("%s is no command%s; use %s, or see %s", strings.TrimSpace(path(c)+" "+strconv.Quote(word)), meant(word, all), usage.Or(all), helpOf(c))
}
