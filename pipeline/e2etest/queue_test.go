//go:build e2e

package e2etest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/queue/queuetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func fromQueue(t *testing.T, w rig.Web, dir, address string) *rig.Child {
	t.Helper()
	return start(t, w, dir, "--runner=prism", "--from="+address, "--log-format=text", "--host-delay=0")
}

func urlSets() webtest.Options {
	return webtest.Options{Seed: 7, Latency: 2 * time.Millisecond, Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}}
}

// A message of each service becomes results: a raw file's, delivered three times, and a domain's. Anything else is a dead letter.
func TestQueues(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) queuetest.Service{
		"cloudflare": func(t *testing.T) queuetest.Service { return queuetest.Cloudflare(t) },
		"sqs":        func(t *testing.T) queuetest.Service { return queuetest.SQS(t) },
		"pubsub":     func(t *testing.T) queuetest.Service { return queuetest.PubSub(t) },
		"nats":       func(t *testing.T) queuetest.Service { return queuetest.NATS(t, 30*time.Second).Service },
	} {
		t.Run(name, func(t *testing.T) {
			q := begin(t)
			for k, v := range q.Env {
				t.Setenv(k, v)
			}
			w := rig.StartWeb(t, urlSets())
			dir := rig.Directory(t, nil)
			s := rig.Open(t, dir)
			c := fromQueue(t, w, dir, q.Address)
			key := raw(t, dir, 1, "site-1.com", "site-2.com")
			for range 3 {
				q.Put(`{"file_path":"` + key + `"}`)
			}
			q.Put(`{"domain_id":"com:sg:site-3.com","domain_url":"https://site-3.com/","registrable_domain":"site-3.com","authority":"com",` +
				`"partition_info":{"country":"sg","category":"news","date":"2026-02-02"},"source_file_path":"` + key + `"}`)
			q.Put("garbage")
			domain := "processing/country=sg/category=news/date=2026-02-02/site-3.com/domain_metadata.json"
			for _, mark := range []string{key + ".success", domain + ".success"} {
				rig.Eventually(t, mark, 60*time.Second, func() bool { return c.Ended() || there(t, s, mark)() })
			}
			rig.Eventually(t, "the end of the queue", 60*time.Second, func() bool { return c.Ended() || q.Len() == 0 })
			require.False(t, c.Ended(), "%s", rig.Tail(c.Output(t)))
			interrupt(t, c)
			assert.Contains(t, string(rig.Get(t, s, domain)), `"raw_file_path": "`+key+`"`)
			report := rig.LastReport(t, dir)
			assert.Equal(t, [3]int64{3, 1, 1}, [3]int64{report.Counts["domains_collected"], report.Counts["files_completed"], report.Counts["dead_letters"]})
		})
	}
}

// However often the program and the queue are killed, and a message is delivered: no file is lost, and no domain is
// requested after its mark.
func TestQueueKills(t *testing.T) {
	kills := 8
	if rig.Nightly {
		kills = 200
	}
	w := rig.StartWeb(t, urlSets())
	dir := rig.Directory(t, nil)
	s := rig.Open(t, dir)
	q := queuetest.NATS(t, 2*time.Second)
	draw := rand.New(rand.NewPCG(7, 7))
	var keys []string
	c := fromQueue(t, w, dir, q.Address)
	for n := range kills {
		for range 2 {
			i := len(keys) + 1
			keys = append(keys, raw(t, dir, i, fmt.Sprintf("site-%d.com", 3*i), fmt.Sprintf("site-%d.com", 3*i+1), fmt.Sprintf("site-%d.com", 3*i+2)))
		}
		for range 1 + n%3 { // and out of order
			q.Put(`{"file_path":"` + keys[len(keys)-1] + `"}`)
			q.Put(`{"file_path":"` + keys[len(keys)-2] + `"}`)
		}
		time.Sleep(time.Duration(draw.IntN(2500)) * time.Millisecond)
		if n%4 == 3 {
			q.Stop()
			time.Sleep(time.Duration(draw.IntN(500)) * time.Millisecond)
			q.Start()
			continue
		}
		c.Kill(t)
		c = fromQueue(t, w, dir, q.Address)
	}
	for _, key := range keys {
		rig.Eventually(t, key+".success", 90*time.Second, func() bool { return c.Ended() || there(t, s, key+".success")() })
	}
	rig.Eventually(t, "the end of the queue", 60*time.Second, func() bool { return c.Ended() || q.Len() == 0 })
	require.False(t, c.Ended(), "%s", rig.Tail(c.Output(t)))
	interrupt(t, c)
	last := map[string]time.Time{}
	for _, r := range w.Requests() {
		last[r.Host] = r.Start
	}
	marks := 0
	for i := 3; i < 3*len(keys)+3; i++ {
		host := fmt.Sprintf("site-%d.com", i)
		mark, err := os.Stat(filepath.Join(dir, "processing/country=sg/category=news/date=2026-02-02", host, "domain_metadata.json.success"))
		require.NoError(t, err, "lost")
		marks++
		assert.False(t, last[host].After(mark.ModTime()), "%s is requested %v after its mark", host, last[host].Sub(mark.ModTime()))
	}
	t.Logf("%d kills, %d files, %d domains", kills, len(keys), marks)
}

// The time from a message to its file's mark, on prism, with a message every quarter of a second.
func TestQueueLatency(t *testing.T) {
	messages := 40
	if rig.Nightly {
		messages = 400
	}
	w := rig.StartWeb(t, urlSets())
	dir := rig.Directory(t, nil)
	q := queuetest.NATS(t, 30*time.Second)
	c := fromQueue(t, w, dir, q.Address)
	sent := map[string]time.Time{}
	for n := range messages {
		key := raw(t, dir, n+1, fmt.Sprintf("site-%d.com", 2*n), fmt.Sprintf("site-%d.com", 2*n+1))
		if n == 0 { // the program starts
			q.Put(`{"file_path":"` + key + `"}`)
			rig.Eventually(t, "the first file", 60*time.Second, func() bool { return c.Ended() || there(t, rig.Open(t, dir), key+".success")() })
			continue
		}
		sent[key] = time.Now()
		q.Put(`{"file_path":"` + key + `"}`)
		time.Sleep(250 * time.Millisecond)
	}
	rig.Eventually(t, "the end of the queue", 60*time.Second, func() bool { return c.Ended() || q.Len() == 0 })
	require.False(t, c.Ended(), "%s", rig.Tail(c.Output(t)))
	interrupt(t, c)
	var took []time.Duration
	for key, at := range sent {
		mark, err := os.Stat(filepath.Join(dir, key+".success"))
		require.NoError(t, err)
		took = append(took, mark.ModTime().Sub(at))
	}
	slices.Sort(took)
	load, _ := os.ReadFile("/proc/loadavg") // only told
	p95 := took[len(took)*95/100]
	t.Logf("message to .success: p50 %v, p95 %v, load %s", took[len(took)/2], p95, strings.TrimSpace(string(load)))
	assert.LessOrEqual(t, p95, 3*time.Second)
}
