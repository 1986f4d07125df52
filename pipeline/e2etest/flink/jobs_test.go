//go:build e2e

package flink

import (
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// The jobs with a database leave the same rows there as on prism. They run on two
// slots, and the workers have the password in their own environment.

func TestCatalog(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	sameAsPrism(t, w, rig.Catalog(w))
}

func TestDocs(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	sameAsPrism(t, w, rig.Docs(t, w))
}

func TestNews(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	sameAsPrism(t, w, rig.News(t, w))
}

// sameAsPrism runs a job on prism and on Flink in parallel, each with its own
// database and store.
func sameAsPrism(t *testing.T, w rig.Web, j rig.Job) {
	t.Helper()
	there := rig.Left{Store: rig.Directory(t, nil), DSN: dbtest.Postgres(t)}
	here := rig.Left{Store: rig.Directory(t, nil), DSN: dbtest.Postgres(t)}
	onPrism := j.Start(t, w, there.Store, there.DSN, "--runner=prism")
	s := startServer(t, w, "SEED_DB="+here.DSN)
	begin := time.Now()
	onFlink := j.Start(t, w, here.Store, here.DSN, s.args("PROCESS", 2)...)
	for _, c := range []*rig.Child{onPrism, onFlink} {
		if code := c.Wait(t, 2*time.Minute); code != 0 {
			t.Fatalf("%v: exit code %d, want 0:\n%s", c.Cmd.Args, code, rig.Tail(c.Output(t)))
		}
	}
	t.Logf("%v", time.Since(begin))
	j.Same(t, here, there)
}
