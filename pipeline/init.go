package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/apidesc"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// newFile is a file that a command writes, and which must not be there.
type newFile struct{ to string }

func (n *newFile) options(s *option.Set) {
	s.Text(&n.to, "to", "", "where the file goes, which must not be there; without it, to standard output")
}

// check refuses the options before a request is sent.
func (n *newFile) check() error {
	if n.to == "" {
		return nil
	}
	if _, err := os.Lstat(n.to); err == nil {
		return usage.Errorf("--to=%s is there already; remove it, or name another file", n.to)
	}
	dir := filepath.Dir(n.to)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir) // which write makes the directory in
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage.Errorf("--to=%s: there is no directory %s; create it first", n.to, dir)
	}
	return nil
}

func (n *newFile) write(text string, stdout io.Writer) error {
	if n.to == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	if err := os.Mkdir(filepath.Dir(n.to), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the file
		return fmt.Errorf("writing the file: %w", err)
	}
	out, err := os.OpenFile(n.to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file that others may read, named by the user
	if err == nil {
		_, err = io.WriteString(out, text)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	return nil
}

// webURL reads an address that a user gave as an option or a word of a command; like says what it should be.
func webURL(option, given, like string) (*url.URL, error) {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, usage.Errorf("%s%s: write the URL of %s", option, given, like)
	}
	return u, nil
}

// initCommand makes a command that writes a file, made of what a site shows.
func initCommand(what, job, long, agent string, sites func(*webtest.Web), draft drafter) Command {
	var n newFile
	return Command{Under: "init", Asks: true, Use: what + " URL", Short: "write a " + what + "'s file for the " + job + " job",
		Long: "writes a " + what + "'s file for the " + job + " job, " + long +
			"\nComments in the file say what speaks for each line, and what could not be told. Nothing is stored.",
		Options: n.options,
		Do: func(ctx context.Context, c *RunOptions, _ store.Store, w []string, stdout, _ io.Writer) error {
			at, err := webURL("init "+what+" ", w[0], "a page, such as https://shop.example.org/products/")
			if err != nil {
				return err
			}
			if err := n.check(); err != nil {
				return err
			}
			file, err := visitSite(ctx, *c, c.WebConfig(agent), sites, at, draft)
			if err != nil {
				return fmt.Errorf("reading %s: %w", at, err)
			}
			return n.write(file, stdout)
		}}
}

// visitor requests a few pages of one site, one at a time, as robots.txt allows.
type visitor struct {
	ask   *polite.Client
	rules *polite.Rules
	base  *url.URL
}

// initGap is the pause between two requests.
const initGap = time.Second

// drafter makes a file of the page that was found at an address, and of what it requests besides.
type drafter func(ctx context.Context, v *visitor, found, text string) (file string, err error)

// visitSite requests robots.txt and the page at an address, and returns the file that draft makes.
func visitSite(ctx context.Context, c RunOptions, cfg web.Config, sites func(*webtest.Web), at *url.URL, draft drafter) (file string, err error) {
	end, err := startDemo(c, sites, &cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	client, pacer, err := c.asking(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	p := robotsPolicy(c, cfg.UserAgent)
	p.Gap, p.NoDelay = polite.Range{Min: max(initGap, c.HostDelay), Max: max(initGap, c.HostDelay)}, c.Web == "demo"
	ask := &polite.Client{Web: client, Pacer: pacer, Policy: p}
	defer ask.Close()
	rules, err := ask.Robots(ctx, at)
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, whatNext(err))
	}
	v := &visitor{ask, rules, at}
	text, found, err := v.page(ctx, at.String())
	if err != nil {
		return "", err
	}
	return draft(ctx, v, found, text)
}

// elsewhereError refuses a redirect to another host.
type elsewhereError struct{ to *url.URL }

func (e *elsewhereError) Error() string {
	return "it redirects to another host: give the address there, " + e.to.String()
}

// get requests an address of the site. If there is an answer, it is returned with the error.
func (v *visitor) get(ctx context.Context, at string) (*web.Response, error) {
	r, err := v.ask.Get(ctx, polite.Request{URL: at, Accept: "text/html, application/xhtml+xml, */*;q=0.5",
		Timeout: 30 * time.Second, MaxBytes: 10 << 20, MaxRedirects: 5, Once: true,
		Scope: func(u *url.URL) error {
			if web.Site(u) != web.Site(v.base) {
				return &elsewhereError{u}
			}
			return nil
		}})
	var away *elsewhereError
	var disallowed *polite.DisallowedError
	switch {
	case errors.As(err, &away):
		return nil, away
	case errors.As(err, &disallowed):
		return nil, fmt.Errorf("robots.txt, line %d, disallows %s: %s; ask the site's owner, or leave it out",
			disallowed.Line, at, disallowed.Rule)
	case err != nil:
		return nil, err
	}
	verdict := answer.Classify(answer.Response{Status: r.Status, Header: r.Header, URL: at, Final: r.FinalURL, Body: r.Body})
	kind := strings.ReplaceAll(string(verdict.Kind), "_", " ")
	switch {
	case r.Status/100 != 2:
		return r, fmt.Errorf("%s answers with status %d (%s)", at, r.Status, kind)
	case verdict.Kind.Wall():
		return r, fmt.Errorf("%s shows something else in the page's place (%s): %s", at, kind, verdict.Evidence)
	}
	return r, nil
}

// probe requests something that need not be there. It returns no body if it is not (404, 410), or if that could not be told: then it adds
// the reason to untold. An error ends the visit.
func (v *visitor) probe(ctx context.Context, at string, untold *[]string) (body []byte, err error) {
	r, err := v.get(ctx, at)
	switch {
	case err == nil:
		return r.Body, nil
	case ctx.Err() != nil || errors.As(err, new(*polite.AbandonedError)):
		return nil, err
	case r == nil || r.Status != http.StatusNotFound && r.Status != http.StatusGone:
		*untold = append(*untold, err.Error())
	}
	return nil, nil
}

// page requests a page of HTML, and returns its text and where it was found.
func (v *visitor) page(ctx context.Context, at string) (text, found string, err error) {
	r, err := v.get(ctx, at)
	if err != nil {
		return "", "", err
	}
	text, _, err = charset.Decode(r.Body, r.Header.Get("Content-Type"))
	return text, r.FinalURL, err
}

// initSite makes a site's file for the catalog job.
func initSite(ctx context.Context, v *visitor, found, text string) (string, error) {
	d, err := catalog.NewDraft(found, text)
	if err != nil {
		return "", err
	}
	d.Sitemaps = v.rules.File.Sitemaps()
	products := map[string]string{}
	for _, product := range []string{d.Products[0], d.Products[len(d.Products)/2]} {
		text, found, err := v.page(ctx, product)
		if err != nil {
			return "", fmt.Errorf("%d links of the list look like products, but the first ones cannot be read: %w", len(d.Products), err)
		}
		products[found] = text
	}
	return d.Write(products)
}

// initPolicy makes a provider's policy for the docs job.
func initPolicy(ctx context.Context, v *visitor, found, text string) (string, error) {
	d, err := policy.NewDraft(found, text)
	if err != nil {
		return "", err
	}
	d.Delay = v.rules.Delay
	d.OpenAPI = apidesc.Shown([]byte(text))
	for _, place := range d.Lists() {
		body, err := v.probe(ctx, place, &d.LLMsUntold)
		if err != nil {
			return "", err
		}
		if list := string(body); llms.IsMarkdown(list) {
			for _, l := range llms.Links(list, 10_000) {
				d.LLMs = append(d.LLMs, l.Href)
			}
			d.LLMsAt = place
			break
		}
	}
	named := v.rules.File.Sitemaps()
	maps := append(slices.Clone(named[:min(len(named), 2)]), d.Sitemap())
	for i := 0; i < len(maps) && i < 4 && d.SitemapAt == ""; i++ {
		body, err := v.probe(ctx, maps[i], &d.SitemapUntold)
		if err != nil {
			return "", err
		}
		var urls []string
		read, err := sitemap.Scan(body, func(e sitemap.Entry) bool { urls = append(urls, e.Loc); return len(urls) < 50_000 })
		switch {
		case err != nil: // it is no sitemap
		case read.Kind == sitemap.Index && len(maps) < 5:
			maps = slices.Insert(maps, i+1, d.Likely(urls)...)
		default:
			d.AddSitemap(maps[i], urls)
		}
	}
	return d.Write(time.Now())
}

// initCommands are those of sites and providers.
func (c *catalogOptions) initCommands() []Command {
	return []Command{initCommand("site", catalog.Job, "from robots.txt, the list of products at the URL, and two of its products' pages.", "", c.demo, initSite)}
}

func (d *docsOptions) initCommands() []Command {
	return []Command{docsUnblock, initCommand("policy", docs.Job, "from robots.txt, the documentation's page at the URL, llms.txt and a sitemap.", docs.UserAgent, d.demo, initPolicy)}
}
