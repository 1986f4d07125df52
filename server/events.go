package server

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// minEventGap is the minimum time between two events, because a page reloads at each.
	minEventGap = time.Second
	heartbeat   = 15 * time.Second
)

// events sends a page a server-sent event (WHATWG HTML, 9.2) when the board has
// changed. The page's script then loads the page again.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "30")
		s.refuse(w, r, http.StatusServiceUnavailable, "too many pages wait for events; reload this one to update it")
		return
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the events back
	c := http.NewResponseController(w)
	send := func(text string) bool {
		_ = c.SetWriteDeadline(time.Now().Add(headerTimeout)) // without deadlines a write to a dead client only ends later
		if _, err := fmt.Fprint(w, text); err != nil {
			return false
		}
		return c.Flush() == nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for next := s.board.Next(); send(fmt.Sprintf("event: change\ndata: %d\n\n", s.board.Version.Load())); {
		for changed := false; !changed; {
			select {
			case <-next:
				changed = true
			case <-beat.C:
				if !send(": still here\n\n") {
					return
				}
			case <-r.Context().Done():
				return
			case <-s.closing:
				return
			}
		}
		pause.Reset(minEventGap)
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
		next = s.board.Next()
	}
}
