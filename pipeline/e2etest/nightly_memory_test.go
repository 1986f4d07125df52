//go:build e2e && nightly

package e2etest

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// The memory of a run after all URL records were read and merged: the run is
// stopped at its first visits.
func TestMemoryOfManyDomains(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 1, Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}})
	dir := rig.Directory(t, nil)
	laid := 0
	peak := map[string]int64{}
	for _, run := range []struct {
		runner, lanes string
		domains       int
		maxRSS        int64 // bytes, 0 for a run that is only compared
	}{
		{"direct", "1", 1000, 400 << 20},
		{"prism", "1", 1000, 400 << 20},
		{"direct", "1", 100_000, 700 << 20},
		{"prism", "1", 100_000, 700 << 20},
		{"prism", "1", 1_000_000, 2 << 30},
		{"prism", "16", 1_000_000, 250 << 20},
		{"direct", "16", 1_000_000, 250 << 20},
		{"direct", "1", 1_000_000, 0},
		{"direct", "16", 1_000_000, 0},
	} {
		const inOne = 100_000
		for laid < run.domains { // each run adds raw files; no earlier run has marked one as done
			n := min(inOne, run.domains-laid)
			rawFile(t, dir, fmt.Sprintf("raw_%04d.json", 1+laid), n, func(i int) string { return fmt.Sprintf(`{"raw_url":"https://site-%d.com/"}`, laid+i) })
			laid += n
		}
		if run.maxRSS == 0 { // garbage would hide the memory in use
			t.Setenv("GOGC", "20")
		}
		w.ResetLog()
		c := start(t, w, dir, "--runner="+run.runner, "--lanes="+run.lanes, "--rate=20")
		rig.Eventually(t, "the first visit", time.Minute, func() bool { return len(w.Requests()) > 0 })
		require.NoError(t, c.Cmd.Process.Signal(syscall.SIGINT))
		if code := c.Wait(t, time.Minute); code != 130 {
			t.Fatalf("exit code %d, want 130\n%s", code, rig.Tail(c.Output(t)))
		}
		peak[run.runner+run.lanes] = c.PeakRSS(t)
		t.Logf("%s, %d domains, %s lanes: peak RSS %d MB", run.runner, run.domains, run.lanes, c.PeakRSS(t)>>20)
		if run.maxRSS > 0 && c.PeakRSS(t) > run.maxRSS {
			t.Errorf("%s, %d domains, %s lanes: peak RSS %d MB, want under %d", run.runner, run.domains, run.lanes, c.PeakRSS(t)>>20, run.maxRSS>>20)
		}
	}
	if one, many := peak["direct1"], peak["direct16"]; many >= one {
		t.Errorf("peak RSS %d MB with 16 lanes, %d MB with one: want less with 16", many>>20, one>>20)
	}
}
