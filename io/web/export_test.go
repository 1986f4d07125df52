package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// SetTransport makes a client send its requests through t instead of the network.
func SetTransport(c *Client, t http.RoundTripper) {
	c.connect = func(context.Context, target) (clientConn, error) { return fakeConn{t}, nil }
}

// fakeConn is for one request.
type fakeConn struct{ http.RoundTripper }

func (fakeConn) Available() int { return 0 }
func (fakeConn) Err() error     { return nil }
func (fakeConn) Close() error   { return nil }

// SetDial makes a client connect by dial.
func SetDial(c *Client, dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.dial = dial
}

// SetLookup makes a client look names up by lookup.
func SetLookup(c *Client, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)) {
	c.lookup = lookup
}

// SetFailing makes a client's connections fail as fails says, and send requests through t otherwise.
func SetFailing(c *Client, fails func() error, t http.RoundTripper) {
	c.connect = func(context.Context, target) (clientConn, error) {
		if err := fails(); err != nil {
			return nil, err
		}
		return fakeConn{t}, nil
	}
}

// SetConnected makes a client believe that a connection was made just now.
func SetConnected(c *Client) { c.connected.Store(time.Now().UnixNano()) }

// Slots is how many requests may be in flight now.
func Slots(c *Client) int {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	return c.slots.now()
}

// RaiseSlots is what a connection does that could be made.
func RaiseSlots(c *Client) { c.slots.raise() }
