package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// botPage makes the command that prints what is published about the crawlers.
func (p *program) botPage() *cobra.Command {
	var part string
	c := p.command("bot-page", "print the page that the crawlers' User-Agent should lead to, or what belongs next to it", func(s *option.Set) {
		s.Text(&part, "part", "page", "page, card, directory (of keys) or addresses").OneOf("page", "card", "directory", "addresses")
	}, func(context.Context, []string) error {
		if err := p.o.ReadBot(false); err != nil {
			return err
		}
		if err := p.o.Bot.CheckPage(); err != nil {
			return usage.Errorf("bot-page: bot: %w", err)
		}
		all := botauth.Publish(&p.o.Bot)
		i := slices.IndexFunc(all, func(d botauth.Published) bool { return d.Name == part })
		if i < 0 {
			return usage.Errorf("--part=%s: it needs page in the block bot:, and key for a directory, addresses for their list", part)
		}
		d, err := all[i].Make(time.Now())
		if err != nil {
			return err
		}
		p.log("host it at %s of the page's host, with these headers:", all[i].Path)
		if err := d.Header.Write(p.stderr); err != nil {
			return err
		}
		_, err = p.stdout.Write(d.Body)
		return err
	}, "bot", "contact", "config")
	c.Long = "prints the page that says who crawls and why, how to reach them, and how to be left out, or with --part the agent's card, the key\n" +
		"directory or the list of addresses, as the block bot: says. A server with this block in its --config serves them."
	return c
}
