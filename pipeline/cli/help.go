package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

func help(args []string, w io.Writer) error {
	topic := ""
	switch len(args) {
	case 0:
	case 1:
		topic = args[0]
	default:
		return usage.Errorf("help takes one word, not %q; use %s", strings.Join(args, " "), usage.Or(topics()))
	}
	if topic == "" || topic == "help" {
		_, err := fmt.Fprintf(w, programUsage, strings.Join(pipeline.Names(), "|"), strings.Join(topics(), "|"))
		if err != nil {
			return err
		}
		return help([]string{"seed"}, w)
	}
	for _, c := range commands() {
		if c.name == topic {
			_, err := io.WriteString(w, c.usage)
			return err
		}
	}
	if _, ok := pipeline.Named(topic); !ok {
		return usage.Errorf("help %s: there is no such job or command; use %s", topic, usage.Or(topics()))
	}
	if _, err := fmt.Fprintf(w, "pipeline --job=%s [flags]\n\nFlags, each also as SEED_NAME in the environment (--host-delay: SEED_HOST_DELAY) or in the --config file:\n", topic); err != nil {
		return err
	}
	var o Options
	f := flag.NewFlagSet("", flag.ContinueOnError)
	for _, p := range newFlags(&o).All {
		if p.Means(topic) {
			f.Var(o.Flags.Lookup(p.Name).Value, p.Name, p.Usage)
			f.Lookup(p.Name).DefValue = p.DefaultOf(topic)
		}
	}
	f.SetOutput(w)
	f.PrintDefaults()
	for _, c := range jobCommands() {
		if c.name != topic {
			continue
		}
		if _, err := fmt.Fprint(w, "\n"+c.usage); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nBeam's own flags (--endpoint, --environment_type, --parallelism, --project, --region, --staging_location, --worker_binary …) keep their names.")
	return err
}

// topics are the jobs and commands that help explains.
func topics() []string {
	return append(pipeline.Names(), commandNames()...)
}

const programUsage = `pipeline [--job=%s] [flags]                  runs a job
pipeline runs [list|show|log|cancel|pause|resume|purge] [ID]  shows runs, controls and removes them
pipeline dead-letters [list|show|replay|dismiss|reopen] [ID]  failures that a person should see
pipeline alerts [list|silence|end]                     what fires; keeps alerts from being sent for a while
pipeline domains [--failed|--index] [--run=last]        what became of each domain, and why
pipeline changes --job=seed                             what the last run of a job changed
pipeline export --what=domains --to=FILE …             what the jobs found, as Parquet, JSON lines or CSV
pipeline materialize|compact                           packed results of the seed job
pipeline purge DOMAIN|--older-than=90d                 removes results of the seed job
pipeline snapshot --provider=ID --url=… --page=FILE     saves a news page for a publisher's tests
pipeline removals [list|request|do|show]                removes what was kept of a docs provider that asks for it
pipeline docs unblock PROVIDER [URL]                    requests docs pages again that answered 403
pipeline bot-page --operator=NAME --contact=MAIL        the page about the crawlers, as HTML
pipeline robots URL                                     may this crawler fetch it, by which line
pipeline news discover URL                              writes a news publisher's file of what its site shows
pipeline version
pipeline help [%s]

`
