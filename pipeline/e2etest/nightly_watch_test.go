//go:build e2e && nightly

package e2etest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// A watch's memory does not grow with the number of files that it has read: its
// peak after a thousand small files is near its peak after the first hundred.
func TestWatchMemory(t *testing.T) {
	const step, files = 100, 1000
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			w := rig.StartWeb(t, webtest.Options{Seed: 7, Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}})
			dir := rig.Directory(t, nil)
			s := rig.Open(t, dir)
			c := watch(t, w, dir, way, "--watch=200ms", "--host-delay=0")
			begin := time.Now()
			var early, late int64
			for n := 0; n < files; n += step {
				var keys []string
				for i := n; i < n+step; i++ {
					keys = append(keys, raw(t, dir, i+1, fmt.Sprintf("site-%d.com", 2*i), fmt.Sprintf("site-%d.com", 2*i+1)))
				}
				for _, key := range keys {
					rig.Eventually(t, key+"'s .success", 30*time.Second, func() bool { return c.Ended() || there(t, s, key+".success")() })
				}
				if c.Ended() {
					t.Fatalf("the watch ended:\n%s", rig.Tail(c.Output(t)))
				}
				if late = peakSoFar(t, c); n == 0 {
					early = late
				}
			}
			t.Logf("peak %d MiB after %d files, %d MiB after %d, in %v", early>>20, step, late>>20, files, time.Since(begin).Round(time.Second))
			assert.True(t, late <= early*3/2, "the peak grew from %d to %d bytes", early, late)
			interrupt(t, c)
		})
	}
}

// peakSoFar returns the largest resident set of a running child, in bytes.
func peakSoFar(t *testing.T, c *rig.Child) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Cmd.Process.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatalf("no VmHWM in\n%s", status)
	return 0
}
