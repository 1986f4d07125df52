package export

import (
	"context"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

func ofDocs[T any](w What, read func(context.Context, *db.DB, docs.Filter) iter.Seq2[T, error]) What {
	w.Job, w.Version, w.Filters, w.open = docs.Job, 1, []string{"provider", "since"}, docs.Migrate
	w.known = knownNames("provider", docs.ProvidersThere)
	return of(w, func(ctx context.Context, src Source) iter.Seq2[T, error] {
		return read(ctx, src.DB, docs.Filter{Providers: src.Names, Since: src.Since})
	})
}

func ofCatalog[T any](w What, read func(context.Context, *db.DB, catalog.Filter) iter.Seq2[T, error]) What {
	w.Job, w.Version, w.Filters, w.open = catalog.Job, 1, []string{"site", "since"}, catalog.Migrate
	w.known = knownNames("site", catalog.SitesThere)
	return of(w, func(ctx context.Context, src Source) iter.Seq2[T, error] {
		return read(ctx, src.DB, catalog.Filter{Sites: src.Names, Since: src.Since})
	})
}

func ofNews[T any](w What, read func(context.Context, *db.DB, raw.Filter, time.Time) iter.Seq2[T, error]) What {
	w.Job, w.Version, w.Filters, w.open = news.Job, 1, []string{"publisher", "since"}, raw.Migrate
	w.known = knownNames("publisher", raw.PublishersThere)
	return of(w, func(ctx context.Context, src Source) iter.Seq2[T, error] {
		return read(ctx, src.DB, raw.Filter{Publishers: src.Names, Since: src.Since}, src.DB.Now())
	})
}

// knownNames refuses names that the database does not have.
func knownNames(flag string, list func(context.Context, *db.DB) ([]string, error)) func(context.Context, Source) error {
	return func(ctx context.Context, src Source) error {
		if len(src.Names) == 0 {
			return nil
		}
		there, err := list(ctx, src.DB)
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, name := range there {
			have[name] = true
		}
		for _, name := range src.Names {
			switch {
			case have[name]:
			case len(there) == 0:
				return usage.Errorf("--%s=%s: the database has none yet; run the job first", flag, name)
			default:
				return usage.Errorf("--%s=%s: the database has nothing of it; use %s", flag, name, usage.Or(there))
			}
		}
		return nil
	}
}
