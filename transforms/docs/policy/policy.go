// Package policy reads the crawling policies of documentation providers: one
// YAML file a provider with the fields of CPA-001 section 6.1. It is pure: files
// come as an fs.FS, and nothing is fetched.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// What a field that a file leaves out stands for (CPA-001 section 6.1).
const (
	DefaultMaxDepth     = 3
	DefaultMaxPages     = 200
	DefaultRequestDelay = 1500 // milliseconds
)

// Channel says which way the documents of a provider mainly come (section 1.5).
type Channel string

const (
	// Context7 providers are crawled only as a fallback.
	Context7 Channel = "context7"
	// Crawl providers are crawled.
	Crawl Channel = "crawl"
)

// Terms says what the provider's terms of service say about crawling (section 8.2).
type Terms string

const (
	// Allowed was looked up and crawling is not forbidden.
	Allowed Terms = "allowed"
	// Prohibited is never crawled.
	Prohibited Terms = "prohibited"
	// Unknown is crawled with a warning: nobody looked yet.
	Unknown Terms = "unknown"
)

// Policy is one provider's file.
type Policy struct {
	// ProviderID is the provider's identity for good: a UUID, or lower-case
	// letters, digits and hyphens.
	ProviderID string `yaml:"provider_id"`
	Name       string `yaml:"name"` // for people; ProviderID where it is empty
	// SeedURLs are where a crawl begins, all on one host.
	SeedURLs            []string `yaml:"seed_urls"`
	AllowedPathPatterns []string `yaml:"allowed_path_patterns"`
	BlockedPathPatterns []string `yaml:"blocked_path_patterns"`
	MaxDepth            int      `yaml:"max_depth"`        // 1 to 5
	MaxPages            int      `yaml:"max_pages"`        // 1 to 500, of one session
	RequestDelayMS      int      `yaml:"request_delay_ms"` // 1000 to 5000
	CustomSelectors     struct {
		Content string   `yaml:"content"`
		Remove  []string `yaml:"remove"`
	} `yaml:"custom_selectors"`
	SitemapURL   string `yaml:"sitemap_url"` // its entries join at depth 1
	SPARendering bool   `yaml:"spa_rendering"`

	Channel   Channel `yaml:"channel"`     // Crawl where it is empty
	Terms     Terms   `yaml:"tos"`         // Unknown where it is empty
	TermsDate string  `yaml:"tos_checked"` // the day somebody looked, YYYY-MM-DD
	Category  string  `yaml:"category"`    // section 6.2's heading, for people
	// KeepQueryParams choose a page and so stay in its key.
	KeepQueryParams []string `yaml:"keep_query_params"`
	// AllowPersonal lifts default blocks by their name in PersonalBlocks.
	AllowPersonal []string `yaml:"allow_personal"`
}

// PersonalBlocks are the paths that may hold personal data (sections 8.3 and
// docs.md), blocked unless a policy lifts them by name.
var PersonalBlocks = map[string][]string{
	"blog":      {"/{blog,blogs}/**", "/*/{blog,blogs}/**"},
	"forum":     {"/{forum,forums}/**", "/*/{forum,forums}/**"},
	"community": {"/{community,communities}/**", "/*/{community,communities}/**"},
	"profile":   {"/{profile,profiles,author,authors,people}/**"},
	"users":     {"/{user,users,u,member,members}/**", "/@*/**"},
}

// personalNames fixes the order in which the blocks are asked.
var personalNames = []string{"blog", "community", "forum", "profile", "users"}

// Host is the host of the seeds as scopes compare it (canonical.Host).
func (p Policy) Host() string {
	u, err := url.Parse(p.SeedURLs[0])
	if err != nil {
		return "" // Parse has refused such a policy
	}
	return canonical.Host(u)
}

// Label is the provider's name for people.
func (p Policy) Label() string { return cmp.Or(p.Name, p.ProviderID) }

// Delay is the middle of the pauses between two requests.
func (p Policy) Delay() time.Duration { return time.Duration(p.RequestDelayMS) * time.Millisecond }

// Scope is the policy's patterns with the personal-data blocks that it does not lift.
func (p Policy) Scope() canonical.Scope {
	s := canonical.Scope{Allow: p.AllowedPathPatterns, Block: slices.Clone(p.BlockedPathPatterns)}
	for _, name := range personalNames {
		if !slices.Contains(p.AllowPersonal, name) {
			s.Block = append(s.Block, PersonalBlocks[name]...)
		}
	}
	return s
}

// Personal names the default block that a pattern of Scope belongs to, "" where
// the pattern is the policy's own.
func (p Policy) Personal(pattern string) string {
	if slices.Contains(p.BlockedPathPatterns, pattern) {
		return ""
	}
	for _, name := range personalNames {
		if slices.Contains(PersonalBlocks[name], pattern) {
			return name
		}
	}
	return ""
}

// Load reads all *.yaml and *.yml files at the root of files, by provider id.
// The error names each file, line and fault that is wrong, one a line.
func Load(files fs.FS) ([]Policy, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("reading the policies: %w", err)
	}
	var (
		all    []Policy
		faults []error
		from   = map[string]string{}
	)
	for _, e := range entries {
		if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		b, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the policies: %w", err)
		}
		p, err := Parse(e.Name(), b)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if other := from[p.ProviderID]; other != "" {
			faults = append(faults, fmt.Errorf("%s: provider_id %q is taken by %s; give each provider its own", e.Name(), p.ProviderID, other))
			continue
		}
		from[p.ProviderID] = e.Name()
		all = append(all, p)
	}
	switch {
	case len(faults) > 0:
		return nil, errors.Join(faults...)
	case len(all) == 0:
		return nil, errors.New("reading the policies: there is no *.yaml file; write one a provider")
	}
	slices.SortFunc(all, func(a, b Policy) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	return all, nil
}

// Parse reads one policy. name is the file's, for the error, which tells every
// fault with its line.
func Parse(name string, text []byte) (Policy, error) {
	p := Policy{MaxDepth: DefaultMaxDepth, MaxPages: DefaultMaxPages, RequestDelayMS: DefaultRequestDelay, Channel: Crawl, Terms: Unknown}
	file, err := yamltext.Parse(text)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(file.Docs) == 0 || len(file.Docs) == 1 && (file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType) {
		return Policy{}, fmt.Errorf("%s: is empty; write a policy or remove it", name)
	}
	if len(file.Docs) != 1 {
		return Policy{}, fmt.Errorf("%s: holds %d YAML documents; write one a provider", name, len(file.Docs))
	}
	if err := yamltext.Strict(text, &p); err != nil {
		return Policy{}, fmt.Errorf("%s: %w", name, err)
	}
	var faults []error
	for _, field := range []string{"max_depth", "max_pages", "request_delay_ms"} {
		if n := node(file, field); n != nil && n.Type() == ast.FloatType { // the library cuts it off
			faults = append(faults, fmt.Errorf("%s:%d: %s: %s is no whole number", name, line(file, field), field, n.GetToken().Value))
		}
	}
	for _, f := range p.faults() {
		faults = append(faults, fmt.Errorf("%s:%d: %s: %s", name, line(file, f.field), f.field, f.says))
	}
	if len(faults) > 0 {
		return Policy{}, errors.Join(faults...)
	}
	return p, nil
}

// line is where a field stands, 1 where it is missing.
func line(file *ast.File, field string) int {
	if n := node(file, field); n != nil {
		return n.GetToken().Position.Line
	}
	return 1
}

// node is a field's value, nil where it is missing.
func node(file *ast.File, field string) ast.Node {
	at, err := yaml.PathString("$." + field)
	if err != nil {
		return nil
	}
	n, err := at.FilterFile(file)
	if err != nil {
		return nil
	}
	return n
}

type fault struct{ field, says string }

var identity = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// faults lists everything that is wrong with a policy's values.
func (p *Policy) faults() (out []fault) {
	say := func(field, format string, args ...any) { out = append(out, fault{field, fmt.Sprintf(format, args...)}) }
	between := func(field string, n, least, most int) {
		if n < least || n > most {
			say(field, "%d is outside %d to %d", n, least, most)
		}
	}
	if !identity.MatchString(p.ProviderID) {
		say("provider_id", "%q is none; use a UUID, or up to 64 lower-case letters, digits and hyphens", p.ProviderID)
	}
	between("max_depth", p.MaxDepth, 1, 5)
	between("max_pages", p.MaxPages, 1, 500)
	between("request_delay_ms", p.RequestDelayMS, 1000, 5000)
	p.addressFaults(say)

	if len(p.AllowedPathPatterns) == 0 {
		say("allowed_path_patterns", "the list is empty, so that nothing would be crawled; name at least one pattern such as /docs/**")
	}
	for field, patterns := range map[string][]string{"allowed_path_patterns": p.AllowedPathPatterns, "blocked_path_patterns": p.BlockedPathPatterns} {
		for i, pattern := range patterns {
			at := fmt.Sprintf("%s[%d]", field, i)
			if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "*") && !strings.HasPrefix(pattern, "{") {
				say(at, "%q matches no path; begin it with a slash", pattern)
			} else if err := (canonical.Scope{Allow: []string{pattern}}).Check(); err != nil {
				say(at, "%s", err)
			}
		}
	}
	if err := (content.Options{Content: p.CustomSelectors.Content}).Check(); err != nil {
		say("custom_selectors.content", "%s", err)
	}
	for i, selector := range p.CustomSelectors.Remove {
		at := fmt.Sprintf("custom_selectors.remove[%d]", i)
		if strings.TrimSpace(selector) == "" {
			say(at, "the selector is empty")
		} else if err := (content.Options{Remove: []string{selector}}).Check(); err != nil {
			say(at, "%s", err)
		}
	}
	switch p.Channel {
	case Context7, Crawl:
	default:
		say("channel", "%q; use context7 or crawl", p.Channel)
	}
	switch p.Terms {
	case Allowed, Prohibited, Unknown:
	default:
		say("tos", "%q; use allowed, prohibited or unknown", p.Terms)
	}
	if _, err := time.Parse(time.DateOnly, p.TermsDate); p.TermsDate != "" && err != nil {
		say("tos_checked", "%q is no date; write YYYY-MM-DD", p.TermsDate)
	} else if p.TermsDate == "" && p.Terms != Unknown {
		say("tos_checked", "missing; tos: %s needs the date on which the terms were read", p.Terms)
	}
	for i, name := range p.AllowPersonal {
		if PersonalBlocks[name] == nil {
			say(fmt.Sprintf("allow_personal[%d]", i), "%q; use %s", name, strings.Join(personalNames, ", "))
		}
	}
	for i, name := range p.KeepQueryParams {
		if name == "" {
			say(fmt.Sprintf("keep_query_params[%d]", i), "the name is empty")
		}
	}
	slices.SortStableFunc(out, func(a, b fault) int { return cmp.Compare(a.field, b.field) })
	return out
}

func (p *Policy) addressFaults(say func(field, format string, args ...any)) {
	if len(p.SeedURLs) == 0 {
		say("seed_urls", "the list is empty; name at least one URL")
	}
	host := ""
	check := func(field, raw string) {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Hostname() == "":
			say(field, "%q is no URL", raw)
		case u.Scheme != "https" && u.Scheme != "http":
			say(field, "%q; use https", raw)
		case u.User != nil:
			say(field, "user and password do not belong into a policy")
		case host == "":
			host = canonical.Host(u)
		case canonical.Host(u) != host:
			say(field, "%q is on another host than the first seed (%s); write a policy a host", raw, host)
		}
	}
	for i, raw := range p.SeedURLs {
		check(fmt.Sprintf("seed_urls[%d]", i), raw)
	}
	if p.SitemapURL != "" {
		check("sitemap_url", p.SitemapURL)
	}
}
