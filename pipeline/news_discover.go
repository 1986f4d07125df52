package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// newsCommands are those that write files of publishers.
func newsCommands() []Command {
	var n newFile
	var settings string
	var snap snapshot
	return []Command{
		{Under: "init", Asks: true, Use: "publisher URL", Short: "write a publisher's file for the news job",
			Long: "writes a publisher's file for the news job: from robots.txt, the sitemaps and feeds that the site at the URL names, and its front page.\n" +
				"Comments in the file say what speaks for each line, and what was read of two articles. Nothing is stored.",
			Options: func(s *option.Set) {
				n.options(s)
				s.Text(&settings, "news-config", "", "settings of the job: delaySeconds")
			},
			Do: func(ctx context.Context, c *RunOptions, _ store.Store, w []string, stdout, _ io.Writer) error {
				if err := n.check(); err != nil { // before sites are asked
					return err
				}
				file, err := discoverNews(ctx, *c, settings, w[0])
				if err != nil {
					return err
				}
				return n.write(file, stdout)
			}},
		{Under: "init", Use: "snapshot", Short: "make a publisher's snapshot of a saved page for its tests: the page, and what is read from it as JSON", Options: snap.options,
			Do: func(_ context.Context, _ *RunOptions, _ store.Store, _ []string, stdout, _ io.Writer) error {
				return snap.take(stdout)
			}},
	}
}

// discoverNews returns a publisher's file, made of what the site at an address shows. Nothing is stored.
func discoverNews(ctx context.Context, c RunOptions, settings, raw string) (file string, err error) {
	base, err := webURL("init publisher ", raw, "a publisher's site, such as https://news.example.org")
	if err != nil {
		return "", err
	}
	n := newsOptions{Settings: settings}
	if err := n.load(c.Web == "demo", nil); err != nil {
		return "", err
	}
	cfg := news.Config{Settings: n.loaded}.Web(c.WebConfig(""))
	end, err := startDemo(c, newsDemo, &cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	client, pacer, err := c.asking(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	e := &engine.Engine{Config: n.loaded, UserAgent: cfg.UserAgent, Web: client, Log: slog.New(slog.DiscardHandler), Options: engine.Options{NoDelay: c.Web == "demo"},
		Polite: c.PoliteConfig(), Pacer: pacer}
	return e.Discover(ctx, &url.URL{Scheme: base.Scheme, Host: base.Host})
}

// snapshot are the options of a publisher's snapshot of a saved page: the page as it is, and a JSON file with what is read from it.
type snapshot struct{ id, address, page, dir, name, contentType, publishers string }

func (n *snapshot) options(s *option.Set) {
	s.Text(&n.id, "provider", "", "the publisher's id")
	s.Text(&n.address, "url", "", "the page's address")
	s.Text(&n.page, "page", "", "the saved page, with its original bytes")
	s.Text(&n.dir, "dir", "", "folder of the snapshot (default: the publisher's testdata)")
	s.Text(&n.name, "name", "", "the snapshot's name without its extension (default: the page's)")
	s.Text(&n.contentType, "content-type", "", "the Content-Type header that came with the page")
	s.Text(&n.publishers, "publishers", "", "directory with declarative publishers")
}

func (n *snapshot) take(stdout io.Writer) error {
	if n.id == "" || n.address == "" || n.page == "" {
		return usage.Errorf("use init snapshot --provider=ID --url=ADDRESS --page=SAVED.html; see `help init snapshot`")
	}
	all := news.Registered()
	if n.publishers != "" {
		declared, _, err := provider.ReadDeclarations(os.DirFS(n.publishers))
		if err != nil {
			return usage.Errorf("--publishers: %w", err)
		}
		all = append(all, declared...)
	}
	i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.ID() == n.id })
	if i < 0 {
		return unknown("provider", n.id, "provider", provider.IDs(all))
	}
	body, err := os.ReadFile(n.page)
	if err != nil {
		return usage.Errorf("--page: %w", err)
	}
	if n.dir == "" {
		n.dir = filepath.Join("transforms", "news", n.id, "testdata")
	}
	if n.name == "" {
		n.name = strings.TrimSuffix(filepath.Base(n.page), filepath.Ext(n.page))
	}
	s, err := provider.Take(all[i], body, n.contentType, n.address)
	if err != nil {
		return err
	}
	if err := s.Write(n.dir, n.name, body); err != nil {
		return err
	}
	at := filepath.Join(n.dir, n.name)
	_, err = fmt.Fprintf(stdout, "wrote %s.html and %s.json; check them before you rely on them:\n  title      %s\n  published  %s\n  body       %d characters\n",
		at, at, s.Article.Title, s.Article.Published, len([]rune(s.Article.Body)))
	return err
}
