//go:build e2e

package flink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// Workers in the launcher's process are reached over loopback alone.
func TestSockets(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	s := startServer(t, w)
	c := w.Start(t, rig.Directory(t, rig.Bucket(20)), s.args("LOOPBACK", 2)...)
	found := c.Sockets(t, c.Ended)
	assert.NotEqual(t, 0, len(found), "the workers' socket was not seen: was the right process looked at?")
	for _, one := range found {
		assert.False(t, one.Open(), "it listens on %s, which other machines can reach", one)
	}
	if code := c.Wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s", code, rig.Tail(c.Output(t)))
	}
}
