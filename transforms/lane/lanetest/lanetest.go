// Package lanetest helps the tests of a job's stages.
package lanetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // registers the runners

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/prism"
)

func init() {
	register.Function2x0(countsText)
	register.Emitter1[string]()
}

// Main is the TestMain of a package that runs graphs: without the runners' own
// log, and with one prism, on loopback, for all its tests.
func Main(m *testing.M) {
	beamlog.SetLogger(silent{})
	if err := prism.Use(context.Background(), slog.New(slog.DiscardHandler)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ptest.Main(m)
}

type silent struct{}

// Log implements Beam's.
func (silent) Log(context.Context, beamlog.Severity, int, string) {}

// Counts are the counts of tallies, each as "name n", for passert. Store calls,
// requests and times are left out.
func Counts(s beam.Scope, tallies beam.PCollection) beam.PCollection {
	return beam.ParDo(s, countsText, tallies)
}

func countsText(t ledger.Tally, emit func(string)) {
	for name, n := range t.Counts {
		emit(fmt.Sprintf("%s %d", name, n))
	}
}

// Shown are the lanes' counters as the runner's console has them. Prism 2.77 loses
// what a bundle counted when another one ends before it has learnt the counters'
// short ids (metricsStore keeps one payload a short id); there they are those of
// the total, which come from one bundle.
func Shown(runner string, result beam.PipelineResult) ledger.Counts {
	space := map[string]string{"direct": "lanes", "prism": "total"}[runner]
	shown := ledger.Counts{}
	for _, c := range result.Metrics().AllMetrics().Counters() {
		if c.Namespace() == space {
			shown[c.Name()] += c.Result()
		}
	}
	return shown
}
