package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/web/botpage"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// botPage makes the command that prints the page about the crawlers.
func (p *program) botPage() *cobra.Command {
	var (
		page      botpage.Page
		addresses string
	)
	c := p.command("bot-page", "print, as HTML, the page that the crawlers' User-Agent should lead to", func(s *option.Set) {
		s.Text(&page.Operator, "operator", "", "who crawls")
		s.Text(&page.Contact, "contact", "", "mail address or URL")
		s.Text(&addresses, "addresses", "", "IP addresses and networks of the crawlers, separated by commas")
	}, func(context.Context, []string) error {
		if addresses != "" {
			page.Addresses = strings.Split(addresses, ",")
		}
		if err := page.Check(); err != nil {
			return usage.Errorf("bot-page: --%w", err)
		}
		b, err := page.HTML()
		if err == nil {
			_, err = p.stdout.Write(b)
		}
		return err
	})
	c.Long = "prints the page that says who crawls and why, how to reach them, and how to be left out. Host it at the User-Agent's address;\n" +
		"a server with a bot section in its --config serves it at /bot."
	return c
}
