package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// errDisallowed ends try for a URL that may not be fetched.
var errDisallowed = errors.New("robots.txt disallows the URL")

// asking are the options of commands that send a request or two.
var asking = []string{"web", "connect-to", "allow-private", "max-crawl-delay", "turns", "politeness", "bot", "contact", "purpose", "config"}

// try makes the command that says what a run would make of a URL.
func (p *program) try() *cobra.Command {
	var (
		agent  string
		asJSON bool
	)
	return p.command("try URL", "may it be fetched, and what would be read of it", func(s *option.Set) {
		s.Text(&agent, "agent", "", "another crawler's name; the request is still sent under the job's own")
		s.Yes(&asJSON, "json", false, "the answer of robots.txt as JSON")
	}, func(ctx context.Context, w []string) error {
		p.o.Job = cmp.Or(p.o.Job, "seed")
		j, ok := pipeline.Find(p.o.Jobs, p.o.Job)
		if !ok {
			return pipeline.NoJob(p.o.Job)
		}
		if err := errors.Join(p.o.checkWeb(), p.o.checkTurns()); err != nil {
			return err
		}
		a, err := j.AskRobots(ctx, p.o.RunOptions, agent, w[0])
		if err != nil {
			return err
		}
		if asJSON {
			err = printable.JSON(p.stdout, a)
		} else {
			err = writeRobots(p.stdout, a, p.o.MaxCrawlDelay)
		}
		if err == nil && !a.Allowed {
			err = fmt.Errorf("%w (line %d: %s)", errDisallowed, a.Line, a.Rule)
		}
		return err
	}, append(asking, "job", "host-delay")...)
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
	for _, d := range a.Politeness {
		line("politeness", "%s %s, by the pattern %s", d.Setting, d.Value, d.Pattern)
	}
	line("robots.txt", "%s", cmp.Or(a.FinalURL, a.RobotsURL))
	if a.Truncated {
		line("", "only its beginning was read, because it is too long")
	}
	for _, s := range a.Sitemaps {
		line("sitemap", "%s", s)
	}
	if a.Reserved != nil {
		line("not handed on", "%s", a.Reserved)
	}
	v := a.Rights.Verdicts
	line("rights", "search %s, ai-input %s, ai-train %s, archive %s; a record of preferences, no legal advice", v.Search, v.AIInput, v.AITrain, v.Archive)
	if a.Rights.Why != "" {
		line("", "nothing is concluded: %s", a.Rights.Why)
	}
	for _, s := range a.Rights.Statements {
		line("", "%s", strings.TrimSpace(fmt.Sprintf("line %d: %s: %s %s %s", s.Line, s.Raw, s.Says, strings.Join(s.Agents, ", "), s.Only)))
	}
	for _, d := range a.Rights.Documents {
		line("", "%s, sha256 %s", d.At, d.SHA256)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
