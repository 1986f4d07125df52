// Package freeport finds ports for programs that tests start and that cannot choose one
// themselves. No promise: see docs/library.md.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports are below those that a system gives out by itself (Linux from 32768 on, macOS
// from 49152): else any connection could have one when the program starts.
const first, end = 10_000, 32_768

// Find returns n ports of loopback that nobody uses.
func Find(n int) (ports []string, err error) {
	var all []net.Listener
	for tries := n + 100; len(all) < n && tries > 0; tries-- {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.N(end-first)))); err == nil {
			all = append(all, l)
		}
	}
	if len(all) == n {
		err = nil
	}
	for _, l := range all { // at the end, so that the ports differ
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		err = errors.Join(err, l.Close())
	}
	return ports, err
}
