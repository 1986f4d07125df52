package known

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// A job that names no count of failures fails with its requests.
func TestFailures(t *testing.T) {
	r := ledger.Report{Counts: ledger.Counts{"good": 3, "bad": 1},
		HTTP: ledger.HTTP{Requests: 100, ByStatus: ledger.Counts{"200": 70, "503": 9}, Failures: ledger.Counts{"dns": 21}}}
	for want, job := range map[[2]int64]ledger.Job{{1, 4}: {Done: "good", Failed: "bad"}, {30, 100}: {Done: "good"}} {
		failed, of := Job{option.Job{Job: job}}.Failures(r)
		assert.Equal(t, want, [2]int64{failed, of})
	}
}
