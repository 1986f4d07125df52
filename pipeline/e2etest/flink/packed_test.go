//go:build e2e

package flink

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// packed runs the seed job with packed results and kills its worker in the middle. The
// results become the objects that prism writes, and no host asks for a second visit
// whose first one was committed.
func packed(t *testing.T, s server, w rig.Web, files, want map[string]string) {
	w.ResetLog()
	dir, begin := rig.Directory(t, files), time.Now()
	run := w.Start(t, dir, s.args("PROCESS", 4, "--layout=table", "--segment-age=100ms", "--rate=150", "--lease-ttl=6s")...)
	rig.Eventually(t, "a segment", 2*time.Minute, func() bool { return run.Ended() || len(parts(t, dir)) > 0 })
	if run.Ended() {
		t.Fatalf("the run ended:\n%s", rig.Tail(run.Output(t)))
	}
	kill(t, s.workers(t))
	sent := len(w.Requests())
	killed := time.Since(begin)
	ended(t, run)
	t.Logf("killed after %v, done after %v", killed, time.Since(begin))
	log := w.Requests()
	assert.NotEqual(t, sent, len(log), "nothing was left to do after the kill: it proves nothing")
	rig.OneAtATime(t, log)
	rig.RobotsObeyed(t, w, log)
	done := map[string]time.Time{}
	results := map[string]bool{}
	in := rig.Open(t, dir)
	for _, p := range parts(t, dir) {
		domains, err := p.ReadNames(t.Context(), in)
		require.NoError(t, err)
		for _, d := range domains {
			for _, name := range d.Names {
				key := filepath.Join(d.Country, d.Category, d.Date, name)
				if results[key] {
					t.Errorf("%s was committed twice", key)
				}
				results[key], done[name] = true, p.At
			}
		}
	}
	for _, r := range log {
		if at, ok := done[strings.TrimPrefix(r.Host, "www.")]; ok && r.Method != "" && r.Start.After(at) {
			t.Errorf("%s was committed, and got a request for %s %v later", r.Host, r.Path, r.Start.Sub(at))
		}
	}
	r := rig.LastReport(t, dir)
	assert.Equal(t, "done", r.State, "the run is %s, want done", r.State)
	rig.Materialize(t, dir)
	rig.Same(t, rig.Objects(t, dir), want)
}

// parts are the parts of the table.
func parts(t *testing.T, dir string) []domaintable.Part {
	t.Helper()
	all, err := domaintable.All(t.Context(), rig.Open(t, dir))
	require.NoError(t, err)
	return all
}
