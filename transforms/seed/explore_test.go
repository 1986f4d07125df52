package seed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

var finds = seed.Finds()

func search(t *testing.T, s store.Store, q explore.Query) explore.List {
	t.Helper()
	list, err := finds.Search(t.Context(), explore.Source{Store: s}, q)
	require.NoError(t, err)
	return list
}

func show(t *testing.T, s store.Store, q explore.Query) explore.Item {
	t.Helper()
	item, err := finds.Show(t.Context(), explore.Source{Store: s}, q)
	require.NoError(t, err)
	return item
}

func part(item explore.Item, name string) explore.Part {
	for _, p := range item.Parts {
		if p.Name == name {
			return p
		}
	}
	return explore.Part{}
}

// Each layout shows the same of a domain: what export writes, and the evidence as it was
// stored.
func TestFindDomain(t *testing.T) {
	inObjects, packed := packedJob(t), packedJob(t)
	inObjects.cfg.Layout = seed.Objects
	inObjects.run()
	packed.run()
	for name, j := range map[string]*job{"objects": inObjects, "packed": packed} {
		t.Run(name, func(t *testing.T) {
			list := search(t, j.store, explore.Query{"domain": "https://www.urlset-1.com/x"})
			require.Empty(t, list.Next)
			require.Len(t, list.Items, 2)
			first, err := json.Marshal(list.Items[0].Key)
			require.NoError(t, err)
			require.JSONEq(t, `{"domain":"urlset-1.com","country":"sg","category":"policy","date":"2026-01-29"}`, string(first))
			require.Len(t, search(t, j.store, explore.Query{"domain": "com:sg:urlset-1.com", "date": "2026-01-28"}).Items, 1)

			item := show(t, j.store, list.Items[0].Key)
			for d, err := range seed.Domains(t.Context(), j.store, seed.Filter{Date: "2026-01-29"}) {
				require.NoError(t, err)
				if d.RegistrableDomain == "urlset-1.com" {
					require.Equal(t, rows.Record(d), item.Record)
				}
			}
			if name == "packed" {
				require.Equal(t, j.runID, item.RunID)
			}
			object := func(file string) string {
				return string(inObjects.read(out(otherDay+"raw_0001.json", "urlset-1.com", file)))
			}
			robots, sitemap := part(item, "robots.txt"), part(item, "sitemap.xml")
			require.Equal(t, object("robots.txt"), robots.Text)
			require.EqualValues(t, len(robots.Text), robots.Bytes)
			require.False(t, robots.Truncated)
			require.Equal(t, object("sitemap.xml"), sitemap.Text)
			require.Contains(t, sitemap.Note, "Read as urlset, ")

			_, err = finds.Show(t.Context(), explore.Source{Store: j.store}, explore.Query{"domain": "gzip-5.com", "country": "sg", "category": "news", "date": "2026-01-28"})
			require.ErrorIs(t, err, explore.ErrNone)
			require.Contains(t, search(t, j.store, explore.Query{"domain": "nobody.com"}).Note, "Nothing is stored of nobody.com")
		})
	}
}

// Of two layouts the newest visit counts.
func TestFindNewest(t *testing.T) {
	j := packedJob(t)
	j.run()
	before := show(t, j.store, explore.Query{"domain": "gzip-5.com", "country": "sg", "category": "policy", "date": "2026-01-29"})
	j.cfg.Layout, j.cfg.ForceID = seed.Objects, "force"
	j.run()
	after := show(t, j.store, before.Key)
	require.True(t, after.At.After(before.At))
	require.NotContains(t, part(after, "robots.txt").Stored, domaintable.Root)
}

// A look for one domain costs the same store calls, however many results there are.
func TestFindCostsNoListing(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://find-costs")
	must(t, err)
	const document = `{"domain_id":"com:sg:NAME","registrable_domain":"NAME","country":"SG","category":"news","collected_at":"2026-01-28T00:30:00.120Z","robots":{"status_code":404,"content_length":0,"exists":false},"sitemap":{"status_code":404,"content_length":0,"exists":false,"url":"https://NAME/sitemap.xml"}}`
	p := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	must(t, store.Write(t.Context(), s, day+"raw_0001.json", []byte("{}"), store.PutOptions{}))
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprintf("d%d.com", i)
			key := p.DomainDir(name) + "/" + hive.Metadata
			must(t, s.Put(t.Context(), key, strings.NewReader(strings.ReplaceAll(document, "NAME", name)), store.PutOptions{}))
			must(t, s.Put(t.Context(), key+hive.Success, bytes.NewReader(nil), store.PutOptions{}))
		}
	}
	cost := func() string {
		var calls store.Calls
		counted := store.Counted(s, &calls)
		list := search(t, counted, explore.Query{"domain": "d1.com"})
		require.Len(t, list.Items, 1)
		show(t, counted, list.Items[0].Key)
		return fmt.Sprint(calls.Snapshot())
	}
	fill(0, 10)
	few := cost()
	fill(10, 2_500)
	require.Equal(t, few, cost())
	t.Log(few)
}

// kept writes a result by hand, with this evidence.
func keepDomain(t *testing.T, s store.Store, name string, evidence map[string]string) explore.Query {
	t.Helper()
	p := hive.Partition{Country: "kr", Category: "news", Date: "2026-01-28"}
	doc := fmt.Sprintf(`{"domain_id":"com:kr:%[1]s","registrable_domain":"%[1]s","country":"KR","category":"news","collected_at":"2026-01-28T00:30:00.120Z","robots":{"status_code":200,"content_length":%[2]d,"exists":true},"sitemap":{"status_code":200,"content_length":%[3]d,"exists":true,"url":"https://%[1]s/sitemap.xml","kind":"urlset"}}`,
		name, len(evidence["robots.txt"]), len(evidence["sitemap.xml"]))
	key := p.DomainDir(name) + "/" + hive.Metadata
	must(t, store.Write(t.Context(), s, key, []byte(doc), store.PutOptions{}))
	for file, body := range evidence {
		must(t, store.Write(t.Context(), s, path.Dir(key)+"/"+file, []byte(body), store.PutOptions{}))
	}
	must(t, store.Write(t.Context(), s, key+hive.Success, nil, store.PutOptions{}))
	return explore.Query{"domain": name, "country": "kr", "category": "news", "date": "2026-01-28"}
}

func TestFindEvidence(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	must(t, err)
	var long strings.Builder
	long.WriteString("User-agent: *\r\n")
	for i := range 25_000 {
		fmt.Fprintf(&long, "Disallow: /page-%d\r\n", i)
	}
	require.Greater(t, long.Len(), 500<<10)
	q := keepDomain(t, s, "long.com", map[string]string{"robots.txt": long.String(), "sitemap.xml": strings.Repeat("<url/>\n", 100_000)})
	item := show(t, s, q)
	robots := part(item, "robots.txt")
	require.True(t, robots.Truncated)
	require.EqualValues(t, long.Len(), robots.Bytes)
	require.LessOrEqual(t, len(robots.Text), 64<<10)
	require.True(t, strings.HasPrefix(robots.Text, "User-agent: *\nDisallow: /page-0\nDisallow: /page-1\n"))
	require.True(t, part(item, "sitemap.xml").Truncated)
	require.Len(t, part(item, "sitemap.xml").Text, 64<<10)

	q = keepDomain(t, s, "controls.com", map[string]string{"robots.txt": "User-agent: *\n\x00\x1b[31mDisallow: /\x07\xff\xfe\n"})
	require.Equal(t, "User-agent: *\n[31mDisallow: /\uFFFD\n", part(show(t, s, q), "robots.txt").Text)

	q = keepDomain(t, s, "xn--bcher-kva.com", map[string]string{"robots.txt": "User-agent: *\n"})
	must(t, store.Write(t.Context(), s, "datasets/country=kr/category=news/date=2026-01-28/raw_0001.json", nil, store.PutOptions{}))
	require.Equal(t, "xn--bcher-kva.com (bücher.com)", show(t, s, q).Title)
	for _, name := range []string{"bücher.com", "BÜCHER.com", "https://bücher.com/a?b"} {
		require.Len(t, search(t, s, explore.Query{"domain": name}).Items, 1, name)
	}
}

func TestFindRefuses(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	must(t, err)
	for _, q := range []explore.Query{{"domain": "../runs"}, {"domain": "127.0.0.1"}, {"domain": "localhost"}, {"domain": "a.com", "country": "SG"}, {"domain": "a.com", "category": "../x"}, {"domain": "a.com", "date": "28"}, {"domain": "a.com", "after": "x"}} {
		_, err := finds.Search(t.Context(), explore.Source{Store: s}, q)
		var refused *explore.RefusedError
		require.ErrorAs(t, err, &refused, "%v", q)
	}
}

// The list of all domains has each of a country and category once, as it was last visited, in both layouts. Its counts are those of the
// lists that they lead to. What is known is not read again.
func TestAllDomains(t *testing.T) {
	for _, layout := range []seed.Layout{seed.Objects, seed.Table} {
		t.Run(string(layout), func(t *testing.T) {
			j := packedJob(t)
			j.cfg.Layout = layout
			j.run()
			kind := seed.Finds()
			src := explore.Source{Store: j.store}
			all := func(q explore.Query) (items []explore.Item) {
				t.Helper()
				require.Eventually(t, func() bool {
					c, err := kind.Count(t.Context(), src, explore.Query{})
					require.NoError(t, err)
					return !c.At.IsZero()
				}, time.Minute, time.Millisecond)
				for {
					list, err := kind.Search(t.Context(), src, q)
					require.NoError(t, err)
					items = append(items, list.Items...)
					if q[explore.After] = list.Next; list.Next == "" {
						return items
					}
				}
			}
			want := map[string]seed.Domain{} // the newest of each cell
			of := func(country, category, domain any) string { return fmt.Sprint(country, "/", category, "/", domain) }
			byDate := map[string]int{}
			for d, err := range seed.Domains(t.Context(), j.store, seed.Filter{}) {
				require.NoError(t, err)
				byDate[d.Date]++
				if key := of(d.Country, d.Category, d.RegistrableDomain); want[key].Date < d.Date {
					want[key] = d
				}
			}
			items := all(explore.Query{})
			require.Len(t, items, len(want))
			for _, i := range items {
				d := want[of(i.Key["country"], i.Key["category"], i.Key["domain"])]
				for _, c := range i.Record {
					require.Equal(t, rows.Record(d).Column(c.Name).Value, c.Value, c.Name)
				}
			}
			c, err := kind.Count(t.Context(), src, explore.Query{})
			require.NoError(t, err)
			for _, v := range c.Facets[2].Values {
				require.Len(t, all(explore.Query{"date": v.Value}), byDate[v.Value])
				require.EqualValues(t, byDate[v.Value], v.Count)
			}
			require.Len(t, c.Facets[2].Values, len(byDate))
			for _, line := range c.Picture.Rows {
				for measure, figures := range line.Figures {
					for i, n := range figures {
						require.Len(t, all(explore.Query{"country": line.Name, "category": c.Picture.Columns[i], explore.MeasureField: measure}), int(n), "%s %s", line.Name, measure)
					}
				}
			}
			sum := 0
			for _, d := range want {
				if d.SitemapParsed {
					sum++
				}
			}
			require.Positive(t, sum)
			require.Len(t, all(explore.Query{explore.MeasureField: "sitemap"}), sum)
			for _, after := range []string{"x", "a/b/c", "zzz/2026-01-01/sg/news"} {
				_, err := kind.Search(t.Context(), src, explore.Query{explore.After: after})
				require.Equal(t, strings.Count(after, "/") != 3, err != nil, after)
			}
			_, err = kind.Search(t.Context(), src, explore.Query{"country": "../x"})
			require.Error(t, err)
		})
	}
}

// A store without results has an empty list.
func TestNoDomains(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	kind := seed.Finds()
	c, err := kind.Count(t.Context(), explore.Source{Store: s}, explore.Query{})
	require.NoError(t, err)
	require.Nil(t, c.Picture)
	require.Empty(t, c.Note)
}
