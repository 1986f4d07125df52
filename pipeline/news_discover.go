package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// DiscoverNews returns a publisher's file, made of what the site at an address shows.
// contact becomes part of the User-Agent. Nothing is stored.
func DiscoverNews(ctx context.Context, c RunOptions, settings, contact, raw string) (file string, err error) {
	base, err := url.Parse(raw)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.User != nil {
		return "", usage.Errorf("news discover %s: write the URL of a publisher's site, such as https://news.example.org", raw)
	}
	if contact != "" && !strings.Contains(contact, "@") && !strings.HasPrefix(contact, "https://") && !strings.HasPrefix(contact, "http://") {
		return "", usage.Errorf("--contact=%s: use a URL or a mail address", contact)
	}
	n := newsOptions{Settings: settings}
	if err := n.load(c.Web == "demo"); err != nil {
		return "", err
	}
	cfg := news.Config{Settings: n.loaded}.Web(c.WebConfig())
	if contact != "" {
		cfg.UserAgent += " (+" + contact + ")"
	}
	end, err := startDemo(c, newsDemo, &cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	client, err := web.New(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	pacer, err := c.pacer(cfg)
	if err != nil {
		return "", err
	}
	e := &engine.Engine{Config: n.loaded, UserAgent: cfg.UserAgent, Web: client, Log: slog.New(slog.DiscardHandler), NoDelay: c.Web == "demo",
		Polite: c.PoliteConfig(), Pacer: pacer}
	return e.Discover(ctx, &url.URL{Scheme: base.Scheme, Host: base.Host})
}
