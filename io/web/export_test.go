package web

import (
	"context"
	"net"
	"net/http"
)

// SetTransport makes a client send its requests through t instead of the network.
func SetTransport(c *Client, t http.RoundTripper) { c.transport = t }

// SetDial makes a client connect by dial.
func SetDial(c *Client, dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.transport.(*http.Transport).DialContext = dial
}
