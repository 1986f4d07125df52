package provider

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"time"
	_ "time/tzdata" // the time zones are then known on every machine

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Declaration is a publisher as a YAML file, without code. Only id, press, baseUrl
// and articleUrl are required; the default extractor does the rest. The comments and
// tags of the fields are the reference page of the file and its JSON Schema
// (pipeline/reference).
type Declaration struct {
	// Name of the publisher in rows and reports.
	ID string `yaml:"id" jsonschema:"required" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$"`
	// The publisher's name for readers. It is removed from the ends of titles.
	Press string `yaml:"press" jsonschema:"required,minLength=1"`
	// The publisher's site. robots.txt is read at the root of its host, whatever path
	// this has, and articles are on this host.
	BaseURL string `yaml:"baseUrl" jsonschema:"required" pattern:"^https?://"`
	// Sitemaps to read when robots.txt names none. With neither, the publisher is skipped
	// and the report says so.
	SitemapHints []string `yaml:"sitemapHints" pattern:"^https?://"`
	// Regular expression over a URL's path and query: which URLs are articles.
	ArticleURL string `yaml:"articleUrl" jsonschema:"required,minLength=1"`
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
	// The time zone of times without an offset: a name of the IANA database.
	Zone string `yaml:"zone" jsonschema:"default=Asia/Seoul"`

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

// ReadDeclarations reads every YAML file of files, sorted by name. An error names
// the file, the key and what is wrong with it. Unknown keys are refused.
func ReadDeclarations(files fs.FS) ([]Provider, error) {
	names, err := yamltext.Files(files)
	if err != nil {
		return nil, fmt.Errorf("listing publishers: %w", err)
	}
	var out []Provider
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading a publisher: %w", err)
		}
		p, err := Declared(text)
		if err != nil {
			return nil, fmt.Errorf("reading publisher %s: %w", path.Base(name), err)
		}
		out = append(out, p)
	}
	return out, Check(out)
}

// Declared makes a provider from one YAML file.
func Declared(text []byte) (Provider, error) {
	var d Declaration
	if err := yamltext.Strict(text, &d); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	p := &declared{d: d, policy: Policy{Unique: cmp.Or(d.Unique, ByURL), Keep: d.KeepQuery}}
	if d.Press == "" {
		return nil, errors.New("press: name the publisher")
	}
	if d.ArticleURL == "" {
		return nil, errors.New("articleUrl: say by a regular expression over path and query which addresses are articles")
	}
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
	zone, err := time.LoadLocation(cmp.Or(d.Zone, "Asia/Seoul"))
	if err != nil {
		return nil, fmt.Errorf("zone: %w", err)
	}
	p.policy.Zone = zone
	p.rules, err = article.Rules{Title: d.Title, Body: d.Body, Published: d.Published, Remove: d.Remove, Drop: d.Drop, Site: d.Press, Zone: zone}.Compile()
	if err != nil {
		return nil, err
	}
	return p, Check([]Provider{p})
}

type declared struct {
	d           Declaration
	policy      Policy
	is, not, id *regexp.Regexp
	rules       *article.Compiled
}

func (p *declared) ID() string             { return p.d.ID }
func (p *declared) BaseURL() string        { return p.d.BaseURL }
func (p *declared) SitemapHints() []string { return p.d.SitemapHints }
func (p *declared) Policy() Policy         { return p.policy }

func (p *declared) IsArticleURL(u *url.URL) bool {
	at := u.RequestURI()
	return Hosts(p.d.BaseURL, u) && p.is.MatchString(at) && (p.not == nil || !p.not.MatchString(at))
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
