package lane

import (
	"hash/crc32"
	"sync/atomic"
)

// Quota is how many items a part of the work may still begin under the run's limit.
type Quota struct{ left *atomic.Int64 } // nil: as many as there are

// Quota returns the quota of one of so many parts of the work. In one process all parts share the run's limit. If the workers are
// elsewhere, no process knows what the others have begun, and each part has an equal share.
func (w *Worker) Quota(part, parts int) Quota {
	limit := int64(w.cfg.Limit)
	if limit == 0 {
		return Quota{}
	}
	if !w.cfg.Leases {
		part, parts = 0, 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left, ok := w.quotas[part]
	if !ok {
		left = new(atomic.Int64)
		// The parts take turns by run in having the items of a small limit.
		at := (int64(part) + int64(crc32.ChecksumIEEE([]byte(w.cfg.RunID)))) % int64(parts)
		left.Store(limit*(at+1)/int64(parts) - limit*at/int64(parts))
		if w.quotas == nil {
			w.quotas = map[int]*atomic.Int64{}
		}
		w.quotas[part] = left
	}
	return Quota{left}
}

// Take reports whether one more item may begin, and counts it.
func (q Quota) Take() bool { return q.left == nil || q.left.Add(-1) >= 0 }

// Empty reports whether no more item may begin.
func (q Quota) Empty() bool { return q.left != nil && q.left.Load() <= 0 }
