package seed_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/seed"
)

func memory(t *testing.T, keys ...string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://"+strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	must(t, err)
	for _, k := range keys {
		must(t, s.Put(t.Context(), k, strings.NewReader("{}"), store.PutOptions{}))
	}
	return s
}

func names(files []seed.File) (out []string) {
	for _, f := range files {
		out = append(out, strings.TrimPrefix(f.Key, "datasets/"))
	}
	return out
}

func TestListRaw(t *testing.T) {
	keys := []string{
		"datasets/country=sg/category=news/date=2026-01-28/raw_0002.json",
		"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json",
		"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json.success",
		"datasets/country=sg/category=news/date=2026-01-28/raw_10000.json", // after 9999, though before it by bytes
		"datasets/country=sg/category=news/date=2026-01-28/raw_9999.json",
		"datasets/country=sg/category=news/date=2026-01-29/raw_0001.json",
		"datasets/country=kr/category=news/date=2026-01-28/raw_0001.json",
		"datasets/country=kr/category=policy_2-x/date=2026-01-28/raw_0001.json",
		// none of these is a raw file
		"datasets/country=sg/category=news/date=2026-01-28/raw_metadata.json",
		"datasets/country=sg/category=news/date=2026-01-28/.DS_Store",
		"datasets/country=sg/category=news/date=2026-01-28/Thumbs.db",
		"datasets/country=sg/category=news/date=2026-01-28/raw_1.json",
		"datasets/country=sg/category=news/date=2026-01-28/RAW_0001.JSON",
		"datasets/country=sg/category=news/date=2026-02-30/raw_0001.json",
		"datasets/country=SG/category=news/date=2026-01-28/raw_0001.json",
	}
	tests := []struct {
		name                     string
		cfg                      seed.Config
		files                    []string
		listed, skipped, ignored int64
		nearMisses               []string
	}{
		{name: "all", files: []string{
			"country=kr/category=news/date=2026-01-28/raw_0001.json",
			"country=kr/category=policy_2-x/date=2026-01-28/raw_0001.json",
			"country=sg/category=news/date=2026-01-28/raw_0002.json",
			"country=sg/category=news/date=2026-01-28/raw_9999.json",
			"country=sg/category=news/date=2026-01-28/raw_10000.json",
			"country=sg/category=news/date=2026-01-29/raw_0001.json",
		}, listed: 7, skipped: 1, ignored: 8, nearMisses: []string{"RAW_0001.JSON", "raw_0001.json", "raw_0001.json", "raw_1.json"}},
		{name: "country", cfg: seed.Config{Country: "kr"}, files: []string{
			"country=kr/category=news/date=2026-01-28/raw_0001.json",
			"country=kr/category=policy_2-x/date=2026-01-28/raw_0001.json",
		}, listed: 2},
		{name: "all three", cfg: seed.Config{Country: "sg", Category: "news", Date: "2026-01-29"},
			files: []string{"country=sg/category=news/date=2026-01-29/raw_0001.json"}, listed: 1},
		{name: "date alone, which no prefix can express", cfg: seed.Config{Date: "2026-01-29"},
			files: []string{"country=sg/category=news/date=2026-01-29/raw_0001.json"}, listed: 1, ignored: 7, nearMisses: []string{"RAW_0001.JSON", "raw_0001.json", "raw_0001.json", "raw_1.json"}},
		{name: "one file of a replay", cfg: seed.Config{Files: []string{"datasets/country=kr/category=news/date=2026-01-28/raw_0001.json"}},
			files: []string{"country=kr/category=news/date=2026-01-28/raw_0001.json"}, listed: 1, ignored: 7, nearMisses: []string{"RAW_0001.JSON", "raw_0001.json", "raw_0001.json", "raw_1.json"}},
		{name: "nothing", cfg: seed.Config{Country: "zz"}},
	}
	s := memory(t, keys...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := seed.ListRaw(t.Context(), s, tt.cfg)
			must(t, err)
			assert.Equal(t, tt.files, names(l.Files), "files")
			var near []string
			for _, k := range l.NearMiss {
				near = append(near, path.Base(k))
			}
			slices.Sort(near)
			assert.Equal(t, tt.nearMisses, near, "near misses")
			if tt.cfg.Country != "" || tt.cfg.Date != "" || tt.cfg.Files != nil {
				// What else lies under a prefix is another matter than the raw files.
				l.Ignored, tt.ignored = 0, 0
			}
			assert.True(t, l.Listed == tt.listed && l.Skipped == tt.skipped && l.Ignored == tt.ignored,
				"listed %d, skipped %d, ignored %d; want %d, %d, %d", l.Listed, l.Skipped, l.Ignored, tt.listed, tt.skipped, tt.ignored)
		})
	}
}

func TestListRawForced(t *testing.T) {
	s := memory(t, day+"raw_0001.json", day+"raw_0002.json", day+"raw_0003.json")
	for name, by := range map[string]string{"raw_0001.json": "", "raw_0002.json": "earlier", "raw_0003.json": "this"} {
		o := store.PutOptions{}
		if by != "" {
			o.Metadata = map[string]string{"forced-by": by}
		}
		must(t, s.Put(t.Context(), day+name+".success", strings.NewReader(""), o))
	}
	for _, tt := range []struct {
		force string
		open  []string
	}{
		{"", nil}, // a mark of any run is a mark
		{"this", []string{day + "raw_0001.json", day + "raw_0002.json"}}, // the killed try of this forced run did 3
		{"next", []string{day + "raw_0001.json", day + "raw_0002.json", day + "raw_0003.json"}},
	} {
		l, err := seed.ListRaw(t.Context(), s, seed.Config{ForceID: tt.force})
		must(t, err)
		var got []string
		for _, f := range l.Files {
			got = append(got, f.Key)
		}
		assert.True(t, slices.Equal(got, tt.open) && l.Skipped == int64(3-len(tt.open)),
			"force %q: open %q, skipped %d, want open %q", tt.force, got, l.Skipped, tt.open)
	}
}

func TestListRawGivesVersionAndSize(t *testing.T) {
	s := memory(t, day+"raw_0001.json")
	o, err := s.Head(t.Context(), day+"raw_0001.json")
	must(t, err)
	l, err := seed.ListRaw(t.Context(), s, seed.Config{})
	must(t, err)
	assert.Equal(t, []seed.File{{Key: o.Key, ETag: o.ETag, Size: 2}}, l.Files)
}

// A page of 1000 is not the end of a listing.
func TestListRawPages(t *testing.T) {
	var keys []string
	for n := range 2500 {
		keys = append(keys, fmt.Sprintf("%sraw_%04d.json", day, n))
	}
	l, err := seed.ListRaw(t.Context(), memory(t, keys...), seed.Config{Country: "sg"})
	must(t, err)
	assert.True(t, len(l.Files) == 2500 && l.Files[2499].Key == day+"raw_2499.json",
		"%d files, last %v", len(l.Files), l.Files[len(l.Files)-1])
}

// A listing shows which files are marked: nothing else is asked of the store.
func TestListRawLooksAtNoMark(t *testing.T) {
	var keys []string
	for n := range 40 {
		file := fmt.Sprintf("%sraw_%04d.json", day, n)
		keys = append(keys, file, file+".success")
	}
	var calls store.Calls
	l, err := seed.ListRaw(t.Context(), store.Counted(memory(t, keys...), &calls), seed.Config{})
	must(t, err)
	assert.True(t, l.Skipped == 40 && len(l.Files) == 0, "%d skipped, %d open; want 40, 0", l.Skipped, len(l.Files))
	assert.EqualValues(t, 0, calls.Snapshot()["head"])
}
