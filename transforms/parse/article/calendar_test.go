package article_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// Small pages that each show one kind of fault.
func TestSmallCases(t *testing.T) {
	type row struct {
		ID, File, How string
		Expected      any
	}
	zone := regexp.MustCompile(`Zone: ([\w/]+)`)
	for _, r := range cases.Rows[row](t, "round3/news/cases.jsonl") {
		m := zone.FindStringSubmatch(r.How)
		if m == nil { // of a run
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			at, err := time.LoadLocation(m[1])
			require.NoError(t, err)
			got, err := article.Extract(cases.File(t, "round3/news/"+r.File), "text/html; charset=utf-8", article.Rules{Zone: at})
			require.NoError(t, err)
			for name, want := range r.Expected.(map[string]any) {
				switch name {
				case "published":
					assert.Equal(t, want, got.Published.Format("2006-01-02T15:04")[:len(want.(string))])
				case "authors":
					assert.ElementsMatch(t, want, got.Authors)
				case "must_have":
					for _, s := range want.([]any) {
						assert.Contains(t, got.Body, s)
					}
				default:
					t.Errorf("the test does not know %s", name)
				}
			}
		})
	}
}

// Days of other calendars and orders.
func TestCalendars(t *testing.T) {
	for text, want := range cases.Table[map[string]string](t, "calendars.yaml") {
		got, ok := article.ParseTime(text, time.UTC)
		assert.True(t, ok, text)
		assert.Equal(t, want, got.Format(time.DateOnly), text)
	}
}

// The order of a day's numbers is of the page's country; its address and what it shows decide.
func TestOrderOfDays(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	london, err := time.LoadLocation("Europe/London")
	require.NoError(t, err)
	for _, c := range []struct {
		name, lang, head, shown string
		zone                    *time.Location
		want                    string
	}{
		{"American", "en-US", "", "02/03/2026", time.UTC, "2026-02-03"},
		{"an American zone", "en", "", "02/03/2026", newYork, "2026-02-03"},
		{"American by its locale", "en", `<meta property="og:locale" content="en_US">`, "02/03/2026", time.UTC, "2026-02-03"},
		{"the default of a theme in London", "en-US", "", "02/03/2026", london, "2026-03-02"},
		{"the default of a theme in Australia", "en-US", `<link rel="canonical" href="https://quay.example.au/a">`, "02/03/2026", time.UTC, "2026-03-02"},
		{"German", "de", "", "02/03/2026", time.UTC, "2026-03-02"},
		{"the address has the month first", "en", `<link rel="canonical" href="https://quay.example/2026/02/03/a">`, "02/03/2026", time.UTC, "2026-02-03"},
		{"the address has the day first", "en-US", `<link rel="canonical" href="https://quay.example/2026/03/02/a">`, "02/03/2026", time.UTC, "2026-03-02"},
		{"a day far after the shown one", "en", `<meta property="article:published_time" content="2062-11-20T08:00:00Z">`, "20 November 2026", time.UTC, "2026-11-20"},
		{"when a paper was received", "en", `<meta name="dc.date" content="2026-10-02">`, "Received: 4 March 2026", time.UTC, "2026-10-02"},
		{"an event in a sentence", "en", "", "On 3 March 2011 the old quay broke.</p><p>Posted 2 May 2026", time.UTC, "2026-05-02"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, `<html lang="`+c.lang+`"><head>`+c.head+`</head><body><article><h1>The harbour decides</h1><p>`+c.shown+`</p>`+paragraphs(4)+`</article></body></html>`, article.Rules{Zone: c.zone})
			assert.Equal(t, c.want, got.Published.Format(time.DateOnly))
		})
	}
}
