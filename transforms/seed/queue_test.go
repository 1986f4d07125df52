package seed

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue/queuetest"
	"github.com/newsfork/seed-engine/io/store"
)

// Messages become files and domains, in a fresh process at each call; the store is never listed.
func TestQueueSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dir = "datasets/country=sg/category=news/date=2026-02-02/"
		const domain = `{"domain_id":"gov:sg:mom.gov.sg","domain_url":"https://www.mom.gov.sg/newsroom","registrable_domain":"mom.gov.sg","authority":"gov",` +
			`"partition_info":{"country":"sg","category":"news","date":"2026-02-02"}}`
		first, put := newLister(t, "queue", time.Minute)
		b := &queuetest.Broker{TTL: time.Minute}
		put("raw_0001.json")
		for range 2 {
			b.Put(`{"account":"a","action":"PutObject","bucket":"b","object":{"key":"`+dir+`raw_0001.json"}}`, nil)
			b.Put(domain, nil)
		}
		for _, other := range []string{"raw_metadata.json", "raw_0001.json.success"} {
			b.Put(`{"account":"a","action":"PutObject","bucket":"b","object":{"key":"`+dir+other+`"}}`, nil)
		}
		b.Put(`{"account":"a","action":"PutObject","bucket":"b","object":{"key":"`+dir+`raw_1.json"}}`, nil) // a near miss
		b.Put(`{"file_path":"`+dir+`raw_0009.json"}`, nil)                                                   // there is none
		var emitted []string
		tracker := first.CreateTracker(first.CreateInitialRestriction(nil))
		during := func(d time.Duration) {
			t.Helper()
			for until := time.Now().Add(d); time.Now().Before(until); {
				fn := &pollFn{doFn: first.doFn, Source: first.Source, queue: b}
				again, err := fn.ProcessElement(t.Context(), fn.CreateWatermarkEstimator(), tracker, nil, func(_ beam.EventTime, f File) {
					emitted = append(emitted, f.Key)
				}, func(beam.EventTime, ledger.Tally) {})
				require.True(t, err == nil && again.ShouldResume(), "a call ends the source: %v", err)
				tracker = resume(t, fn, tracker)
				time.Sleep(again.ResumeDelay())
			}
		}
		during(9 * time.Minute)
		assert.Equal(t, []string{dir + "raw_0001.json", dir + "#gov:sg:mom.gov.sg#"}, emitted)
		assert.Equal(t, 4, b.Len(), "messages that wait for the marks of two things")
		s := first.Worker.Store
		var dead []string
		for d, err := range s.List(t.Context(), "dead-letters/seed/") {
			require.NoError(t, err)
			dead = append(dead, d.Key)
		}
		assert.Len(t, dead, 2, "of the near miss and of the missing file")
		before := first.Worker.Live().Store["list"]
		during(9 * time.Minute)
		assert.Equal(t, before, first.Worker.Live().Store["list"], "the source does not list")
		for _, key := range []string{dir + "raw_0001.json.success", "processing/country=sg/category=news/date=2026-02-02/mom.gov.sg/domain_metadata.json.success"} {
			require.NoError(t, s.Put(t.Context(), key, strings.NewReader(""), store.PutOptions{}))
		}
		during(time.Minute)
		assert.Zero(t, b.Len(), "messages after their marks")
	})
}
