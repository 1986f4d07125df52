// Package export writes what the jobs found to files: one table a file, from the store or
// from the database, filtered, while runs may be at work. No promise: see docs/library.md.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// Filter chooses rows; an empty field chooses all.
type Filter struct {
	Country, Category, Date string    // of the seed job's partitions
	Run                     string    // id of a run
	Names                   []string  // of providers, sites or publishers
	Since                   time.Time // collected or changed then or later
}

// Source is where rows come from.
type Source struct {
	Store store.Store
	DB    *db.DB // of a What with NeedsDB
	Filter
}

// What is one kind of rows that can be exported.
type What struct {
	Name, Job, About string
	// Version is raised when a column is removed or changes its meaning. A new column
	// does not change it.
	Version int
	// Filters are the flags that choose its rows; Since says which time --since is about.
	Filters []string
	Since   string

	row   reflect.Type
	known func(context.Context, Source) error // refuses a filter's value that nothing has
	open  func(context.Context, *db.DB) error // nil: not from the database
	write func(ctx context.Context, src Source, f rows.Format, name string, to io.Writer) (int64, error)
}

// NeedsDB reports whether the rows are in the database.
func (w What) NeedsDB() bool { return w.open != nil }

// Open opens the database of the rows, and brings its tables up to date.
func (w What) Open(ctx context.Context, dsn string) (*db.DB, error) {
	d, err := db.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := w.open(ctx, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Title names the rows and their version, in schemas and in Parquet files.
func (w What) Title() string { return fmt.Sprintf("%s/%d", w.Name, w.Version) }

// Known refuses names of a filter that the source has nothing of.
func (w What) Known(ctx context.Context, src Source) error { return w.known(ctx, src) }

// Columns are the columns of the rows.
func (w What) Columns() []rows.Column { return rows.Columns(w.row) }

// Schema is the JSON Schema of a row, as a JSON line has it.
func (w What) Schema() ([]byte, error) { return rows.Schema(w.row, w.Title(), w.About) }

// Write writes the rows to a file, and returns how many there were.
func (w What) Write(ctx context.Context, src Source, f rows.Format, to io.Writer) (int64, error) {
	if w.NeedsDB() {
		if err := w.known(ctx, src); err != nil {
			return 0, err
		}
	}
	n, err := w.write(ctx, src, f, w.Title(), to)
	if err == nil && n == 0 {
		err = w.known(ctx, src)
	}
	return n, err
}

// of completes w with the rows that read yields.
func of[T any](w What, read func(context.Context, Source) iter.Seq2[T, error]) What {
	w.row = reflect.TypeFor[T]()
	w.write = func(ctx context.Context, src Source, f rows.Format, name string, to io.Writer) (int64, error) {
		return rows.Write(f, to, name, read(ctx, src))
	}
	return w
}

var partitioned = []string{"country", "category", "date", "since"}

// All are the kinds of rows that can be exported.
var All = []What{
	ofSeed(What{Name: "domains", About: "What is known about each domain in each partition, when it is done.", Filters: partitioned}, seed.Domains),
	ofSeed(What{Name: "feeds", About: "The sitemaps, RSS and Atom feeds of those domains.", Filters: partitioned}, seed.Feeds),
	ofSeed(What{Name: "outcomes", About: "What became of each domain in a run: collected, unreachable or failed, and why.", Filters: append(slices.Clone(partitioned), "run")}, seed.Outcomes),
	ofDocs(What{Name: "pages", About: "The pages of API documentation that the docs job found, and what became of each.", Since: "when the page changed or was deleted"}, docs.Pages),
	ofDocs(What{Name: "chunks", About: "The chunks of those pages, with a preview of their text.", Since: "when their page changed"}, docs.Chunks),
	ofDocs(What{Name: "links", About: "The links between those pages.", Since: "when the page that has the link changed"}, docs.Links),
	ofCatalog(What{Name: "products", About: "The products of sites.", Since: "when the product changed or was gone"}, catalog.Products),
	ofCatalog(What{Name: "product-history", About: "Each change of a value of those products.", Since: "when the value changed"}, catalog.Changes),
	ofCatalog(What{Name: "product-images", About: "The images of those products, whose bytes --images keeps in the store.", Since: "when the product named it, the bytes were received, or the product named it no longer"}, catalog.ProductImages),
	ofNews(What{Name: "articles", About: "The articles of publishers that have not expired.", Since: "when the article was fetched first, or changed"}, raw.Articles),
	ofNews(What{Name: "article-versions", About: "The earlier versions of those articles, the last 20 of each.", Since: "when the next version was found"}, raw.Versions),
}

func ofSeed[T any](w What, read func(context.Context, store.Store, seed.Filter) iter.Seq2[T, error]) What {
	w.Job, w.Version, w.Since, w.known = seed.Job, 2, "when the domain was visited", knownPartition
	return of(w, func(ctx context.Context, src Source) iter.Seq2[T, error] {
		return read(ctx, src.Store, seed.Filter{Country: src.Country, Category: src.Category, Date: src.Date, Since: src.Since, Run: src.Run})
	})
}

// Named returns the What of that name.
func Named(name string) (What, error) {
	i := slices.IndexFunc(All, func(w What) bool { return w.Name == name })
	if i < 0 {
		return What{}, usage.Errorf("--what=%s: use %s", name, usage.Or(Names()))
	}
	return All[i], nil
}

// Names are the names of All.
func Names() (names []string) {
	for _, w := range All {
		names = append(names, w.Name)
	}
	return names
}

// knownPartition refuses a run that the store does not know, and a country, category or
// date of which it has no raw file.
func knownPartition(ctx context.Context, src Source) error {
	if src.Run != "" {
		if _, err := ledger.Load(ctx, src.Store, src.Run); errors.Is(err, store.ErrNotExist) {
			return usage.Errorf("there is no run %s in this store; `runs` lists them", src.Run)
		}
	}
	if src.Country+src.Category+src.Date == "" {
		return nil
	}
	there := map[string]bool{}
	for o, err := range src.Store.List(ctx, hive.Datasets) {
		if err != nil {
			return fmt.Errorf("listing the raw files: %w", err)
		}
		r, ok := hive.ParseRaw(o.Key)
		if !ok {
			continue
		}
		p := r.Partition
		if (src.Country == "" || p.Country == src.Country) && (src.Category == "" || p.Category == src.Category) && (src.Date == "" || p.Date == src.Date) {
			return nil
		}
		there[p.Country+"/"+p.Category+"/"+p.Date] = true
	}
	if len(there) == 0 {
		return nil
	}
	all := make([]string, 0, len(there))
	for p := range there {
		all = append(all, p)
	}
	slices.Sort(all)
	const most = 20
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return usage.Errorf("no domain has --country=%q --category=%q --date=%q; the store has country/category/date %s", src.Country, src.Category, src.Date, strings.Join(all, ", "))
}
