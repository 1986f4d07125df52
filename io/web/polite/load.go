package polite

import (
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// minRefusedGap is the shortest gap after a site has refused a request because of its
// load.
const minRefusedGap = time.Second

// load is what a site's answers show of its load.
type load struct {
	took    time.Duration // its response time, smoothed
	refused time.Duration // the gap that its refusals lead to
}

// add adds an exchange that took so long, without an answer if resp is nil. gap is the
// gap without regard to the load, most the longest one that the load leads to.
//
// A failure is often quicker than a page: it makes the response time longer, not shorter.
// Each refusal doubles the gap, and each good answer takes a quarter of it off again, so a
// site gets about three good answers for each doubling before it has its old gap.
func (l *load) add(resp *web.Response, took, gap, most time.Duration) {
	good := resp != nil && resp.Status != 429 && resp.Status < 500
	if smooth := l.took + (took-l.took)/4; l.took == 0 {
		l.took = took
	} else if good || smooth > l.took {
		l.took = smooth
	}
	switch {
	case resp != nil && (resp.Status == 429 || resp.Status == 503):
		l.refused = min(max(2*l.refused, 2*gap, minRefusedGap), most)
	case good:
		if l.refused -= l.refused / 4; l.refused <= max(gap, minRefusedGap) {
			l.refused = 0
		}
	}
}

// gap is the gap that the load leads to: factor times the response time, or more after
// refusals.
func (l *load) gap(factor float64, most time.Duration) time.Duration {
	return min(max(time.Duration(factor*float64(l.took)), l.refused), most)
}
