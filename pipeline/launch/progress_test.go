package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// The live line says how much of the whole is done, how long the rest takes as soon
// as that can be said, and how many requests failed.
func TestLiveLine(t *testing.T) {
	job, _ := pipeline.Named("seed")
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	tally := ledger.Tally{Counts: ledger.Counts{"domains_unique": 7}}
	one := liveText{job: job, lanes: 1}
	say := func(l *liveText, after time.Duration, lanes int, done, hosts int64) string {
		at = at.Add(after)
		return l.write(tally, lane.Plan{Lanes: lanes, Done: done, Hosts: hosts}, at)
	}
	assert.Equal(t, "7 domains", say(&one, 0, 0, 0, 0), "no lane has begun")
	assert.Equal(t, "0/177 hosts, ETA unknown, 7 domains", say(&one, 0, 1, 0, 177))
	tally.HTTP.Failures = ledger.Counts{"dns": 2, "tls": 1}
	assert.Equal(t, "60/177 hosts, ETA unknown, 3 requests failed, 7 domains", say(&one, 9*time.Second, 1, 60, 177), "too early")
	assert.Equal(t, "60/177 hosts, ETA 20s, 3 requests failed, 7 domains", say(&one, time.Second, 1, 60, 177))
	tally.HTTP.Failures = nil
	assert.Equal(t, "177/177 hosts, ETA 0s, 7 domains", say(&one, time.Second, 1, 177, 177))

	tail := liveText{job: job, lanes: 1}
	say(&tail, 0, 1, 0, 177)
	say(&tail, 10*time.Second, 1, 173, 177)
	assert.Equal(t, "173/177 hosts, ETA unknown, 7 domains", say(&tail, time.Second, 1, 173, 177), "the last hosts are slower than the others")
	at = at.Add(2 * time.Second)
	slow := lane.Plan{Lanes: 1, Done: 173, Hosts: 177, Visited: []lane.Visited{{Name: "a.de", Since: at.Add(-13 * time.Second), Until: at.Add(time.Minute)},
		{Name: "b.de", Since: at.Add(-9 * time.Second), Until: at}, {Name: "c.de", Since: at}, {Name: "d.de", Since: at}}}
	assert.Equal(t, "173/177 hosts, waiting for a.de until 10:01:24, b.de 9s, 2 more, 7 domains", tail.write(tally, slow, at))

	paused := liveText{job: job, lanes: 1}
	say(&paused, 0, 1, 60, 177)
	assert.Equal(t, "62/177 hosts, ETA unknown, 7 domains", say(&paused, 30*time.Second, 1, 62, 177), "too few")
	for range 70 { // a pause
		say(&paused, time.Second, 1, 90, 177)
	}
	assert.Equal(t, "90/177 hosts, ETA unknown, 7 domains", say(&paused, time.Second, 1, 90, 177))
	assert.LessOrEqual(t, len(paused.past), 62, "it is bounded")

	fast := liveText{job: job, lanes: 1}
	say(&fast, 0, 1, 0, 177)
	tally.Counts["domains_unique"] = 127
	assert.Equal(t, "100/177 hosts, ETA 8s, 127 domains (12/s)", say(&fast, 10*time.Second, 1, 100, 177))
	tally.Counts["domains_unique"] = 7

	many := liveText{job: job, lanes: 8}
	assert.Equal(t, "3/50+ hosts, ETA unknown, 7 domains", say(&many, 0, 1, 3, 50))
	assert.Equal(t, "3/~1600 hosts, ETA unknown, 7 domains", say(&many, 0, 2, 3, 400))
	assert.Equal(t, "403/~1600 hosts, ETA ~30s, 7 domains", say(&many, 10*time.Second, 2, 403, 400))
	assert.Equal(t, "403/1500 hosts, ETA 55s, 7 domains", say(&many, 10*time.Second, 8, 403, 1500))

	stream := liveText{job: job, lanes: 1, unbounded: true}
	assert.Equal(t, "7 domains", say(&stream, 0, 1, 60, 177))
	cluster := liveText{job: job, lanes: 64, elsewhere: true}
	assert.Contains(t, say(&cluster, 0, 0, 0, 0), "pipeline runs show")

	for _, c := range []struct{ job, unit string }{{"docs", "hosts"}, {"catalog", "sites"}, {"news", "publishers"}} {
		j, _ := pipeline.Named(c.job)
		assert.Contains(t, say(&liveText{job: j, lanes: 1}, 0, 1, 1, 2), "1/2 "+c.unit+", ETA unknown, ")
	}

	assert.Equal(t, "short", fit("short", 80))
	assert.Equal(t, "0123456789012345678901234567890123456789012345…"[:45]+"…", fit("01234567890123456789012345678901234567890123456789", 60))
	assert.Len(t, []rune(fit("01234567890123456789012345678901234567890123456789", 10)), 20)
}
