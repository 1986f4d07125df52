package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// All parts together take as many items as the limit says, in one process and in several.
func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		limit     int
		elsewhere bool
		want      []int // items that the parts take, if the first part begins first and each wants four
	}{
		"in one process":         {5, false, []int{4, 1, 0}},
		"elsewhere":              {5, true, []int{1, 2, 2}},
		"elsewhere, fewer items": {1, true, []int{0, 0, 1}},
		"no limit":               {0, true, []int{4, 4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Worker{cfg: Config{Limit: c.limit, Leases: c.elsewhere}}
			took := make([]int, len(c.want))
			for part := range took {
				for range 4 {
					empty := w.Quota(part, len(took)).Empty()
					taken := w.Quota(part, len(took)).Take() // of the same quota: a lane that begins again gets no other
					assert.Equal(t, empty, !taken)
					if taken {
						took[part]++
					}
				}
			}
			assert.Equal(t, c.want, took)
		})
	}
}
