package provider

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// FileType is the struct whose fields are those of a publisher's file.
var FileType = reflect.TypeFor[declaration]()

// declaration is a publisher as a YAML file, without code. Only baseUrl is required;
// the default extractor does the rest. The comments and tags of the fields are the
// reference page of the file and its JSON Schema (pipeline/reference).
type declaration struct {
	// Name of the publisher in rows and reports. Without it, the host of baseUrl with - for
	// each dot.
	ID string `yaml:"id" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$"`
	// The publisher's name for readers. It is removed from the ends of titles. Without it,
	// the host of baseUrl.
	Press string `yaml:"press"`
	// The publisher's site. robots.txt is read at the root of its host, whatever path
	// this has, and articles are on this host.
	BaseURL string `yaml:"baseUrl" jsonschema:"required" pattern:"^https?://"`
	// Sitemaps to read when robots.txt names none, or when nothing else can be read. Without
	// any, and without feeds, the publisher is skipped and the report says so.
	SitemapHints []string `yaml:"sitemapHints" pattern:"^https?://"`
	// RSS, Atom and JSON feeds to read as well as the sitemaps. Robots.txt of a feed's host is obeyed.
	Feeds []string `yaml:"feeds" pattern:"^https?://"`
	// Whether the links of the page at baseUrl and of its sections are read as well: those that
	// are articles by articleUrl, or by their form. They have no dates: the first are taken as the newest.
	Homepage bool `yaml:"homepage" jsonschema:"default=false"`
	// Regular expression over a URL's path and query: which URLs are articles. Without it,
	// those that have an article's usual form (a date, a long number, a title of four words
	// or more), and when neither robots.txt nor this file names a sitemap or a feed, the
	// feeds that the page at baseUrl links to are read, else /sitemap.xml, else its links.
	ArticleURL string `yaml:"articleUrl"`
	// Regular expression over path and query: URLs that articleUrl matches and that are
	// no articles.
	ExcludeURL string `yaml:"excludeUrl"`
	// Regular expression over path and query. Its first group is the article's id.
	ExternalID string `yaml:"externalId"`
	// The key of the publisher's rows: external_id when URLs change (it needs
	// externalId), title_published when nothing else is stable.
	Unique Unique `yaml:"unique" jsonschema:"enum=url,enum=external_id,enum=title_published,default=url"`
	// Query parameters that identify a page. Without it, all that do not track visitors.
	KeepQuery []string `yaml:"keepQuery"`
	// The time zone of times without an offset: a name of the IANA database. Without it, that
	// of the country whose domain baseUrl has, if it has only one; else Asia/Seoul.
	Zone string `yaml:"zone"`
	// Whether up to 800 characters of the beginning of an article that is not free are stored,
	// with paywall teaser. Without it, such articles are counted and not stored.
	Teasers bool `yaml:"teasers" jsonschema:"default=false"`
	// The least pause between two requests to the publisher, such as 5s, up to 1h.
	Delay string `yaml:"delay" pattern:"^[0-9][0-9a-zµ.]*$"`
	// The shortest time between two crawls with --due, such as 30m. The time is half of the
	// mean time between the newest articles, within these two.
	MinInterval string `yaml:"minInterval" jsonschema:"default=15m"`
	// The longest time between two crawls with --due, such as 24h.
	MaxInterval string `yaml:"maxInterval" jsonschema:"default=6h"`

	// CSS selector of the title, tried before the defaults.
	Title string `yaml:"title"`
	// CSS selector of the body, tried before the defaults.
	Body string `yaml:"body"`
	// CSS selector of the time of publication, tried before the defaults.
	Published string `yaml:"published"`
	// CSS selectors of elements to remove from the body.
	Remove []string `yaml:"remove"`
	// Regular expressions. Lines of the body that match are removed.
	Drop []string `yaml:"drop"`
}

// ReadDeclarations reads every YAML file of files, sorted by name, and returns the texts too. An error names
// the file, the key and what is wrong with it. Unknown keys are refused.
func ReadDeclarations(files fs.FS) (all []Provider, texts []string, err error) {
	names, err := yamltext.Files(files)
	if err != nil {
		return nil, nil, fmt.Errorf("listing publishers: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a publisher: %w", err)
		}
		p, err := Declared(text)
		if err != nil {
			return nil, nil, fmt.Errorf("reading publisher %s: %w", path.Base(name), err)
		}
		all, texts = append(all, p), append(texts, string(text))
	}
	return all, texts, Check(all)
}

// Declared makes a provider from one YAML file.
func Declared(text []byte) (Provider, error) {
	var d declaration
	if err := yamltext.Strict(text, &d); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	if err := absolute(d.BaseURL); err != nil {
		return nil, fmt.Errorf("baseUrl: %w", err)
	}
	base, err := url.Parse(d.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("baseUrl: %w", err)
	}
	host := canonical.Host(base)
	d.ID, d.Press = cmp.Or(d.ID, idOf(host)), cmp.Or(d.Press, host)
	p := &declared{d: d, policy: Policy{Unique: cmp.Or(d.Unique, ByURL), Keep: d.KeepQuery, Feeds: d.Feeds, Discover: d.ArticleURL == "", Homepage: d.Homepage, Teasers: d.Teasers}}
	for _, e := range []struct {
		key, text string
		to        **regexp.Regexp
	}{{"articleUrl", d.ArticleURL, &p.is}, {"excludeUrl", d.ExcludeURL, &p.not}, {"externalId", d.ExternalID, &p.id}} {
		if e.text == "" {
			continue
		}
		var err error
		if *e.to, err = regexp.Compile(e.text); err != nil {
			return nil, fmt.Errorf("%s: %w", e.key, err)
		}
	}
	if p.id != nil && p.id.NumSubexp() < 1 {
		return nil, errors.New("externalId: put the part that is the id in parentheses")
	}
	if p.policy.Unique == ByExternalID && p.id == nil {
		return nil, errors.New("unique: external_id needs externalId")
	}
	zone, err := time.LoadLocation(cmp.Or(d.Zone, zoneOf(host), "Asia/Seoul"))
	if err != nil {
		return nil, fmt.Errorf("zone: %w", err)
	}
	p.policy.Zone = zone
	if p.policy.Delay, err = polite.ReadPause(d.Delay, polite.MaxDelay); err != nil {
		return nil, fmt.Errorf("delay %q: %w", d.Delay, err)
	}
	if err := p.policy.Often.read(d.MinInterval, d.MaxInterval); err != nil {
		return nil, err
	}
	p.rules, err = article.Rules{Title: d.Title, Body: d.Body, Published: d.Published, Remove: d.Remove, Drop: d.Drop, Site: d.Press, Zone: zone}.Compile()
	if err != nil {
		return nil, err
	}
	return p, Check([]Provider{p})
}

type declared struct {
	d           declaration
	policy      Policy
	is, not, id *regexp.Regexp
	rules       *article.Compiled
}

// Press is the publisher's name for readers.
func (p *declared) Press() string { return p.d.Press }

func (p *declared) ID() string             { return p.d.ID }
func (p *declared) BaseURL() string        { return p.d.BaseURL }
func (p *declared) SitemapHints() []string { return p.d.SitemapHints }
func (p *declared) Policy() Policy         { return p.policy }

func (p *declared) IsArticleURL(u *url.URL) bool {
	at := u.RequestURI()
	is := p.is != nil && p.is.MatchString(at) || p.is == nil && looksLikeArticle(u)
	return is && Hosts(p.d.BaseURL, u) && (p.not == nil || !p.not.MatchString(at))
}

func (p *declared) ParseArticle(page []byte, contentType string, u *url.URL) (Article, error) {
	id := ""
	if p.id != nil {
		if m := p.id.FindStringSubmatch(u.RequestURI()); m != nil {
			id = m[1]
		}
	}
	return Read(page, contentType, p.rules, p.d.Press, id)
}
