package hive

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRaw(t *testing.T) {
	kr := Partition{"kr", "news", "2026-01-28"}
	for key, want := range map[string]Raw{
		"datasets/country=kr/category=news/date=2026-01-28/raw_0001.json":    {Partition: kr, Sequence: 1},
		"datasets/country=kr/category=news/date=2026-01-28/raw_0000.json":    {Partition: kr, Sequence: 0},
		"datasets/country=kr/category=news/date=2026-01-28/raw_123456.json":  {Partition: kr, Sequence: 123456},
		"datasets/country=sg/category=a_b-9/date=2024-02-29/raw_0010.json":   {Partition: Partition{"sg", "a_b-9", "2024-02-29"}, Sequence: 10},
		"datasets/country=zz/category=gov/date=0001-01-01/raw_00000002.json": {Partition: Partition{"zz", "gov", "0001-01-01"}, Sequence: 2},
	} {
		want.Key = key
		got, ok := ParseRaw(key)
		require.True(t, ok, key)
		require.Equal(t, want, got)
		require.Equal(t, key, got.NewKey())
		require.False(t, NearMiss(key), key)
		_, legacy := ParseLegacy(key)
		require.False(t, legacy, key)
	}
}

func TestLeftOut(t *testing.T) {
	const dir = "datasets/country=kr/category=news/date=2026-01-28/"
	for key, near := range map[string]bool{
		dir + "raw_1.json":                    true,
		dir + "RAW_0001.JSON":                 true,
		dir + "raw-0001.json":                 true,
		dir + "raw0001.json":                  true,
		dir + "raw_0001 (1).json":             true,
		dir + "raw_0001.jsonl":                true,
		dir + "raw_0001.json.success":         false,
		dir + "raw_metadata.json":             false,
		dir + ".DS_Store":                     false,
		dir + "Thumbs.db":                     false,
		dir + "raw_0001.json\n":               false,
		dir + "":                              false,
		dir + "sub/raw_0001.json":             true,
		dir + strings.Repeat("0", 3):          false,
		"x" + dir + "raw_0001.json":           false,
		"processing/raw_0001.json":            false,
		"":                                    false,
		dir + "raw_99999999999999999999.json": true, // no int holds it
		"datasets/country=kr/category=news/date=2026-02-30/raw_0001.json":  true, // no such day
		"datasets/country=kr/category=news/date=2025-02-29/raw_0001.json":  true,
		"datasets/country=KR/category=news/date=2026-01-28/raw_0001.json":  true,
		"datasets/country=kor/category=news/date=2026-01-28/raw_0001.json": true,
		"datasets/country=kr/category=/date=2026-01-28/raw_0001.json":      true,
		"datasets/category=news/country=kr/date=2026-01-28/raw_0001.json":  true,
		"research/datasets/country=kr/category=news/2026-13-01_0001.json":  true,
		"research/datasets/country=kr/category=news/2026-01-28_1.json":     true,
		"research/datasets/country=kr/category=news/notes.json":            false,
	} {
		_, raw := ParseRaw(key)
		_, legacy := ParseLegacy(key)
		require.False(t, raw || legacy, "%q is no raw file", key)
		require.Equal(t, near, NearMiss(key), "NearMiss(%q)", key)
	}
}

func TestParseLegacy(t *testing.T) {
	for key, newKey := range map[string]string{
		"research/datasets/country=sg/category=news/2026-01-28_0001.json":    "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json",
		"research/datasets/country=kr/category=go_v/2024-02-29_0000123.json": "datasets/country=kr/category=go_v/date=2024-02-29/raw_0000123.json",
	} {
		r, ok := ParseLegacy(key)
		require.True(t, ok, key)
		require.True(t, r.Legacy)
		require.Equal(t, newKey, r.NewKey())
		moved, ok := ParseRaw(newKey)
		require.True(t, ok, newKey)
		require.Equal(t, r.Partition, moved.Partition)
		require.Equal(t, r.Sequence, moved.Sequence)
		require.False(t, NearMiss(key))
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct{ root, country, category, date, want string }{
		{Datasets, "", "", "", "datasets/"},
		{Datasets, "kr", "", "", "datasets/country=kr/"},
		{Datasets, "kr", "news", "", "datasets/country=kr/category=news/"},
		{Datasets, "kr", "news", "2026-01-28", "datasets/country=kr/category=news/date=2026-01-28/"},
		{Datasets, "", "news", "2026-01-28", "datasets/"},
		{Datasets, "kr", "", "2026-01-28", "datasets/country=kr/"},
		{legacyDatasets, "", "", "", "research/datasets/"},
		{legacyDatasets, "sg", "news", "2026-01-28", "research/datasets/country=sg/category=news/2026-01-28_"},
	} {
		require.Equal(t, c.want, Prefix(c.root, c.country, c.category, c.date))
	}
}

func TestDomainDir(t *testing.T) {
	p := Partition{"kr", "news", "2026-01-28"}
	for domain, want := range map[string]string{
		"example.co.kr": "example.co.kr",
		"xn--9i1b.kr":   "xn--9i1b.kr",
		"../../etc":     ".._.._etc",
		"A_b:8080/é?":   "__b_8080___",
	} {
		require.Equal(t, "processing/country=kr/category=news/date=2026-01-28/"+want, p.DomainDir(domain))
	}
}

func FuzzParseRaw(f *testing.F) {
	f.Add("datasets/country=kr/category=news/date=2026-01-28/raw_0001.json")
	f.Add("research/datasets/country=sg/category=news/2026-01-28_0001.json")
	f.Add("datasets/country=kr/category=news/date=2026-02-30/raw_1.json")
	f.Fuzz(func(t *testing.T, key string) {
		raw, isRaw := ParseRaw(key)
		legacy, isLegacy := ParseLegacy(key)
		require.True(t, !isRaw || !isLegacy, "%q has both layouts", key)
		require.True(t, (!isRaw && !isLegacy) || !NearMiss(key), "%q is a raw file and a near miss", key)
		for _, r := range []Raw{raw, legacy} {
			if r.Key == "" {
				continue
			}
			p := r.Partition
			again, ok := ParseRaw(r.NewKey())
			require.True(t, ok && again.Partition == p && again.Sequence == r.Sequence, "%q moved to %q, which reads as %+v", key, r.NewKey(), again)
			root := Datasets
			if r.Legacy {
				root = legacyDatasets
			}
			prefix := Prefix(root, p.Country, p.Category, p.Date)
			require.True(t, strings.HasPrefix(key, prefix), "%q is not under its own prefix %q", key, prefix)
		}
	})
}
