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

	some bool // the shortage may concern some hosts only
}

func (e *ShortageError) Error() string { return fmt.Sprintf("%s (%v)", e.Lacks, e.Err) }

// Unwrap returns the cause.
func (e *ShortageError) Unwrap() error { return e.Err }

// shortages are the errors of the operating system that are about this machine.
var shortages = []struct {
	is    syscall.Errno
	some  bool // see ShortageError
	lacks string
}{
	{syscall.EMFILE, false, "this process has too many open files: raise `ulimit -n`, or lower --concurrency"},
	{syscall.ENFILE, false, "this machine has too many open files: close other programs, or lower --concurrency"},
	{syscall.ENOBUFS, false, "this machine has no memory for another connection: lower --concurrency"},
	{syscall.ENOMEM, false, "this machine has no memory for another connection: lower --concurrency"},
	{syscall.EADDRNOTAVAIL, true, "this machine has no free port for another connection: lower --concurrency or --rate"},
	{syscall.EPERM, true, "this machine does not let the program connect: look at its firewall and the service's limits"},
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
		return &ShortageError{s.lacks, err, s.some}
	}
	for _, no := range unreachable {
		if lookup && strings.HasSuffix(dns.Err, no.Error()) {
			return &ShortageError{"this machine's resolver cannot be reached: look at /etc/resolv.conf and the network", err, true}
		}
	}
	if errors.As(err, &roots) {
		return &ShortageError{"this machine's certificate authorities cannot be read: install ca-certificates, or set SSL_CERT_FILE", err, false}
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
// request keeps its slot, so fewer are in flight. If the shortage lasts for maxShortage and
// nothing else could be reached meanwhile, outlast calls c.Short and returns the shortage.
// A shortage that other hosts do not meet is that host's failure.
func (c *Client) outlast(ctx context.Context, lack *ShortageError, l *lacking) error {
	if l.tries == 0 {
		l.began = time.Now()
	}
	if time.Since(l.began) >= maxShortage {
		works := c.connected.Load() > l.began.UnixNano()
		switch {
		case works && lack.some:
			return lack.Err
		case !works:
			return c.giveUp(ctx, lack)
		}
		l.began = time.Now()
	}
	c.requests.Add(-1) // it was not sent
	l.tries++
	select {
	case <-time.After(min(firstShortageWait<<min(l.tries-1, 10), maxShortageWait)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveUp calls c.Short, and waits for the end of ctx that it causes, so that a caller sees
// an exchange that was cut off and no failure.
func (c *Client) giveUp(ctx context.Context, lack *ShortageError) error {
	if c.Short == nil {
		return lack
	}
	c.Short(lack)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(maxShortageWait):
		return lack
	}
}

// maxRequests is how many requests a process with so many files may have in flight: each
// can have a connection and two sockets of a look-up, and a quarter is for other things.
func maxRequests(files int) int { return max(1, files/4) }
