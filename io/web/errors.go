package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// Kind says why an exchange had no usable response. There are no other kinds:
// reports, metrics and metadata use these. An HTTP status is never a Kind.
type Kind string

const (
	KindDNS      Kind = "dns"       // the name does not resolve
	KindConnect  Kind = "connect"   // refused, no route, or the proxy did not connect
	KindTLS      Kind = "tls"       // the handshake failed, or the certificate is not trusted for that name
	KindTimeout  Kind = "timeout"   // no complete answer in time
	KindReset    Kind = "reset"     // the connection broke, or the answer is not HTTP
	KindBlocked  Kind = "blocked"   // a private address, or a redirect to a place that is not allowed
	KindRedirect Kind = "redirect"  // too many redirects, a loop, or one that leads nowhere
	KindTooLarge Kind = "too_large" // the response headers are over 256 KiB; a long body is cut, not refused
)

var kinds = [...]Kind{KindDNS, KindConnect, KindTLS, KindTimeout, KindReset, KindBlocked, KindRedirect, KindTooLarge}

// Kinds returns all kinds.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Error is the error of Get and Try, unless the caller prevented the request.
type Error struct {
	Kind   Kind
	URL    string // of the hop that failed, without user and password
	Status int    // of the last redirect followed, 0 when there was none
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("fetching %s: %s: %v", e.URL, e.Kind, e.Err) }

// Why returns the cause in the words of the network, without what is known from Kind and URL.
func (e *Error) Why() string {
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(e.Err, &dns) && dns.IsNotFound:
		return "no such host (NXDOMAIN)"
	case errors.As(e.Err, &dns):
		return dns.Err
	case errors.As(e.Err, &verify):
		return verify.Err.Error()
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "timed out"
	case errors.As(e.Err, &op):
		return op.Err.Error()
	case errors.Is(e.Err, io.EOF):
		return "closed without an answer"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// proxyError is a proxy's answer to CONNECT other than 200.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy answered CONNECT with status %d", e.status)
}

// classify returns the kind of a transport error. An unknown error is KindReset:
// the connection broke or did not speak HTTP.
func classify(err error) Kind {
	var (
		blocked *blockedError
		proxy   *proxyError
		dns     *net.DNSError
		timeout net.Error
		op      *net.OpError
	)
	switch {
	case errors.As(err, &blocked):
		return KindBlocked
	case errors.As(err, &proxy):
		return KindConnect
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	case errors.As(err, &dns):
		return KindDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return KindTimeout
	case isTLS(err):
		return KindTLS
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return KindConnect
	case strings.Contains(err.Error(), "server response headers exceeded"): // net/http has no type for it
		return KindTooLarge
	}
	return KindReset
}

func isTLS(err error) bool {
	var (
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		alert   tls.AlertError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	if errors.As(err, &record) || errors.As(err, &verify) || errors.As(err, &alert) ||
		errors.As(err, &unknown) || errors.As(err, &name) {
		return true
	}
	// Most handshake errors of crypto/tls have no type, but all have such a prefix.
	msg := err.Error()
	return strings.Contains(msg, "tls: ") || strings.Contains(msg, "x509: ") ||
		strings.Contains(msg, "HTTP response to HTTPS client")
}
