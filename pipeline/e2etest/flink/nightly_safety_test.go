//go:build e2e && nightly

package flink

import (
	"testing"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/pipeline/e2etest/safety"
)

// TestSafety prints Flink's row of docs/politeness.md. It crawls with two worker processes. They are killed first, then the launcher.
func TestSafety(t *testing.T) {
	web, dsn := safety.StartWeb(t, false), dbtest.Postgres(t)
	s := startServer(t, rig.Web{}, "SEED_DB="+dsn)
	c := safety.Ours(t, web, dsn, s.args("PROCESS", 2, safety.SharedServer, "--lanes=8")...)
	kills := 0
	c.Kill = func(launcher *rig.Child) bool {
		if kills++; kills == 1 {
			kill(t, s.workers(t))
			return false // the launcher submits the job again
		}
		launcher.Kill(t)
		return true
	}
	v := safety.Run(t, web, c, safety.Kills...)
	safety.Row(t, "Flink", v)
	safety.Polite(t, v, 2*kills)
}
