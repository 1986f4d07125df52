package web

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxIdle is how long a connection is kept for the next request of its visit.
	// It is below the five seconds after which much server software (Apache,
	// Node.js) closes an idle connection: a request that crosses the closing on its
	// way is lost.
	maxIdle = 4 * time.Second
	// maxVisitIdle bounds the idle connections of a visit, which a site may redirect
	// to any number of hosts. More than one to a host are for requests in parallel.
	maxVisitIdle = 8
	// maxIdlePerRequest times the requests that may be in flight bounds the idle
	// connections of the process. A lane has four times as many visits at work, as
	// most of them wait for their host's gap.
	maxIdlePerRequest = 4
	// maxSessions bounds the TLS sessions that are remembered, for hosts that close
	// the connection after each answer or that many visits meet.
	maxSessions = 256
)

// Conns are the connections of one visit. They are kept from one request to the
// next, as a TLS handshake costs more than the rest of an exchange, and closed when
// the visit ends: it alone knows that it will ask again. The zero value is ready;
// it belongs to the first Client that uses it.
type Conns struct {
	of     atomic.Pointer[idleConns]
	closed atomic.Bool
	idle   []*conn // the one that was used last at the end; guarded by of.mu

	mu    sync.Mutex
	known map[string]addresses // by the name that was looked up
}

// Close closes the connections that are idle; those in use are closed when their
// answer is read.
func (v *Conns) Close() {
	v.closed.Store(true)
	of := v.of.Load()
	if of == nil {
		return // keep sees that it is closed
	}
	of.mu.Lock()
	idle := slices.Clone(v.idle)
	for _, k := range idle {
		of.remove(k)
	}
	of.mu.Unlock()
	for _, k := range idle {
		k.close()
	}
}

// conn is a connection that one visit sends its requests over.
type conn struct {
	clientConn
	raw *checkedConn // nil where a test has none
	to  target

	// Of an idle one:
	visit *Conns
	place *list.Element
	since time.Time
	timer *time.Timer
}

// clientConn is an *http.ClientConn.
type clientConn interface {
	http.RoundTripper
	Available() int // 0: it is closed, or its last answer was not read to the end
	Err() error     // nil: it is open
	Close() error
}

func (k *conn) close() { _ = k.Close() } // nothing is under way that could be lost

// target is what a connection leads to.
type target struct {
	scheme, addr, proxy string
	ip                  netip.Addr // invalid: any of the host's
}

func targetOf(u, via *url.URL) target {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	t := target{scheme: u.Scheme, addr: net.JoinHostPort(u.Hostname(), port)}
	if via != nil {
		t.proxy = via.String()
	}
	return t
}

// connection gives an idle connection of the visit, or makes one. If at is not nil, it
// leads to the first of these addresses.
func (c *Client) connection(ctx context.Context, v *Conns, u, via *url.URL, at *addresses) (*conn, error) {
	to := targetOf(u, via)
	others := 0
	if at != nil {
		if at.err != nil {
			return nil, at.err
		}
		to.ip, others = at.first(), len(at.list)-1
	}
	if k := c.idle.take(v, to); k != nil {
		return k, nil
	}
	// The dialer must not know when ctx ends: it would share the time out over a
	// name's addresses, and give errors of its own when it is over.
	r := &route{via: via, ip: to.ip}
	if until, ok := ctx.Deadline(); ok && others > 0 {
		r.timeout = time.Until(until) / time.Duration(others+1)
	}
	within, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), routeKey{}, r))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	made, err := c.connect(within, to)
	if err != nil {
		if others > 0 && r.conn == nil && ctx.Err() == nil {
			return nil, otherAddress{err}
		}
		return nil, err
	}
	c.connected.Store(time.Now().UnixNano())
	c.slots.raise()
	return &conn{clientConn: made, raw: r.conn, to: to}, nil
}

// release keeps a connection for its visit's next request, or closes it.
func (c *Client) release(v *Conns, k *conn) {
	if k.raw != nil {
		k.raw.check.Store(nil)
	}
	if k.Available() > 0 {
		k = c.idle.keep(v, k)
	}
	if k != nil {
		k.close()
	}
}

// idleConns are the idle connections of all visits of a client.
type idleConns struct {
	mu    sync.Mutex
	limit int
	all   list.List // of *conn, the one that is idle longest first
}

// take gives an idle connection, nil where there is none.
func (i *idleConns) take(v *Conns, to target) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := len(v.idle) - 1; n >= 0; n-- {
		k := v.idle[n]
		if k.to != to {
			continue
		}
		i.remove(k)
		// By the wall clock: the monotonic one stands while the machine is suspended.
		if k.Err() == nil && time.Now().Round(0).Sub(k.since.Round(0)) < maxIdle {
			return k
		}
		go k.close()
	}
	return nil
}

// keep makes k an idle connection, and gives one to close, if any.
func (i *idleConns) keep(v *Conns, k *conn) (superfluous *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	v.of.Store(i)
	if v.closed.Load() {
		return k
	}
	k.visit, k.since, k.place = v, time.Now(), i.all.PushBack(k)
	v.idle = append(v.idle, k)
	if k.timer == nil {
		k.timer = time.AfterFunc(maxIdle, func() { i.expire(k) })
	} else {
		k.timer.Reset(maxIdle)
	}
	switch {
	case len(v.idle) > maxVisitIdle:
		superfluous = v.idle[0]
	case i.all.Len() > i.limit:
		superfluous = i.all.Front().Value.(*conn)
	default:
		return nil
	}
	i.remove(superfluous)
	return superfluous
}

// remove is called with mu locked.
func (i *idleConns) remove(k *conn) {
	k.timer.Stop()
	i.all.Remove(k.place)
	k.visit.idle = slices.DeleteFunc(k.visit.idle, func(other *conn) bool { return other == k })
	k.visit, k.place = nil, nil
}

// expire closes k where nobody took it in time.
func (i *idleConns) expire(k *conn) {
	i.mu.Lock()
	over := k.visit != nil && time.Since(k.since) >= maxIdle // else it was taken in this moment
	if over {
		i.remove(k)
	}
	i.mu.Unlock()
	if over {
		k.close()
	}
}

// maxIdleConns is how many idle connections a process may have that sends so many
// requests at once. Half of its files at most: it would take the failure to open one
// more for a site's.
func maxIdleConns(requests, files int) int { return min(maxIdlePerRequest*requests, files/2) }

func (i *idleConns) resize(limit int) {
	i.mu.Lock()
	var over []*conn
	for i.limit = limit; i.all.Len() > limit; {
		over = append(over, i.all.Front().Value.(*conn))
		i.remove(over[len(over)-1])
	}
	i.mu.Unlock()
	for _, k := range over {
		k.close()
	}
}
