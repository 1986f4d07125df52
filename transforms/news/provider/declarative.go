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
// and articleUrl are required; the default extractor does the rest.
type Declaration struct {
	ID           string   `yaml:"id"`
	Press        string   `yaml:"press"`
	BaseURL      string   `yaml:"baseUrl"`
	SitemapHints []string `yaml:"sitemapHints"`
	ArticleURL   string   `yaml:"articleUrl"` // regular expression over an address's path and query, on the host of baseUrl
	ExcludeURL   string   `yaml:"excludeUrl"` // addresses that match articleUrl but are no articles
	ExternalID   string   `yaml:"externalId"` // regular expression over an address's path and query; its first group is the id
	Unique       Unique   `yaml:"unique"`     // url (default), external_id, title_published
	KeepQuery    []string `yaml:"keepQuery"`  // query parameters that select a page; default: all that do not track visitors
	Zone         string   `yaml:"zone"`       // IANA name of the time zone; default Asia/Seoul

	// The page's parts, as article.Rules has them.
	Title     string   `yaml:"title"`
	Body      string   `yaml:"body"`
	Published string   `yaml:"published"`
	Remove    []string `yaml:"remove"`
	Drop      []string `yaml:"drop"`
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
