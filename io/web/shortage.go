package web

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// ShortageError says what this machine lacks. It is no fact about the site whose request
// could not be sent: nothing may be recorded of that site.
type ShortageError struct {
	Lacks string // what is short, and what to do
	Err   error
}

func (e *ShortageError) Error() string { return fmt.Sprintf("%s (%v)", e.Lacks, e.Err) }

// Unwrap returns the cause.
func (e *ShortageError) Unwrap() error { return e.Err }

// shortages are the errors of the operating system that are about this machine.
var shortages = []struct {
	is    syscall.Errno
	lacks string
}{
	{syscall.EMFILE, "this process has too many open files: raise `ulimit -n`, or lower --concurrency"},
	{syscall.ENFILE, "this machine has too many open files: close other programs, or lower --concurrency"},
	{syscall.ENOBUFS, "this machine has no memory for another connection: lower --concurrency"},
	{syscall.ENOMEM, "this machine has no memory for another connection: lower --concurrency"},
	{syscall.EADDRNOTAVAIL, "this machine has no free port for another connection: lower --concurrency or --rate"},
	{syscall.EPERM, "this machine does not let the program connect: look at its firewall and the service's limits"},
}

// unreachable are what a look-up ends with if no resolver can be reached.
var unreachable = []syscall.Errno{syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN}

const (
	maxShortage       = time.Minute            // how long a request waits for what this machine lacks
	firstShortageWait = 250 * time.Millisecond // doubles with each try
	maxShortageWait   = 5 * time.Second
)

// shortage returns what this machine lacks, nil if err has another cause. A look-up's error
// (net.DNSError) contains its cause as text only.
func shortage(err error) *ShortageError {
	var (
		blocked *blockedError
		dns     *net.DNSError
		op      *net.OpError
		roots   x509.SystemRootsError
	)
	if err == nil || errors.As(err, &blocked) {
		return nil
	}
	lookup := errors.As(err, &dns) && !dns.IsNotFound
	for _, s := range shortages {
		if !errors.Is(err, s.is) && (!lookup || !strings.HasSuffix(dns.Err, s.is.Error())) {
			continue
		}
		if s.is == syscall.EADDRNOTAVAIL && errors.As(err, &op) && isIPv6(op.Addr) {
			return nil // a machine without IPv6 has no address to connect from: it lacks no port
		}
		return &ShortageError{s.lacks, err}
	}
	for _, no := range unreachable {
		if lookup && strings.HasSuffix(dns.Err, no.Error()) {
			return &ShortageError{"this machine's resolver cannot be reached: look at /etc/resolv.conf and the network", err}
		}
	}
	if errors.As(err, &roots) {
		return &ShortageError{"this machine's certificate authorities cannot be read: install ca-certificates, or set SSL_CERT_FILE", err}
	}
	return nil
}

// lacking is how long, and how often, one exchange has met a shortage.
type lacking struct {
	began time.Time
	tries int
}

func isIPv6(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.To4() == nil
}

// outlast waits before a request is tried again that this machine could not send. The
// request keeps its slot, so fewer are in flight. If the
// shortage lasts for maxShortage, outlast calls c.Short and returns the shortage.
func (c *Client) outlast(ctx context.Context, lack *ShortageError, l *lacking) error {
	if l.tries == 0 {
		l.began = time.Now()
	}
	if time.Since(l.began) >= maxShortage {
		if c.Short != nil {
			c.Short(lack)
		}
		return lack
	}
	c.requests.Add(-1) // it was not sent
	select {
	case <-time.After(min(firstShortageWait<<min(l.tries, 10), maxShortageWait)):
		l.tries++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxRequests is how many requests a process with so many files may have in flight: each
// can have a connection and two sockets of a look-up, and a quarter is for other things.
func maxRequests(files int) int { return max(1, files/4) }
