package migrate_test

import (
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/migrate"
)

// stage runs a part of the graph on its own.
func stage(t *testing.T, at string, build func(beam.Scope, migrate.Config)) {
	t.Helper()
	cfg := migrate.Config{Country: "sg", Lane: lane.Config{Job: migrate.Job, RunID: "run-1", Store: at, Slots: 1, LogFormat: "json", LogLevel: 12}}
	ptest.BuildAndRun(t, func(s beam.Scope) { build(s, cfg) })
	require.NoError(t, lane.Close(cfg.Lane.RunID))
}

func TestListStage(t *testing.T) {
	second := strings.Replace(legacy, "_0001", "_0002", 1)
	_, at := bucket(t, map[string]string{legacy: "a", second: "b", placed: "a",
		strings.Replace(legacy, "country=sg", "country=kr", 1):        "c",
		strings.Replace(legacy, "2026-01-28_0001", "2026-02-30_1", 1): "d"})
	stage(t, at, func(s beam.Scope, cfg migrate.Config) {
		lanetest.Equals(s, migrate.List(s, cfg), legacy, second)
	})
}

func TestCopyStage(t *testing.T) {
	second, third := strings.Replace(legacy, "_0001", "_0002", 1), strings.Replace(legacy, "_0001", "_0003", 1)
	thirdPlaced := strings.Replace(placed, "_0001", "_0003", 1)
	s, at := bucket(t, map[string]string{legacy: "a", second: "b", third: "c", thirdPlaced: "other"})
	stage(t, at, func(s beam.Scope, cfg migrate.Config) {
		cfg.DeleteVerified = true
		lanetest.Equals(s, lanetest.Counts(s, migrate.Copy(s, cfg, beam.Create(s, legacy, third))),
			"files_listed 1", "files_copied 1", "files_verified 1", "files_deleted 1",
			"files_listed 1", "files_bad 1", "dead_letters 1")
	})
	assert.Equal(t, map[string]string{placed: "a", second: "b", third: "c", thirdPlaced: "other"}, contents(t, s))
}
