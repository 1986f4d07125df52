package seed

import (
	"cmp"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// readRights adds what the site says about the use of its pages, as read from the answers of the visit. Of anything else
// than a robots.txt nothing is concluded.
func (c *collector) readRights(f *findings, robots, sitemap exchange) {
	l := rights.Ledger{Agent: c.client.Agent(c.origin)}
	l.Requested(answer.Response{Status: robots.status, Header: robots.header, URL: robots.url, Final: robots.final, Body: robots.body},
		answer.Kind(f.metadata.Robots.Kind), robots.truncated, robots.at)
	if sitemap.ok() && !answer.Kind(f.metadata.Sitemap.Kind).Wall() {
		l.Answer(cmp.Or(sitemap.final, sitemap.url), sitemap.status, sitemap.header, sitemap.body, sitemap.at)
	}
	if home := f.evidence["homepage.html"]; home.is(answer.Page) == string(answer.Page) {
		l.Answer(cmp.Or(home.final, home.url), home.status, home.header, home.body, home.at)
		if text, _, err := charset.Decode(home.body, home.header.Get("Content-Type")); err == nil {
			l.HTML(text)
		}
	}
	r := l.Rights("")
	f.metadata.Rights = &r
	countRights(&f.sum, r)
}

func countRights(sum *ledger.Tally, r rights.Rights) {
	if len(r.Statements) > 0 {
		sum.Count("rights_stated", 1)
	}
	if r.Verdicts.Search == rights.Reserved {
		sum.Count("rights_reserved_search", 1)
	}
	if r.Verdicts.AIInput == rights.Reserved {
		sum.Count("rights_reserved_ai_input", 1)
	}
	if r.Verdicts.AITrain == rights.Reserved {
		sum.Count("rights_reserved_ai_train", 1)
	}
	if r.Verdicts.Archive == rights.Reserved {
		sum.Count("rights_reserved_archive", 1)
	}
	for _, p := range rights.Purposes {
		if r.Verdicts.Of(p) == rights.Contradictory {
			sum.Count("rights_contradictory", 1)
			break
		}
	}
}
