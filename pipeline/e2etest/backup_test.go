//go:build e2e

package e2etest

import (
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// keeping makes places: directories with SQLite, and an S3 with PostgreSQL.
func keeping(t *testing.T) map[string]func(name string) rig.Left {
	s3 := buckettest.StartVersity(t)
	n := 0
	return map[string]func(string) rig.Left{
		"directories": func(string) rig.Left { return rig.Left{Store: rig.Directory(t, nil), DSN: dbtest.SQLite(t)} },
		"S3 and PostgreSQL": func(name string) rig.Left {
			n++
			return rig.Left{Store: "s3://" + s3.Bucket + "/" + name + strconv.Itoa(n) + "?endpoint=" + s3.Endpoint + "&region=us-east-1", DSN: dbtest.Postgres(t)}
		},
	}
}

func program(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(rig.Program, args...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", args, out)
}

// carried makes a backup of a place, twice, the first time while its run is at work, and restores it in an empty place.
// Without a DSN the job has no database.
func carried(t *testing.T, from, to rig.Left, backup string, kill func()) {
	t.Helper()
	options := func(l rig.Left) []string {
		if l.DSN == "" {
			return []string{backup, "--store=" + l.Store}
		}
		return []string{backup, "--store=" + l.Store, "--db=" + l.DSN}
	}
	program(t, append([]string{"backup"}, options(from)...)...)
	kill()
	program(t, append([]string{"backup"}, options(from)...)...)
	program(t, "backup", "check", backup)
	program(t, append([]string{"restore"}, options(to)...)...)
	for o, err := range rig.Open(t, to.Store).List(t.Context(), "lease/") {
		require.NoError(t, err)
		t.Errorf("%s was restored", o.Key)
	}
}

// A run is killed, its store and database are restored elsewhere, and the same command continues there: nothing is lost, and what
// was finished is not requested again.
func TestRestoredRunContinues(t *testing.T) {
	t.Parallel()
	for name, place := range keeping(t) {
		for job, make := range map[string]func(rig.Web) rig.Job{
			"catalog": rig.Catalog,
			"docs":    func(w rig.Web) rig.Job { return rig.Docs(t, w) },
			"news":    func(w rig.Web) rig.Job { return rig.News(t, w) },
		} {
			t.Run(job+", "+name, func(t *testing.T) {
				w := rig.StartWeb(t, webtest.Options{})
				var left atomic.Int64 // so many requests are answered
				left.Store(math.MaxInt64)
				w.Before = func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						if left.Add(-1) < 0 {
							<-r.Context().Done()
							return
						}
						h.ServeHTTP(rw, r)
					})
				}
				j := make(w)
				want := rig.Left{Store: rig.Directory(t, nil), DSN: dbtest.SQLite(t)}
				require.Zero(t, j.Start(t, w, want.Store, want.DSN).Wait(t, 3*time.Minute))
				left.Store(int64(len(w.Requests()) * 2 / 3))
				from, to := place("from"), place("to")
				c := j.Start(t, w, from.Store, from.DSN)
				rig.Eventually(t, "two thirds of the requests", time.Minute, func() bool { return left.Load() < 0 })
				rig.Eventually(t, "some of it saved", time.Minute, func() bool { return len(finishedIn(t, from.DSN, job)) > 0 })
				carried(t, from, to, place("backup").Store, func() { c.Kill(t) })
				finished := finishedIn(t, to.DSN, job)
				require.NotEmpty(t, finished, "the kill came before anything was done")
				left.Store(math.MaxInt64)
				w.ResetLog()
				again := j.Start(t, w, to.Store, to.DSN, "--log-level=info")
				require.Zero(t, again.Wait(t, 3*time.Minute), again.Output(t))
				assert.NotContains(t, again.Output(t), "lease_waits")
				j.SameRows(t, to, want, j.Queries)
				for _, r := range w.Requests() {
					if slices.Contains(finished, r.Host+r.Path) {
						t.Errorf("%s%s was done before the backup, and got another request", r.Host, r.Path)
					}
				}
				states := map[ledger.State]int{}
				for r, err := range ledger.List(t.Context(), rig.Open(t, to.Store)) {
					require.NoError(t, err)
					states[r.State]++
				}
				assert.Equal(t, map[ledger.State]int{ledger.Interrupted: 1, ledger.Done: 1}, states)
			})
		}
	}
}

// finishedIn returns the addresses of what a database has.
func finishedIn(t *testing.T, dsn, job string) (all []string) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = d.Close() }() // nothing was written
	found, err := db.Texts(t.Context(), d, map[string]string{"catalog": `SELECT url FROM catalog_products`, "news": `SELECT canonical_url FROM news_articles`,
		"docs": `SELECT key FROM docs_pages WHERE status = 'indexed'`}[job])
	require.NoError(t, err)
	for _, address := range found {
		u, err := url.Parse(address)
		require.NoError(t, err)
		all = append(all, u.Host+u.Path)
	}
	return all
}

// The same of the seed job, whose marks say what is done, with objects and packed.
func TestRestoredSeedContinues(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	b := generate(60, steadyKinds)
	want := uninterrupted(t, w, b)
	half := len(w.Requests()) / 2
	for name, place := range keeping(t) {
		for layout, args := range map[string][]string{"objects": nil, "packed": packed} {
			t.Run(name+", "+layout, func(t *testing.T) {
				from, to := place("from"), place("to")
				from.DSN, to.DSN = "", ""
				rig.Put(t, from.Store, b.files)
				w.ResetLog()
				c := start(t, w, from.Store, args...)
				rig.Eventually(t, "half of the requests", time.Minute, func() bool { return len(w.Requests()) >= half || c.Ended() })
				carried(t, from, to, place("backup").Store, func() { c.Kill(t) })
				marked := marks(t, to.Store, false)
				w.ResetLog()
				run(t, w, to.Store, args...)
				done := 0
				for domain, asks := range b.domains {
					all := true
					for _, mark := range asks {
						all = all && marked[mark]
					}
					for _, r := range w.Requests() {
						if all && strings.TrimPrefix(r.Host, "www.") == domain {
							t.Errorf("%s was done before the backup, and got another request for %s", domain, r.Path)
						}
					}
					if all {
						done++
					}
				}
				assert.NotZero(t, done)
				if layout == "packed" {
					rig.Materialize(t, to.Store)
				}
				rig.Same(t, rig.Objects(t, to.Store), want)
			})
		}
	}
}
