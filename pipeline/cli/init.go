package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// initialize makes the commands that write a file for a person to complete.
func (p *program) initialize() *cobra.Command {
	return family("init", "write a file: publisher, snapshot, bot-page", p.initPublisher(), p.snapshot(), p.botPage())
}

func (p *program) initPublisher() *cobra.Command {
	var to, contact, settings string
	c := p.command("publisher URL", "write a publisher's file for the news job", func(s *option.Set) {
		s.Text(&to, "to", "", "where the file goes, which must not be there; without it, to standard output")
		s.Text(&contact, "contact", "", "URL or mail address for the site's owner; it becomes part of the User-Agent")
		s.Text(&settings, "news-config", "", "settings of the job: userAgent, delaySeconds")
	}, func(ctx context.Context, w []string) error {
		if err := errors.Join(p.o.checkWeb(), p.o.checkTurns()); err != nil {
			return err
		}
		if to != "" { // before sites are asked
			if _, err := os.Lstat(to); err == nil {
				return usage.Errorf("--to=%s is there already; remove it, or name another file", to)
			}
			if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
				return usage.Errorf("--to=%s: there is no directory %s; create it first", to, filepath.Dir(to))
			}
		}
		file, err := pipeline.DiscoverNews(ctx, p.o.RunOptions, settings, contact, w[0])
		if err != nil {
			return err
		}
		if to == "" {
			_, err = io.WriteString(p.stdout, file)
			return err
		}
		out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file that others may read, named by the user
		if err != nil {
			return fmt.Errorf("writing the publisher's file: %w", err)
		}
		_, err = io.WriteString(out, file)
		if err = errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("writing the publisher's file: %w", err)
		}
		return nil
	}, asking...)
	c.Long = "writes a publisher's file for the news job: from robots.txt, the sitemaps and feeds that the site at the URL names, and its front page.\n" +
		"Comments in the file say what speaks for each line, and what was read of two articles. Nothing is stored."
	return c
}
