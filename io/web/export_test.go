package web

import "net/http"

// SetTransport makes a client ask t in place of the network.
func SetTransport(c *Client, t http.RoundTripper) { c.transport = t }
