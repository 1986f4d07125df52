// Package lanetest helps the tests of a job's stages. No promise: see docs/library.md.
package lanetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // registers the runners

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/prism"
	"github.com/newsfork/seed-engine/io/scratch"
)

func init() {
	register.Function2x0(countsText)
	register.Emitter1[string]()
	register.DoFn2x1[[]byte, func(*string) bool, error](&wanted{})
	register.Iter1[string]()
}

// Main is the TestMain of a package that runs graphs: without the runners' own
// log, with one prism, on loopback, for all its tests, and with a folder for temporary
// files that is removed at the end: Beam removes none of its own.
func Main(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	beamlog.SetLogger(silent{})
	tmp, remove, err := scratch.Dir("test-") // short: the path of the browser's socket may have 107 bytes
	if err != nil {
		return 0, err
	}
	defer func() { _ = remove() }() // PostgreSQL may still end in there; what stays, a later process removes
	// PostgreSQL refuses to run as root: its own user must get to its folder.
	if err := errors.Join(os.Chmod(tmp, 0o711), os.Setenv("TMPDIR", tmp), prism.Use(context.Background(), slog.New(slog.DiscardHandler))); err != nil {
		return 0, err
	}
	return ptest.MainRet(m), nil
}

type silent struct{}

// Log implements Beam's.
func (silent) Log(context.Context, beamlog.Severity, int, string) {}

// Equals lets the pipeline fail unless a PCollection of strings holds these, in any order. Beam's
// passert, which compares all types, takes longer to compile than all our jobs.
func Equals(s beam.Scope, got beam.PCollection, want ...string) {
	beam.ParDo0(s, &wanted{want}, beam.Impulse(s), beam.SideInput{Input: got})
}

type wanted struct{ Want []string }

// ProcessElement implements Equals.
func (w *wanted) ProcessElement(_ []byte, next func(*string) bool) error {
	var got []string
	for s := ""; next(&s); {
		got = append(got, s)
	}
	if want := slices.Sorted(slices.Values(w.Want)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		return fmt.Errorf("the collection holds %q, want %q", got, want)
	}
	return nil
}

// Counts are the counts of tallies, each as "name n", for Equals. Store calls,
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
