package server

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// calm is the least time between two events: a page reloads at each.
	calm      = time.Second
	heartbeat = 15 * time.Second
)

// events tells a page by server-sent events (WHATWG HTML, 9.2) that what it
// shows has changed; its script then asks for it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "30")
		s.refuse(w, r, http.StatusServiceUnavailable, "too many pages wait for events; this one still works by loading it again")
		return
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	say := func(text string) bool {
		_ = c.SetWriteDeadline(time.Now().Add(slowHeader)) // without deadlines a write to a dead peer ends later
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
	for next := s.board.next(); say(fmt.Sprintf("event: change\ndata: %d\n\n", s.board.version.Load())); {
		for changed := false; !changed; {
			select {
			case <-next:
				changed = true
			case <-beat.C:
				if !say(": still here\n\n") {
					return
				}
			case <-r.Context().Done():
				return
			case <-s.closing:
				return
			}
		}
		pause.Reset(calm)
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
		next = s.board.next()
	}
}
