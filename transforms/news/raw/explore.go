package raw

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
)

// maxDays is how many days of articles are counted.
const maxDays = 30

// byPublisher are the fields of a search that a list is counted by.
var byPublisher = append([]explore.By{{Field: "publisher", Column: "source"}, {Field: "language", Column: "language"}}, permit.By("")...)

// countArticles counts articles by publisher and day, UTC: the day of publication, or that of the first fetch where no other is known.
func countArticles(ctx context.Context, src explore.Source, q explore.Query) (c explore.Counts, err error) {
	c.At = src.DB.Now()
	at := "CASE WHEN published_at > $1 AND published_at <= $2 THEN published_at ELSE collected_at END"
	groups, facets, err := explore.GroupsOf(ctx, src.DB, explore.Counted{From: "news_articles", Where: "expires_at > $2",
		Column: src.DB.Day(at), Newest: at, Args: []any{int64(1), db.Micros(c.At)}}, q, byPublisher...)
	if c.Facets = facets; err != nil || facets == nil {
		return c, err
	}
	p := &explore.Picture{Title: "Articles a day by publisher", Row: "publisher", Column: "day", Over: true,
		Measures: []explore.Measure{{Name: "articles", Title: "Articles"}}}
	const day = 24 * 60 * 60
	first := c.At.Unix()/day - maxDays + 1
	for d := range int64(maxDays) {
		p.Columns = append(p.Columns, time.Unix((first+d)*day, 0).UTC().Format(time.DateOnly))
	}
	for _, g := range groups {
		column, n := g.Column-first, g.N
		if column < 0 {
			column, n = 0, 0 // it is older, and says only how old the newest is
		}
		p.Add(g.Values[0], int(column), "articles", n).See(g.Newest)
	}
	c.Picture = p
	return c, nil
}

// Finds are the articles that have not expired, for those who look at one.
func Finds() explore.Kind {
	return explore.Kind{Name: "articles", Title: "Articles", One: "article", SQL: true, About: "Articles that have not expired, by a part of their title, their text or their URL.",
		Fields: append([]explore.Field{{Name: "text", Label: "Text in the title, the text or the URL"}, {Name: "publisher", Label: "Publisher", Hint: "its id"},
			{Name: "language", Label: "Language"}}, permit.Fields()...),
		Keys:  []explore.Field{{Name: "id", Label: "Id", Required: true}},
		Shown: []string{"publisher", "published_at", "collected_at", "language", "url"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.ChosenBy(q, byPublisher...), Text: q["text"], Columns: []string{"title", "raw_text", "url", "canonical_url"}}
			order := []db.Match{{Column: "source"}, {Column: "collected_at", Value: int64(0)}, {Column: "id"}}
			return explore.Rows(ctx, src.DB, "news_articles", q, look, order, func(l db.Look) iter.Seq2[ArticleRow, error] {
				return Articles(ctx, src.DB, rows.Filter{Look: l}, src.DB.Now())
			}, func(a ArticleRow) []string {
				return []string{a.Publisher, strconv.FormatInt(db.Micros(a.CollectedAt), 10), a.ID}
			}, articleItem)
		},
		Count: countArticles,
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
			a, err := explore.One(Articles(ctx, src.DB, rows.Filter{Look: db.Look{Equal: explore.Chosen("id", q["id"])}}, src.DB.Now()))
			if err != nil {
				return item, err
			}
			item = articleItem(a)
			versions, err := rows.Part("versions", "Earlier versions", []string{"version", "until_at", "title", "text"},
				versionRows(ctx, src.DB, rows.Filter{Look: db.Look{Equal: []db.Match{{Column: "article_id", Value: a.ID}}}}, src.DB.Now()), "None: it has not changed since it was found.")
			if err != nil {
				return item, err
			}
			pictures, err := rows.Part("images", "Images", []string{"position", "url", "type", "width", "height", "bytes", "failure"},
				imageRows(ctx, src.DB, rows.Filter{Look: db.Look{Equal: []db.Match{{Column: "article_id", Value: a.ID}}}}, src.DB.Now()), "None: it names none, or the runs have no --images.")
			if err != nil {
				return item, err
			}
			item.Parts = []explore.Part{{Name: "text", Title: "Text", Text: a.Text, Bytes: int64(len(a.Text))}, versions, pictures}
			if a.CopyOf == "" {
				return item, nil
			}
			original := explore.Part{Name: "original", Title: "A copy of", Kind: "articles", Shown: []string{"publisher", "published_at", "url"}}
			o, err := explore.One(Articles(ctx, src.DB, rows.Filter{Look: db.Look{Equal: explore.Chosen("id", a.CopyOf)}}, src.DB.Now()))
			switch {
			case errors.Is(err, explore.ErrNone):
				original.Note = "It has expired: " + a.CopyOf
			case err != nil:
				return item, err
			default:
				original.Items = []explore.Item{articleItem(o)}
			}
			item.Parts = append(item.Parts, original)
			return item, nil
		},
	}
}

func articleItem(a ArticleRow) explore.Item {
	return explore.Item{Key: explore.Query{"id": a.ID}, Title: cmp.Or(a.Title, a.URL), Record: rows.Record(a), URL: a.URL, At: a.CollectedAt, Failures: a.URL}
}
