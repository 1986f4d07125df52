package cli

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/newsfork/seed-engine/io/web/botpage"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const botPageUsage = `pipeline bot-page --operator=NAME --contact=MAIL|URL [--addresses=IP,NETWORK…]
                                  prints, as HTML, the page that the crawlers' User-Agent should lead to: who
                                  crawls and why, how to reach them, how to be left out. Host it at that
                                  address; a server with a bot section in its --config serves it at /bot
`

// botPageCommand prints the page about the crawlers.
func botPageCommand(_ context.Context, args []string, stdout, _ io.Writer) error {
	f := flag.NewFlagSet("bot-page", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var p botpage.Page
	f.StringVar(&p.Operator, "operator", "", "")
	f.StringVar(&p.Contact, "contact", "", "")
	addresses := f.String("addresses", "", "")
	w, err := words(f, args)
	switch {
	case err != nil:
		return err
	case len(w) > 0:
		return usage.Errorf("bot-page takes flags only, not %q; see `help bot-page`", w[0])
	}
	if *addresses != "" {
		p.Addresses = strings.Split(*addresses, ",")
	}
	if err := p.Check(); err != nil {
		return usage.Errorf("bot-page: --%w", err)
	}
	b, err := p.HTML()
	if err == nil {
		_, err = stdout.Write(b)
	}
	return err
}
