//go:build unix

package engine_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// A source that refuses ends that source; the publisher ends when robots.txt, an article or all
// of its sources refuse.
func TestRefusedSources(t *testing.T) {
	for name, tt := range cases.Table[map[string]struct {
		File    string
		Pages   map[string]string
		State   engine.State
		Reason  string
		Stored  int64
		Alerts  []string
		Request []string
	}](t, "refused.yaml") {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			pages := map[string]string{"/a/1": story("", prose)}
			maps.Copy(pages, tt.Pages)
			w.serve("daily.example", pages)
			w.serve("feeds.example", map[string]string{"/rss": "429"})
			r := w.run(declared(t, tt.File))
			assert.Equal(t, []any{tt.State, tt.Reason, tt.Stored}, []any{r.State, r.Reason, r.Inserted})
			assert.Equal(t, tt.Alerts, r.Alerts)
			assert.Equal(t, tt.Request, w.paths())
			assert.Equal(t, int(tt.Stored), w.count("true"))
		})
	}
}
