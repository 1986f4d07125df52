package migrate_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/migrate"
)

func TestMain(m *testing.M) { lanetest.Main(m) }

const (
	legacy = "research/datasets/country=sg/category=news/2026-01-28_0001.json"
	placed = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"
)

// bucket returns a new memory store and its URL.
func bucket(t *testing.T, objects map[string]string) (store.Store, string) {
	t.Helper()
	at := "mem://migrate-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	s, err := store.Open(t.Context(), at)
	require.NoError(t, err)
	for k, v := range objects {
		require.NoError(t, s.Put(t.Context(), k, strings.NewReader(v), store.PutOptions{}))
	}
	return s, at
}

// contents are the keys under the two roots with their contents.
func contents(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range []string{"datasets/", "research/"} {
		for o, err := range s.List(t.Context(), root) {
			require.NoError(t, err)
			r, err := s.Open(t.Context(), o.Key)
			require.NoError(t, err)
			b, err := io.ReadAll(r)
			require.NoError(t, errors.Join(err, r.Close()))
			all[o.Key] = string(b)
		}
	}
	return all
}

func TestCopyFile(t *testing.T) {
	tests := []struct {
		name          string
		before, after map[string]string
		remove        bool
		done          migrate.Outcome
		err           error
	}{
		{"copies", map[string]string{legacy: "a"}, map[string]string{legacy: "a", placed: "a"}, false, migrate.Outcome{Copied: true}, nil},
		{"removes what it verified", map[string]string{legacy: "a"}, map[string]string{placed: "a"}, true, migrate.Outcome{Copied: true, Deleted: true}, nil},
		{"was copied before", map[string]string{legacy: "a", placed: "a"}, map[string]string{legacy: "a", placed: "a"}, false, migrate.Outcome{}, nil},
		{"was copied before, is removed now", map[string]string{legacy: "a", placed: "a"}, map[string]string{placed: "a"}, true, migrate.Outcome{Deleted: true}, nil},
		{"same size, another content", map[string]string{legacy: "a", placed: "b"}, map[string]string{legacy: "a", placed: "b"}, true, migrate.Outcome{}, migrate.ErrDiffers},
		{"another size", map[string]string{legacy: "a", placed: "ab"}, map[string]string{legacy: "a", placed: "ab"}, true, migrate.Outcome{}, migrate.ErrDiffers},
		{"is not there", map[string]string{}, map[string]string{}, true, migrate.Outcome{}, store.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := bucket(t, tt.before)
			done, err := migrate.CopyFile(t.Context(), s, legacy, tt.remove)
			assert.True(t, done == tt.done && errors.Is(err, tt.err), "%+v, %v; want %+v, %v", done, err, tt.done, tt.err)
			assert.Equal(t, tt.after, contents(t, s))
		})
	}
	s, _ := bucket(t, map[string]string{placed: "a"})
	if _, err := migrate.CopyFile(t.Context(), s, placed, true); err == nil || !strings.Contains(err.Error(), "not a raw file of the legacy layout") {
		t.Error("a file of the new layout is taken for a legacy one")
	}
	assert.Equal(t, map[string]string{placed: "a"}, contents(t, s))
}

func TestFiles(t *testing.T) {
	kr := "research/datasets/country=kr/category=policy/2026-01-29_0002.json"
	s, _ := bucket(t, map[string]string{legacy: "", kr: "", placed: "",
		"research/datasets/country=sg/category=news/2026-01-28_1.json":    "",
		"research/datasets/country=sg/category=news/2026-02-30_0001.json": "",
		"research/datasets/country=sg/category=news/.DS_Store":            ""})
	for _, tt := range []struct {
		cfg  migrate.Config
		want []string
	}{
		{migrate.Config{}, []string{kr, legacy}},
		{migrate.Config{Country: "sg"}, []string{legacy}},
		{migrate.Config{Category: "policy"}, []string{kr}},
		{migrate.Config{Date: "2026-01-28"}, []string{legacy}},
		{migrate.Config{Country: "sg", Category: "news", Date: "2026-01-29"}, nil},
	} {
		var got []string
		for r, err := range migrate.Files(t.Context(), s, tt.cfg, func(string) {}) {
			require.NoError(t, err)
			got = append(got, r.Key)
		}
		assert.Equal(t, tt.want, got, "%+v", tt.cfg)
	}
}

// The whole graph: a file whose new key has other content becomes a dead letter; the others are copied.
func TestMigrate(t *testing.T) {
	second, secondPlaced := strings.Replace(legacy, "_0001", "_0002", 1), strings.Replace(placed, "_0001", "_0002", 1)
	s, at := bucket(t, map[string]string{legacy: "a", second: "b", secondPlaced: "other"})
	run := func(id string) ledger.Tally {
		t.Helper()
		cfg := migrate.Config{DeleteVerified: true, Lane: lane.Config{Job: migrate.Job, RunID: "run-" + id, Store: at, Slots: 1, LogFormat: "json", LogLevel: 12}}
		p, scope := beam.NewPipelineWithRoot()
		lane.Total(scope, cfg.Lane, migrate.Copy(scope, cfg, migrate.List(scope, cfg)))
		_, err := beam.Run(t.Context(), "direct", p)
		require.NoError(t, errors.Join(err, lane.Close(cfg.Lane.RunID)))
		total, err := ledger.ReadTotal(t.Context(), s, cfg.Lane.RunID)
		require.NoError(t, err)
		return total
	}
	letters := func() (all []ledger.DeadLetter) {
		for d, err := range ledger.ListDeadLetters(t.Context(), s, migrate.Job, "") {
			require.NoError(t, err)
			all = append(all, d)
		}
		return all
	}
	c := run("1").Counts
	if c["files_listed"] != 2 || c["files_copied"] != 1 || c["files_verified"] != 1 || c["files_deleted"] != 1 || c["files_bad"] != 1 {
		t.Errorf("counts %v", c)
	}
	assert.Equal(t, map[string]string{placed: "a", second: "b", secondPlaced: "other"}, contents(t, s))
	l := letters()
	assert.True(t, len(l) == 1 && l[0].Kind == "copy_failed" && l[0].Input.File == second && !l[0].Retryable, "dead letters %+v", l)
	// A person removes one of the two: the next run copies the file and resolves the dead letter.
	require.NoError(t, s.Delete(t.Context(), secondPlaced))
	c = run("2").Counts
	assert.True(t, c["files_copied"] == 1 && c["files_bad"] == 0, "counts %v", c)
	assert.Equal(t, map[string]string{placed: "a", secondPlaced: "b"}, contents(t, s))
	assert.Empty(t, letters(), "dead letters")
	// A third run has nothing to do and is complete.
	assert.Empty(t, run("3").Counts, "counts")
}
