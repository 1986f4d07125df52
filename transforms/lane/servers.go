package lane

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
)

const (
	// serverIdle is how long a process keeps a server's lease after a request, for the next
	// request of the same visit or another one.
	serverIdle = 2 * time.Second
	// maxServerHold is how long a process keeps a busy server's lease before another process
	// may have it.
	maxServerHold = 20 * time.Second
	// serverYield is how long it then leaves the lease to processes that wait: they look
	// each second.
	serverYield = 2 * time.Second
)

// servers are the servers that this process alone may ask, in a run that has other processes. Each has a lease in the store while it is
// asked.
type servers struct {
	mu   sync.Mutex
	held map[string]*heldServer
}

type heldServer struct {
	since   time.Time
	lease   *lease.Lease
	release func()
	timer   *time.Timer   // runs release; nil while a request has the server
	leaving bool          // another process may have it next
	gone    chan struct{} // closed when it was released
}

// holdServer implements polite.Pacer.Hold. The pacer calls it for one request to a server
// at a time.
func (w *Worker) holdServer(ctx context.Context, server string) (free func(rest time.Duration), unknown bool, err error) {
	s := &w.servers
	s.mu.Lock()
	h := s.held[server]
	switch {
	case h == nil, h.leaving, !h.timer.Stop():
	case h.lease.Valid():
		h.timer = nil
		s.mu.Unlock()
		return h.free(w), false, nil
	default:
		go h.release()
	}
	s.mu.Unlock()
	if h != nil {
		select {
		case <-h.gone:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if h.leaving {
			if err := polite.SystemClock.Sleep(ctx, serverYield); err != nil {
				return nil, false, err
			}
		}
	}
	h, unknown, err = w.acquireServer(ctx, server)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]*heldServer{}
	}
	s.held[server] = h
	release := h.release
	h.release = sync.OnceFunc(func() {
		release()
		s.mu.Lock()
		delete(s.held, server)
		s.mu.Unlock()
		close(h.gone)
	})
	return h.free(w), unknown, nil
}

// free lets the server go when it was not used for a while, or to other processes when it
// was used for long.
func (h *heldServer) free(w *Worker) func(rest time.Duration) {
	return func(rest time.Duration) {
		w.servers.mu.Lock()
		defer w.servers.mu.Unlock()
		h.leaving = time.Since(h.since) > maxServerHold
		if !h.leaving {
			rest = max(rest, 0) + serverIdle
		}
		h.timer = time.AfterFunc(rest, h.release)
	}
}

// acquireServer waits for a server's lease. A store that does not answer makes it wait, as
// it makes the lane wait: its own lease ends ctx if that lasts.
func (w *Worker) acquireServer(ctx context.Context, server string) (h *heldServer, unknown bool, err error) {
	kind, at, _ := strings.Cut(server, " ")
	for {
		l, err := lease.Acquire(ctx, lease.InStoreWhileHeld(w.Store), kind+"s/"+url.QueryEscape(at), w.holder(), w.leaseTTL(), lease.EvictIf(ledger.RunClosed(w.Store)),
			lease.Wait(lease.WaitPolicy{Proceed: func(ctx context.Context) bool { return ctx.Err() == nil }, Stopping: ctx.Done(), OnWait: func(*lease.InUseError) {}}))
		if l != nil && err == nil {
			_, free := l.Keep(w.ctx, ledger.LogLeaseEvent(w.Log))
			return &heldServer{since: time.Now(), lease: l, gone: make(chan struct{}), release: func() {
				if err := free(); err != nil { // it expires by itself
					w.Log.Warn("lease_not_released", "lease", l.Name(), "error", ledger.Redact(err.Error()))
				}
			}}, l.Previous() != (lease.Holder{}), nil
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		w.Log.Warn("server_not_acquired", "server", at, "error", ledger.Redact(err.Error()), "why", "it is tried again")
		if err := polite.SystemClock.Sleep(ctx, time.Second); err != nil {
			return nil, false, err
		}
	}
}

// releaseServers lets all servers go, when the process ends.
func (w *Worker) releaseServers() {
	s := &w.servers
	s.mu.Lock()
	var all sync.WaitGroup
	for _, h := range s.held {
		if h.timer == nil || h.timer.Stop() {
			all.Go(h.release)
		} else {
			all.Go(func() { <-h.gone })
		}
	}
	s.mu.Unlock()
	all.Wait()
}
