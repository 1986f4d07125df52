// Package policy reads the crawling policies of documentation providers: one YAML
// file for each provider, with the fields of Policy. It is pure: files come as an
// fs.FS, and nothing is fetched. No promise: see docs/library.md.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// The values of fields that a file leaves out.
const (
	DefaultMaxDepth     = 3
	DefaultMaxPages     = 200
	DefaultRequestDelay = 1500 // milliseconds
)

// Channel is the main source of a provider's documents.
type Channel string

const (
	// Context7 providers are crawled if Context7 was not found to have them.
	Context7 Channel = "context7"
	// Crawl providers are crawled.
	Crawl Channel = "crawl"
)

// Source is a kind of place from which the text of pages is taken.
type Source string

const (
	// GitHub is a repository with the files from which the pages are made.
	GitHub Source = "github"
	// LLMsFull is the site's llms-full.txt, which has the text of many pages.
	LLMsFull Source = "llms_full"
	// Markdown is a page's own Markdown, from its twin address or by asking for it.
	Markdown Source = "markdown"
	// OpenAPI is a description of the API, which is a page of its own.
	OpenAPI Source = "openapi"
	// HTML is the page itself.
	HTML Source = "html"
)

// sources are all of them, in the order that a policy without sources has. GitHub is
// used only where the policy names a repository.
var sources = []Source{GitHub, LLMsFull, Markdown, OpenAPI, HTML}

// Terms is what the provider's terms of service say about crawling.
type Terms string

const (
	// Allowed: somebody read the terms, and they do not forbid crawling.
	Allowed Terms = "allowed"
	// Prohibited: the provider is never crawled.
	Prohibited Terms = "prohibited"
	// Unknown: nobody has read the terms; the provider is crawled with a warning.
	Unknown Terms = "unknown"
)

// Policy is one provider's file. The comments and tags of its fields are the
// reference page of the file and its JSON Schema (pipeline/reference).
type Policy struct {
	// Identifies the provider and never changes: a UUID, or lower-case letters, digits
	// and hyphens.
	ProviderID string `yaml:"provider_id" jsonschema:"required" pattern:"^[a-z0-9][a-z0-9-]{0,63}$"`
	// The provider's name for people. Without it provider_id is shown.
	Name string `yaml:"name"`
	// The pages that a crawl starts from, all on one host. They are in scope unless a
	// pattern blocks them.
	SeedURLs []string `yaml:"seed_urls" jsonschema:"required,minItems=1" pattern:"^https?://"`
	// Globs of the paths that are crawled: * and ? within a part of the path, ** over
	// several, {a,b} and [a-z]. After re: a regular expression (RE2) that may match anywhere
	// in the path, such as re:^/docs/v[0-9]+/. A path that no pattern matches is not crawled.
	AllowedPathPatterns []string `yaml:"allowed_path_patterns" jsonschema:"required,minItems=1" pattern:"^([/*{]|re:.)"`
	// Globs and regular expressions of paths that are not crawled. They count before allowed_path_patterns.
	BlockedPathPatterns []string `yaml:"blocked_path_patterns" pattern:"^([/*{]|re:.)"`
	// How many links a page may be away from a seed URL.
	MaxDepth int `yaml:"max_depth" jsonschema:"minimum=1,maximum=5,default=3"`
	// The most pages that one session requests.
	MaxPages int `yaml:"max_pages" jsonschema:"minimum=1,maximum=500,default=200"`
	// The average pause between two requests to the host, in milliseconds. Each pause is
	// random, between two thirds and four thirds of it, at least 1000.
	RequestDelayMS int `yaml:"request_delay_ms" jsonschema:"minimum=1000,maximum=5000,default=1500"`
	// CSS selectors for pages whose content is not found by itself.
	CustomSelectors struct {
		// The element that has the content.
		Content string `yaml:"content"`
		// Elements to remove from the content.
		Remove []string `yaml:"remove" jsonschema:"minLength=1"`
	} `yaml:"custom_selectors"`
	// A sitemap whose entries are crawled too, as if a seed URL linked to them.
	SitemapURL string `yaml:"sitemap_url" pattern:"^https?://"`
	// Pages are made by scripts: render them with Chromium.
	SPARendering bool `yaml:"spa_rendering" jsonschema:"default=false"`

	// Where the text of pages is taken from, the best first; the rest is taken from html.
	// With html first only pages are requested. With github alone the site gets no request.
	Sources []Source `yaml:"sources" jsonschema:"enum=github,enum=llms_full,enum=markdown,enum=openapi,enum=html,minItems=1"`

	// A public repository of GitHub with the Markdown from which the pages are made.
	GitHub struct {
		// Owner and name, such as owner/name.
		Repository string `yaml:"repository" pattern:"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$"`
		// A branch, a tag or a commit. Without it the default branch is read.
		Ref string `yaml:"ref" pattern:"^[A-Za-z0-9._/-]+$"`
		// The folder of the documentation. Without it the whole repository is read.
		Path string `yaml:"path"`
		// The public address of that folder, on the host of the seeds: guide/intro.md is the
		// page guide/intro below it. Without it pages are files on github.com, the seeds' host.
		Base string `yaml:"base" pattern:"^https?://"`
	} `yaml:"github"`

	// The main source of the provider's documents. A provider of context7 is crawled if
	// Context7 lacks it or does not answer, or with --fallback.
	Channel Channel `yaml:"channel" jsonschema:"enum=crawl,enum=context7,default=crawl"`
	// What the provider's terms of service say about crawling. A prohibited provider is
	// never crawled. Of an unknown one people see at most 200 characters of a page.
	Terms Terms `yaml:"tos" jsonschema:"enum=allowed,enum=prohibited,enum=unknown,default=unknown"`
	// The day on which the terms were read, YYYY-MM-DD. Required unless tos is unknown.
	// The report warns after 90 days.
	TermsDate string `yaml:"tos_checked" jsonschema:"format=date"`
	// The page of the terms of service, on any host, for the person who reads them again.
	// It is not requested.
	TermsURL string `yaml:"tos_url" pattern:"^https?://"`
	// A group of providers, for people.
	Category string `yaml:"category"`
	// Query parameters that select a page. All others are removed from a page's key.
	KeepQueryParams []string `yaml:"keep_query_params" jsonschema:"minLength=1"`
	// Paths that may have personal data are blocked. These names lift the block of one
	// kind of path each.
	AllowPersonal []string `yaml:"allow_personal" jsonschema:"enum=blog,enum=community,enum=forum,enum=profile,enum=users"`
}

// personalBlocks are the paths that may have personal data. They are blocked unless
// a policy allows them by name.
var personalBlocks = map[string][]string{
	"blog":      {"/{blog,blogs}/**", "/*/{blog,blogs}/**"},
	"forum":     {"/{forum,forums}/**", "/*/{forum,forums}/**"},
	"community": {"/{community,communities}/**", "/*/{community,communities}/**"},
	"profile":   {"/{profile,profiles,author,authors,people}/**"},
	"users":     {"/{user,users,u,member,members}/**", "/@*/**"},
}

// personalNames fixes the order of the blocks in Scope.
var personalNames = []string{"blog", "community", "forum", "profile", "users"}

// Host is the host of the seeds as scopes compare it (canonical.Host).
func (p Policy) Host() string {
	u, err := url.Parse(p.SeedURLs[0])
	if err != nil {
		return "" // Parse has refused such a policy
	}
	return canonical.Host(u)
}

// Order is the order in which sources are tried.
func (p Policy) Order() []Source {
	switch {
	case p.Sources == nil && p.GitHub.Repository == "":
		return sources[1:]
	case p.Sources == nil:
		return sources
	case len(p.Sources) == 1 && p.Sources[0] == GitHub:
		return p.Sources
	}
	if at := slices.Index(p.Sources, HTML); at >= 0 {
		return p.Sources[:at+1]
	}
	return append(slices.Clone(p.Sources), HTML)
}

// Label is the provider's name for people.
func (p Policy) Label() string { return cmp.Or(p.Name, p.ProviderID) }

// Delay is the average pause between two requests.
func (p Policy) Delay() time.Duration { return time.Duration(p.RequestDelayMS) * time.Millisecond }

// WrongDay says what is wrong with a day on which terms were read, "" if nothing is. What
// is tomorrow here is today somewhere.
func WrongDay(day string, now time.Time) string {
	switch at, err := time.Parse(time.DateOnly, day); {
	case err != nil:
		return fmt.Sprintf("%q is not a date; write YYYY-MM-DD", day)
	case at.After(now.AddDate(0, 0, 1)):
		return day + " is in the future; write the day on which the terms were read"
	}
	return ""
}

// termsLast is for how many days somebody's reading of the terms counts as new.
const termsLast = 90

// TermsOld says that the terms were read too long ago, "" if they were not, or if nobody
// has read them.
func (p Policy) TermsOld(now time.Time) string {
	read, err := time.Parse(time.DateOnly, p.TermsDate)
	if days := int(now.Sub(read).Hours() / 24); err == nil && days > termsLast {
		return fmt.Sprintf("its terms of service were read on %s, %d days ago; read them again, and write the day into tos_checked", p.TermsDate, days)
	}
	return ""
}

// Scope has the policy's patterns and the personalBlocks that it does not allow.
func (p Policy) Scope() canonical.Scope {
	s := canonical.Scope{Allow: p.AllowedPathPatterns, Block: slices.Clone(p.BlockedPathPatterns)}
	for _, name := range personalNames {
		if !slices.Contains(p.AllowPersonal, name) {
			s.Block = append(s.Block, personalBlocks[name]...)
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
		if slices.Contains(personalBlocks[name], pattern) {
			return name
		}
	}
	return ""
}

// Load reads all *.yaml and *.yml files at the root of files, sorted by provider id.
// The error has one line for each fault, with its file and line.
func Load(files fs.FS, now time.Time) ([]Policy, error) {
	names, err := yamltext.Files(files)
	if err != nil {
		return nil, fmt.Errorf("reading the policies: %w", err)
	}
	var (
		all    []Policy
		faults []error
		from   = map[string]string{}
	)
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the policies: %w", err)
		}
		p, err := Parse(name, b, now)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if other := from[p.ProviderID]; other != "" {
			faults = append(faults, fmt.Errorf("%s: provider_id %q is taken by %s; give each provider its own", name, p.ProviderID, other))
			continue
		}
		from[p.ProviderID] = name
		all = append(all, p)
	}
	switch {
	case len(faults) > 0:
		return nil, errors.Join(faults...)
	case len(all) == 0:
		return nil, errors.New("reading the policies: there is no *.yaml file; write one for each provider")
	}
	slices.SortFunc(all, func(a, b Policy) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	return all, nil
}

// Parse reads one policy. name is the file's name, for the error, which has one
// line for each fault.
func Parse(name string, text []byte, now time.Time) (Policy, error) {
	p := Policy{MaxDepth: DefaultMaxDepth, MaxPages: DefaultMaxPages, RequestDelayMS: DefaultRequestDelay, Channel: Crawl, Terms: Unknown}
	file, err := yamltext.Parse(text)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(file.Docs) == 0 || len(file.Docs) == 1 && (file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType) {
		return Policy{}, fmt.Errorf("%s: the file is empty; write a policy or remove it", name)
	}
	if len(file.Docs) != 1 {
		return Policy{}, fmt.Errorf("%s: the file has %d YAML documents; write one for each provider", name, len(file.Docs))
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
	for _, f := range p.faults(now) {
		faults = append(faults, fmt.Errorf("%s:%d: %s: %s", name, line(file, f.field), f.field, f.message))
	}
	if len(faults) > 0 {
		return Policy{}, errors.Join(faults...)
	}
	return p, nil
}

// line is the line of a field, 1 where it is missing.
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

type fault struct{ field, message string }

var identity = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// faults lists everything that is wrong with a policy's values.
func (p *Policy) faults(now time.Time) (out []fault) {
	say := func(field, format string, args ...any) { out = append(out, fault{field, fmt.Sprintf(format, args...)}) }
	between := func(field string, n, least, most int) {
		if n < least || n > most {
			say(field, "%d is outside %d to %d", n, least, most)
		}
	}
	if !identity.MatchString(p.ProviderID) {
		say("provider_id", "%q is not a provider id; use a UUID, or up to 64 lower-case letters, digits and hyphens", p.ProviderID)
	}
	for field, text := range map[string]string{"name": p.Name, "category": p.Category} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			say(field, "%q has line breaks or control characters; write one line", text)
		}
	}
	between("max_depth", p.MaxDepth, 1, 5)
	between("max_pages", p.MaxPages, 1, 500)
	between("request_delay_ms", p.RequestDelayMS, 1000, 5000)
	p.addressFaults(say)

	p.scopeFaults(say)
	switch p.Channel {
	case Context7, Crawl:
	default:
		say("channel", "%q; use context7 or crawl", p.Channel)
	}
	p.sourceFaults(say)
	switch p.Terms {
	case Allowed, Prohibited, Unknown:
	default:
		say("tos", "%q; use allowed, prohibited or unknown", p.Terms)
	}
	if p.TermsDate == "" && p.Terms != Unknown {
		say("tos_checked", "missing; tos: %s needs the date on which the terms were read", p.Terms)
	} else if why := WrongDay(p.TermsDate, now); p.TermsDate != "" && why != "" {
		say("tos_checked", "%s", why)
	}
	for i, name := range p.AllowPersonal {
		if personalBlocks[name] == nil {
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

func (p *Policy) scopeFaults(say func(field, format string, args ...any)) {
	if len(p.AllowedPathPatterns) == 0 {
		say("allowed_path_patterns", "the list is empty, so that nothing would be crawled; name at least one pattern such as /docs/**")
	}
	for field, patterns := range map[string][]string{"allowed_path_patterns": p.AllowedPathPatterns, "blocked_path_patterns": p.BlockedPathPatterns} {
		for i, pattern := range patterns {
			at := fmt.Sprintf("%s[%d]", field, i)
			if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "*") && !strings.HasPrefix(pattern, "{") && !strings.HasPrefix(pattern, "re:") {
				say(at, "%q matches no path; start it with a slash, or a regular expression with re:", pattern)
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
}

func (p *Policy) sourceFaults(say func(field, format string, args ...any)) {
	for i, s := range p.Sources {
		at := fmt.Sprintf("sources[%d]", i)
		switch {
		case !slices.Contains(sources, s):
			say(at, "%q; use github, llms_full, markdown, openapi or html", s)
		case s == GitHub && i > 0:
			say(at, "github is not the first source; put it first")
		case s == GitHub && p.GitHub.Repository == "":
			say(at, "github needs a repository; write github.repository")
		case slices.Index(p.Sources, s) < i:
			say(at, "%q is there twice", s)
		}
	}
	if p.Sources != nil && len(p.Sources) == 0 {
		say("sources", "the list is empty; write html to use the pages alone")
	}
}

func (p *Policy) addressFaults(say func(field, format string, args ...any)) {
	if len(p.SeedURLs) == 0 {
		say("seed_urls", "the list is empty; name at least one URL")
	}
	host := ""
	valid := func(field, raw string) (u *url.URL, ok bool) {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Hostname() == "":
			say(field, "%q is not a URL", raw)
		case u.Scheme != "https" && u.Scheme != "http":
			say(field, "%q; use https", raw)
		case u.User != nil:
			say(field, "a policy must not have a user or password in a URL; remove them")
		default:
			return u, true
		}
		return nil, false
	}
	check := func(field, raw string) {
		u, ok := valid(field, raw)
		switch {
		case !ok:
		case host == "":
			host = canonical.Host(u)
		case canonical.Host(u) != host:
			say(field, "%q is on another host than the first seed (%s); write one policy for each host", raw, host)
		}
	}
	for i, raw := range p.SeedURLs {
		check(fmt.Sprintf("seed_urls[%d]", i), raw)
	}
	if p.SitemapURL != "" {
		check("sitemap_url", p.SitemapURL)
	}
	if p.TermsURL != "" {
		valid("tos_url", p.TermsURL)
	}
	g := p.GitHub
	if g.Repository == "" && (g.Ref != "" || g.Path != "" || g.Base != "") {
		say("github", "the repository is missing; write repository: owner/name")
	}
	if g.Base != "" {
		check("github.base", g.Base)
	} else if g.Repository != "" && host != "github.com" {
		say("github", "the base is missing; write the public address of the folder, or seed URLs on github.com")
	}
	p.repositoryFaults(say)
}

var (
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)
	refName        = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
)

func (p *Policy) repositoryFaults(say func(field, format string, args ...any)) {
	g := p.GitHub
	if _, name, _ := strings.Cut(g.Repository, "/"); g.Repository != "" && (!repositoryName.MatchString(g.Repository) || name == "." || name == "..") {
		say("github.repository", "%q; write owner/name", g.Repository)
	}
	if g.Ref != "" && (!refName.MatchString(g.Ref) || strings.Contains(g.Ref, "..")) {
		say("github.ref", "%q is no branch, tag or commit", g.Ref)
	}
	if g.Path != "" && !fs.ValidPath(g.Path) {
		say("github.path", "%q; write the folder as docs/guide, without a slash at its ends", g.Path)
	}
}
