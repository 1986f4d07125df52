//go:build e2e && nightly

package dataflow

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// The jobs with a database are submitted like the seed job, and their staged
// pipelines leave the same results as a local run. The launcher does not know
// the database's password: the workers have it in their own environment.
func TestJobs(t *testing.T) {
	for name, c := range map[string]struct {
		job     func(rig.Web) rig.Job
		threads int64
	}{
		"catalog": {rig.Catalog, 4},
		"docs":    {func(w rig.Web) rig.Job { return rig.Docs(t, w) }, 4},
		"news":    {func(w rig.Web) rig.Job { return rig.News(t, w) }, 1}, // its --concurrency is 4
	} {
		t.Run(name, func(t *testing.T) {
			w := emptyWorld(t)
			j := c.job(w.web)
			there := rig.Left{Store: rig.Directory(t, nil), DSN: dbtest.Postgres(t)}
			here := rig.Left{Store: w.bucket, DSN: dbtest.Postgres(t)}
			local := j.Start(t, w.web, there.Store, there.DSN, "--runner=prism")
			require.Zero(t, local.Wait(t, 2*time.Minute), "%s", rig.Tail(local.Output(t)))
			w.web.ResetLog()

			t.Setenv("SEED_DB", here.DSN) // the workers' own environment
			known, err := url.Parse(here.DSN)
			require.NoError(t, err)
			known.User = url.User(known.User.Username())
			given, content := otherWorker(t)
			a := startAPI(t, runStaged(t, 2*time.Minute))
			w.home = append(w.home, j.Env...)
			launcher := w.launch(t, a, append([]string{"--worker_binary=" + given, "--db=" + known.String()}, j.Args...)...)
			require.Zero(t, launcher.Wait(t, 3*time.Minute), "%s", rig.Tail(launcher.Output(t)))
			requireEmpty(t, w.dir)
			require.Len(t, a.jobs, 1)
			worker, model, modelSHA256 := checkJob(t, a.jobs[0], form{workers: 3, threads: c.threads, workerSHA256: sum(content)})
			pipeline := staged(t, model)
			assert.Equal(t, modelSHA256, sum(pipeline))
			checkPipeline(t, pipeline, worker, sum(content), w.bucket)

			got := rig.LastReport(t, w.bucket)
			assert.Equal(t, "done", got.State)
			assert.EqualValues(t, len(w.web.Requests()), got.HTTP.Requests, "as in the simulated web's own log")
			j.Same(t, here, there)
		})
	}
}
