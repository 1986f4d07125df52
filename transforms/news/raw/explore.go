package raw

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
)

// Finds are the articles that have not expired, for those who look at one.
func Finds() explore.Kind {
	return explore.Kind{Name: "articles", Title: "Articles", One: "article", SQL: true, About: "Articles that have not expired, by a part of their title, their text or their URL.",
		Fields: []explore.Field{{Name: "text", Label: "Text in the title, the text or the URL"}, {Name: "publisher", Label: "Publisher", Hint: "its id"}},
		Keys:   []explore.Field{{Name: "id", Label: "Id", Required: true}},
		Shown:  []string{"publisher", "published_at", "collected_at", "language", "url"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.Chosen("source", q["publisher"]), Text: q["text"], Columns: []string{"title", "raw_text", "url", "canonical_url"}}
			order := []db.Match{{Column: "source"}, {Column: "collected_at", Value: int64(0)}, {Column: "id"}}
			return explore.Rows(ctx, src.DB, "news_articles", q, look, order, func(l db.Look) iter.Seq2[ArticleRow, error] {
				return Articles(ctx, src.DB, rows.Filter{Look: l}, src.DB.Now())
			}, func(a ArticleRow) []string {
				return []string{a.Publisher, strconv.FormatInt(db.Micros(a.CollectedAt), 10), a.ID}
			}, articleItem)
		},
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
			a, err := explore.One(Articles(ctx, src.DB, rows.Filter{Look: db.Look{Equal: explore.Chosen("id", q["id"])}}, src.DB.Now()))
			if err != nil {
				return item, err
			}
			item = articleItem(a)
			versions, err := rows.Part("versions", "Earlier versions", []string{"version", "until_at", "title", "text"},
				Versions(ctx, src.DB, rows.Filter{Look: db.Look{Equal: []db.Match{{Column: "article_id", Value: a.ID}}}}, src.DB.Now()), "None: it has not changed since it was found.")
			if err != nil {
				return item, err
			}
			item.Parts = []explore.Part{{Name: "text", Title: "Text", Text: a.Text, Bytes: int64(len(a.Text))}, versions}
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
