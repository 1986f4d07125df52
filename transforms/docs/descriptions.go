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

// acceptAPI asks for a description of an API, or a file of one.
const acceptAPI = "application/vnd.oai.openapi+json, application/json, application/yaml;q=0.9, */*;q=0.5"

// listCatalog names the API catalog in docs_sources.
const listCatalog = "api_catalog"

// maxNamed is how many descriptions of a site are noted.
const maxNamed = 50

// describes says why a page is taken to be a description of an API before it was
// asked for, "" if it is not.
func (c *crawl) describes(p *page) string {
	switch {
	case !c.isOn(policy.OpenAPI):
		return ""
	case c.offers.described[p.key] != "":
		return c.offers.described[p.key]
	case apidesc.IsName(canonical.Path(p.key)):
		return "its address is one that descriptions have"
	case c.offers.from[p.key] == string(policy.OpenAPI):
		return "it was one before"
	}
	return ""
}

// readAs corrects the source of a page by what was read.
func (c *crawl) readAs(ch *chain, form content.Form) {
	switch {
	case form != content.OpenAPI && ch.way.source == policy.OpenAPI:
		ch.way.source, ch.way.reason = policy.HTML, "it is no description"
	case form == content.OpenAPI && ch.way.source == policy.HTML && c.isOn(policy.OpenAPI):
		ch.way.source, ch.way.reason = policy.OpenAPI, "the answer is a description"
	}
}

// nameDescriptions adds the descriptions that a page names to its links, and notes them. One
// that the policy does not allow is noted and left.
func (c *crawl) nameDescriptions(ctx context.Context, ch *chain, pg *content.Page, head pagehead.Head, page []byte) error {
	if !c.isOn(policy.OpenAPI) || head.NoFollow {
		return nil
	}
	named := append(head.Describes, apidesc.Shown(page)...)
	for _, href := range pg.Links {
		if u, err := url.Parse(href); err == nil && apidesc.IsName(u.Path) {
			named = append(named, href)
		}
	}
	for _, href := range named {
		if err := c.nameDescription(ctx, ch.at, href, ch.now.key+" names it"); err != nil {
			return err
		}
	}
	pg.Links = append(named, pg.Links...)
	return nil
}

func (c *crawl) nameDescription(ctx context.Context, base *url.URL, href, reason string) error {
	l, why := c.link(base, href, false)
	o := &c.offers
	if l.address == "" || o.named[l.address] || len(o.named) >= maxNamed {
		return nil
	}
	o.named[l.address] = true
	if why != "" {
		return c.noteOffer(ctx, string(policy.OpenAPI), l.address, "left", reason+"; it is left: "+why, nil)
	}
	o.described[l.key] = reason
	return c.noteOffer(ctx, string(policy.OpenAPI), l.address, "named", reason, nil)
}

// sameDescription returns the page that has the same description: sites offer it as JSON
// and as YAML. The first that a session reads counts.
func (c *crawl) sameDescription(ctx context.Context, ch *chain, hash string) (key string, err error) {
	err = c.db.QueryRowContext(ctx, `SELECT p.key FROM docs_pages p JOIN docs_page_sources s ON s.provider = p.provider AND s.key = p.key
		WHERE p.provider = $1 AND p.content_hash = $2 AND p.key <> $3 AND p.session = $4 AND p.status IN ($5, $6) AND s.source = $7 ORDER BY p.key LIMIT 1`,
		c.policy.ProviderID, hash, ch.now.key, c.part.session, Indexed, NotModified, policy.OpenAPI).Scan(&key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("looking for the description %s: %w", ch.now.key, err)
	}
	return key, nil
}

// loadDescriptions reads which descriptions earlier runs found, and where.
func (c *crawl) loadDescriptions(ctx context.Context) error {
	o := &c.offers
	o.described, o.named, o.inFiles = map[string]string{}, map[string]bool{}, map[string]bool{}
	if !c.isOn(policy.OpenAPI) {
		o.placesTried = true
		return nil
	}
	type row struct{ address, session, state, reason string }
	for r, err := range db.Select(ctx, c.db, func(rows *sql.Rows) (r row, err error) {
		return r, rows.Scan(&r.address, &r.session, &r.state, &r.reason)
	}, `SELECT address, session, state, reason FROM docs_sources WHERE provider = $1 AND source = $2 AND state <> 'missing' ORDER BY address`, c.policy.ProviderID, policy.OpenAPI) {
		if err != nil {
			return fmt.Errorf("reading where %s has descriptions: %w", c.policy.ProviderID, err)
		}
		if r.session == c.part.session {
			o.named[r.address] = true
		}
		l, why := c.link(nil, r.address, false)
		if why != "" || r.state != "named" && r.state != "found" {
			continue
		}
		o.described[l.key] = r.reason
		if r.state == "found" {
			o.places = append(o.places, l)
		}
		o.placesTried = o.placesTried || r.session == c.part.session
	}
	for key, err := range db.Select(ctx, c.db, func(rows *sql.Rows) (key string, err error) { return key, rows.Scan(&key) },
		`SELECT DISTINCT key FROM docs_api_files WHERE provider = $1`, c.policy.ProviderID) {
		if err != nil {
			return fmt.Errorf("reading the files of the descriptions of %s: %w", c.policy.ProviderID, err)
		}
		o.inFiles[key] = true
	}
	if c.part.fresh { // what a run left that was never continued
		if _, err := c.db.ExecContext(ctx, `UPDATE docs_api_files SET body = '' WHERE provider = $1 AND session <> $2 AND body <> ''`, c.policy.ProviderID, c.part.session); err != nil {
			return fmt.Errorf("removing texts of the descriptions of %s: %w", c.policy.ProviderID, err)
		}
	}
	return nil
}

// tryPlaces looks for a description where sites usually have it, once the seed pages
// are read and have named none.
func (c *crawl) tryPlaces(ctx context.Context) error {
	c.offers.placesTried = true
	if len(c.offers.described) > 0 {
		return nil
	}
	var known int
	if err := c.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_page_sources s JOIN docs_pages p ON p.provider = s.provider AND p.key = s.key WHERE s.provider = $1 AND s.source = $2 AND p.content_hash <> ''`,
		c.policy.ProviderID, policy.OpenAPI).Scan(&known); err != nil {
		return fmt.Errorf("looking for descriptions of %s: %w", c.policy.ProviderID, err)
	}
	if known > 0 {
		return nil
	}
	u, err := canonical.Address(nil, c.policy.SeedURLs[0], nil)
	if err != nil {
		return nil //nolint:nilerr // seed has said so
	}
	if err := c.readCatalog(ctx, origin(u)+apidesc.Catalog); err != nil || len(c.offers.described) > 0 {
		return err
	}
	for _, at := range placesOf(u) {
		found, err := c.tryPlace(ctx, at)
		if err != nil || found {
			return err
		}
	}
	return nil
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

// readCatalog queues the descriptions that the site's API catalog names.
func (c *crawl) readCatalog(ctx context.Context, address string) error {
	var listed []string
	resp, why, err := c.offer(ctx, offerAt{source: listCatalog, address: address, accept: "application/linkset+json, application/json;q=0.9", most: maxPage,
		lacks: func(resp *web.Response) (why string) {
			var err error
			if listed, err = apidesc.Listed(resp.Body); err != nil {
				return "no API catalog"
			}
			return ""
		}})
	if err != nil || why != "" || resp == nil {
		return err
	}
	base, err := url.Parse(resp.FinalURL)
	if err != nil {
		return nil //nolint:nilerr // the client has read it
	}
	var links []link
	for _, href := range listed {
		if err := c.nameDescription(ctx, base, href, address+" names it"); err != nil {
			return err
		}
		if l, why := c.link(base, href, false); why == "" {
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return c.noteOffer(ctx, listCatalog, address, "missing", "it names no description that the policy allows", nil)
	}
	if err := c.enqueue(ctx, links); err != nil {
		return err
	}
	for _, l := range links {
		if err := c.noteOffer(ctx, string(policy.OpenAPI), l.address, "found", address+" names it", nil); err != nil {
			return err
		}
	}
	return c.noteOffer(ctx, listCatalog, address, "found", fmt.Sprintf("it names %d descriptions that the policy allows", len(links)), nil)
}

// enqueue queues pages at depth 1.
func (c *crawl) enqueue(ctx context.Context, links []link) error {
	if err := c.advance(ctx, func(tx *sql.Tx) error { return c.queue(ctx, tx, links, 1) }); err != nil {
		return fmt.Errorf("queueing descriptions of %s: %w", c.policy.ProviderID, err)
	}
	c.remember(links, 1)
	return nil
}

// tryPlace asks for a description at an address. If it is there, its page is done with this
// one request.
func (c *crawl) tryPlace(ctx context.Context, address string) (found bool, err error) {
	l, why := c.link(nil, address, false)
	if why != "" || c.seen[l.key] {
		return false, nil
	}
	const reason = "a usual place"
	resp, why, err := c.offer(ctx, offerAt{source: string(policy.OpenAPI), address: l.address, accept: acceptAPI, most: maxPage, scoped: true,
		lacks: func(resp *web.Response) string {
			form, media := content.Kind(resp.Header.Get("Content-Type"), resp.Body)
			if form != content.OpenAPI {
				return "no description but " + media
			}
			return ""
		}})
	if err != nil || why != "" || resp == nil {
		return false, err
	}
	if l, why = c.link(nil, resp.FinalURL, false); why != "" {
		return false, nil
	}
	if c.seen[l.key] {
		return true, nil
	}
	if err := c.enqueue(ctx, []link{l}); err != nil {
		return false, err
	}
	if err := c.noteOffer(ctx, string(policy.OpenAPI), l.address, "found", reason, nil); err != nil {
		return false, err
	}
	at, err := url.Parse(l.address)
	if err != nil {
		return false, fmt.Errorf("reading the address of %s: %w", l.key, err)
	}
	p := &page{key: l.key, address: l.address, depth: 1, status: Queued}
	ch := &chain{page: p, now: p, status: Queued, at: at, way: way{source: policy.OpenAPI, reason: reason, accept: acceptAPI}}
	if err := c.move(ch, RobotsCheck); err != nil {
		return false, err
	}
	if err := c.claim(ctx, p); err != nil {
		return false, err
	}
	if err := c.move(ch, Fetching); err != nil {
		return false, err
	}
	c.count(resp)
	return true, c.receive(ctx, ch, resp)
}
