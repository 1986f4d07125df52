package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const newsUsage = `pipeline news discover URL [--to=FILE] [--contact=URL|MAIL]
                                  writes a publisher's file for the news job: from robots.txt, the
                                  sitemaps and feeds that the site at the URL names, and its front
                                  page. Comments in the file say what speaks for each line, and what
                                  was read of two articles. Nothing is stored

  --to=FILE        where the file goes; without it, to standard output. A file that is there is not
                   overwritten
  --contact=…      URL or mail address for the site's owner; it becomes part of the User-Agent
  --news-config=…  settings of the job: userAgent, delaySeconds
  --web=demo       asks the simulated web; --connect-to, --allow-private, --max-crawl-delay,
                   --turns and --config as for runs

Exit code 0: written; 1: the site forbids it, cannot be read, or names no articles; 2: wrong usage.
`

// newsCommand runs the sub-commands of the news job.
func newsCommand(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var o Options
	newFlags(&o)
	f := flag.NewFlagSet("news", flag.ContinueOnError)
	to, contact, settings := f.String("to", "", ""), f.String("contact", "", ""), f.String("news-config", "", "")
	w, err := o.readCommand(f, args, "web", "connect-to", "allow-private", "max-crawl-delay", "turns", "config")
	if err != nil {
		return err
	}
	if len(w) != 2 || w[0] != "discover" {
		return usage.Errorf("news takes discover and one URL; write pipeline news discover https://news.example.org (a run of the job: pipeline --job=news)")
	}
	if err := errors.Join(o.checkWeb(), o.checkTurns()); err != nil {
		return err
	}
	if *to != "" {
		if _, err := os.Lstat(*to); err == nil {
			return usage.Errorf("--to=%s is there already; remove it, or name another file", *to)
		}
		if info, err := os.Stat(filepath.Dir(*to)); err != nil || !info.IsDir() { // before sites are asked
			return usage.Errorf("--to=%s: there is no directory %s; create it first", *to, filepath.Dir(*to))
		}
	}
	file, err := pipeline.DiscoverNews(ctx, o.RunOptions, *settings, *contact, w[1])
	if err != nil {
		return err
	}
	if *to == "" {
		_, err = io.WriteString(stdout, file)
		return err
	}
	out, err := os.OpenFile(*to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file that others may read, named by the user
	if err != nil {
		return fmt.Errorf("writing the publisher's file: %w", err)
	}
	if _, err = io.WriteString(out, file); err != nil {
		_ = out.Close()
		return fmt.Errorf("writing the publisher's file: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("writing the publisher's file: %w", err)
	}
	return nil
}
