package seed

import "sync"

// Network is how the visits of a part of the run ended, below HTTP.
type Network struct {
	Visits int64
	Failed int64 // by DNS, connect or time-out
}

// down says whether failures have the share of an outage. seed.md sets no
// least number of visits: a run of nothing but dead sites looks like one too.
func (n Network) down(threshold float64) bool {
	return threshold > 0 && n.Visits > 0 && float64(n.Failed) >= threshold*float64(n.Visits)
}

// outageWindow is how many of the last visits are looked at (seed.md, Outage guard).
const outageWindow = 200

// window is the outage guard's rolling look at the last visits of a lane.
type window struct {
	mu     sync.Mutex
	last   [outageWindow]bool
	next   int
	filled int
	now    Network
}

// add notes how a visit ended and gives the window's figures.
func (w *window) add(failed bool) Network {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.filled == outageWindow {
		w.now.Visits--
		if w.last[w.next] {
			w.now.Failed--
		}
	} else {
		w.filled++
	}
	w.last[w.next] = failed
	w.next = (w.next + 1) % outageWindow
	w.now.Visits++
	if failed {
		w.now.Failed++
	}
	return w.now
}
