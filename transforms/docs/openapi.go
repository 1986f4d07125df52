package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/apidesc"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

// acceptAPI asks for a description of an API.
const acceptAPI = "application/vnd.oai.openapi+json, application/json, application/yaml;q=0.9, */*;q=0.5"

// listCatalog names the API catalog in docs_sources.
const listCatalog = "api_catalog"

// maxNamed is how many descriptions of a site are noted.
const maxNamed = 50

// descriptions are the source of pages that are OpenAPI descriptions.
type descriptions struct {
	*provider
	why    map[string]string // why pages are taken to be descriptions, by key
	named  map[string]bool   // addresses of descriptions that were noted in this session
	places []link            // where descriptions were found that no page names
	tried  bool              // the usual places were
}

func newDescriptions(p *provider) *descriptions {
	return &descriptions{provider: p, why: map[string]string{}, named: map[string]bool{}}
}

// load reads which descriptions earlier runs found, and where.
func (s *descriptions) load(ctx context.Context) error {
	if s.tried = !s.isOn(policy.OpenAPI); s.tried {
		return nil
	}
	type row struct{ address, session, state, reason string }
	for r, err := range db.Select(ctx, s.db, func(rows *sql.Rows) (r row, err error) {
		return r, rows.Scan(&r.address, &r.session, &r.state, &r.reason)
	}, `SELECT address, session, state, reason FROM docs_sources
		WHERE provider = $1 AND source = $2 AND state <> 'missing' ORDER BY address`, s.id, policy.OpenAPI) {
		if err != nil {
			return fmt.Errorf("reading where %s has descriptions: %w", s.id, err)
		}
		if r.session == s.part.session {
			s.named[r.address] = true
		}
		l, why := s.link(nil, r.address, false)
		if why != "" || r.state != "named" && r.state != "found" {
			continue
		}
		s.why[l.key] = r.reason
		if r.state == "found" {
			s.places = append(s.places, l)
		}
		s.tried = s.tried || r.session == s.part.session
	}
	return nil
}

// way is the way to a page that is taken to be a description before it was asked for.
func (s *descriptions) way(p *page) (w way, ok bool) {
	reason := s.why[p.key]
	switch {
	case !s.isOn(policy.OpenAPI):
		return way{}, false
	case reason != "":
	case apidesc.IsName(canonical.Path(p.key)):
		reason = "its address is one that descriptions have"
	case p.source == policy.OpenAPI:
		reason = "it was one before"
	default:
		return way{}, false
	}
	return way{source: policy.OpenAPI, reason: reason, accept: acceptAPI}, true
}

// readAs corrects the source of a page by what was read.
func (s *descriptions) readAs(w *way, form content.Form) {
	switch {
	case form != content.OpenAPI && w.source == policy.OpenAPI:
		w.source, w.reason = policy.HTML, "it is no description"
	case form == content.OpenAPI && w.source == policy.HTML && s.isOn(policy.OpenAPI):
		w.source, w.reason = policy.OpenAPI, "the answer is a description"
	}
}

// name adds the descriptions that a page names to its links, and notes them. One
// that the policy does not allow is noted and left.
func (s *descriptions) name(ctx context.Context, ch *chain, pg *content.Page, head pagehead.Head, page []byte) error {
	if !s.isOn(policy.OpenAPI) || head.NoFollow {
		return nil
	}
	named := append(head.Describes, apidesc.Shown(page)...)
	for _, href := range pg.Links {
		if u, err := url.Parse(href); err == nil && apidesc.IsName(u.Path) {
			named = append(named, href)
		}
	}
	for _, href := range named {
		if _, err := s.add(ctx, ch.at, href, ch.now.key+" names it"); err != nil {
			return err
		}
	}
	pg.Links = append(named, pg.Links...)
	return nil
}

// add notes a description that something names. The key is empty if the policy does not allow it.
func (s *descriptions) add(ctx context.Context, base *url.URL, href, reason string) (l link, err error) {
	l, why := s.link(base, href, false)
	if l.address != "" && !s.named[l.address] && len(s.named) < maxNamed {
		s.named[l.address] = true
		if why == "" {
			s.why[l.key] = reason
			err = s.note(ctx, string(policy.OpenAPI), l.address, "named", reason, nil)
		} else {
			err = s.note(ctx, string(policy.OpenAPI), l.address, "left", reason+"; it is left: "+why, nil)
		}
	}
	if why != "" {
		l.key = ""
	}
	return l, err
}

// same returns the page that has the same description: sites offer it as JSON
// and as YAML. The first that a session reads counts.
func (s *descriptions) same(ctx context.Context, key, hash string) (of string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT p.key FROM docs_pages p JOIN docs_page_sources s ON s.provider = p.provider AND s.key = p.key
		WHERE p.provider = $1 AND p.content_hash = $2 AND p.key <> $3 AND p.session = $4 AND p.status IN ($5, $6) AND s.source = $7
		ORDER BY p.key LIMIT 1`,
		s.id, hash, key, s.part.session, Indexed, NotModified, policy.OpenAPI).Scan(&of)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("looking for the description %s: %w", key, err)
	}
	return of, nil
}

// look looks for descriptions where sites usually have them, once the seed pages are read and have
// named none. resp is the answer where a request for a description itself found the only one.
func (s *descriptions) look(ctx context.Context) (found []link, reason string, resp *web.Response, err error) {
	s.tried = true
	var known bool
	if err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1
		FROM docs_page_sources s JOIN docs_pages p ON p.provider = s.provider AND p.key = s.key
		WHERE s.provider = $1 AND s.source = $2 AND p.content_hash <> '')`, s.id, policy.OpenAPI).Scan(&known); err != nil {
		return nil, "", nil, fmt.Errorf("looking for descriptions of %s: %w", s.id, err)
	}
	u, err := canonical.Address(nil, s.policy.SeedURLs[0], nil)
	if len(s.why) > 0 || known || err != nil {
		return nil, "", nil, nil //nolint:nilerr // seed has said so
	}
	catalog := origin(u) + apidesc.Catalog
	if found, err = s.catalog(ctx, catalog); err != nil || len(s.why) > 0 {
		return found, catalog + " names it", nil, err
	}
	for _, at := range placesOf(u) {
		l, resp, err := s.place(ctx, at)
		if err != nil || resp != nil {
			if s.seen[l.key] {
				return nil, "", nil, err
			}
			return []link{l}, "a usual place", resp, err
		}
	}
	return nil, "", nil, nil
}

// placesOf are the usual addresses of a description: in the folder of the documentation
// the names that OpenAPI recommends, and at the root of its host all.
func placesOf(seed *url.URL) (out []string) {
	if folder := folderOf(seed); folder != "" {
		for _, name := range apidesc.Places()[:2] {
			out = append(out, origin(seed)+"/"+path.Join(folder, name))
		}
	}
	for _, name := range apidesc.Places() {
		out = append(out, origin(seed)+"/"+name)
	}
	return out
}

// catalog returns the descriptions that the site's API catalog names.
func (s *descriptions) catalog(ctx context.Context, address string) (links []link, err error) {
	var listed []string
	resp, why, err := s.offered(ctx, offer{
		source: listCatalog, address: address, accept: "application/linkset+json, application/json;q=0.9", most: maxPage,
		lacks: func(resp *web.Response) (why string) {
			var err error
			if listed, err = apidesc.Listed(resp.Body); err != nil {
				return "no API catalog"
			}
			return ""
		}})
	if err != nil || why != "" {
		return nil, err
	}
	base, err := url.Parse(resp.FinalURL)
	if err != nil {
		return nil, nil //nolint:nilerr // the client has read it
	}
	for _, href := range listed {
		l, err := s.add(ctx, base, href, address+" names it")
		if err != nil {
			return nil, err
		}
		if l.key != "" {
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return nil, s.note(ctx, listCatalog, address, "missing", "it names no description that the policy allows", nil)
	}
	return links, s.note(ctx, listCatalog, address, "found", fmt.Sprintf("it names %d descriptions that the policy allows", len(links)), nil)
}

// place asks for a description at an address. resp is nil if there is none.
func (s *descriptions) place(ctx context.Context, address string) (l link, resp *web.Response, err error) {
	l, why := s.link(nil, address, false)
	if why != "" || s.seen[l.key] {
		return l, nil, nil
	}
	resp, why, err = s.offered(ctx, offer{source: string(policy.OpenAPI), address: l.address, accept: acceptAPI, most: maxPage, scoped: true,
		lacks: func(resp *web.Response) string {
			form, media := content.Kind(resp.Header.Get("Content-Type"), resp.Body)
			if form != content.OpenAPI {
				return "no description but " + media
			}
			return ""
		}})
	if err != nil || why != "" {
		return l, nil, err
	}
	if l, why = s.link(nil, resp.FinalURL, false); why != "" {
		return l, nil, nil
	}
	return l, resp, nil
}
