package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const robotsUsage = `pipeline robots URL [--job=NAME] [--agent=TOKEN] [--json]
                                  fetches the robots.txt of the URL's host, and nothing else, and
                                  prints whether the crawler may fetch the URL, and by which line

  --job=NAME       whose name counts: the jobs have different User-Agents (default: seed)
  --agent=TOKEN    another crawler's name; the request is still sent under the job's own
  --json           as JSON
  --web=demo       asks the simulated web; --connect-to, --allow-private, --host-delay,
                   --max-crawl-delay, --turns and --config as for runs

Exit code 0: allowed; 3: disallowed; 1: robots.txt cannot be fetched; 2: wrong usage.
Where the crawl delay is longer than --max-crawl-delay, a run visits no allowed URL either:
the line "not visited" says so, and "crawl_delay_too_long" in JSON.
`

// errDisallowed ends robotsCommand for a URL that may not be fetched.
var errDisallowed = errors.New("robots.txt disallows the URL")

// robotsCommand prints what a site's robots.txt says about a URL.
func robotsCommand(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var o Options
	newFlags(&o)
	f := flag.NewFlagSet("robots", flag.ContinueOnError)
	agent, asJSON := f.String("agent", "", ""), f.Bool("json", false, "")
	w, err := o.readCommand(f, args, "job", "web", "connect-to", "allow-private", "host-delay", "max-crawl-delay", "turns", "config")
	if err != nil {
		return err
	}
	if len(w) != 1 {
		return usage.Errorf("robots takes one URL; write pipeline robots https://example.org/page")
	}
	j, ok := pipeline.Find(o.Jobs, o.Job)
	if !ok {
		return pipeline.NoJob(o.Job)
	}
	if err := errors.Join(o.checkWeb(), o.checkTurns()); err != nil {
		return err
	}
	a, err := j.AskRobots(ctx, o.RunOptions, *agent, w[0])
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(a)
	} else {
		err = writeRobots(stdout, a, o.MaxCrawlDelay)
	}
	if err == nil && !a.Allowed {
		err = fmt.Errorf("%w (line %d: %s)", errDisallowed, a.Line, a.Rule)
	}
	return err
}

func writeRobots(w io.Writer, a pipeline.RobotsAnswer, longest time.Duration) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	verdict := "allowed"
	if !a.Allowed {
		verdict = "disallowed"
	}
	line(verdict, "%s", a.URL)
	line("agent", "%s", a.Agent)
	switch {
	case a.Line > 0:
		line("by", "line %d: %s", a.Line, a.Rule)
	case a.Status/100 != 2:
		line("by", "no line: there is no robots.txt (status %d; 0: no answer that counts), which allows everything (RFC 9309 section 2.3.1)", a.Status)
	default:
		line("by", "no line applies to it")
	}
	if a.Group == "" {
		line("group", "none is for this agent")
	} else {
		line("group", "User-agent: %s (line %s)", a.Group, strings.Trim(strings.ReplaceAll(fmt.Sprint(a.GroupLines), " ", ", "), "[]"))
	}
	delay := "none"
	if a.CrawlDelay > 0 {
		delay = time.Duration(a.CrawlDelay * float64(time.Second)).String()
	}
	line("crawl delay", "%s", delay)
	if a.TooLong {
		line("not visited", "that is longer than --max-crawl-delay=%s, so a run asks this host for nothing but robots.txt", longest)
	}
	line("robots.txt", "%s", cmp.Or(a.FinalURL, a.RobotsURL))
	if a.Truncated {
		line("", "only its beginning was read, because it is too long")
	}
	for _, s := range a.Sitemaps {
		line("sitemap", "%s", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
