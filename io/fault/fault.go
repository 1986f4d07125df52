// Package fault says whose fault an error is. Only theirs is a fact about the outside: what
// our side lacks waits, then stops the run, and nothing is recorded of a site for it. No promise: see docs/library.md.
package fault

import (
	"context"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
)

// whose says whose fault an error is.
type whose int

// Theirs are errors of a site, and values of a page that the database refuses.
const (
	unknown whose = iota
	Theirs
	Ours // this machine, the database, the store
)

// part is the part of the program that an error comes from.
type part int

// The parts.
const (
	Web part = iota
	Database
	Store
)

// Shortage says what our side lacks.
type Shortage struct {
	Lacks string // what is short, and what to do
	Err   error

	Some  bool // it may concern some hosts, keys or statements only
	Lasts bool // a person must act before the same call can succeed
}

func (s *Shortage) Error() string {
	if s.Err == nil {
		return s.Lacks
	}
	return fmt.Sprintf("%s (%v)", s.Lacks, s.Err)
}

// Unwrap returns the cause.
func (s *Shortage) Unwrap() error { return s.Err }

// MaxWait is how long a call waits for what our side lacks.
const MaxWait = time.Minute

// Watch is told of shortages.
type Watch struct {
	Waits func(*Shortage) // a call begins to wait
	Short func(*Shortage) // it has waited in vain: the run must stop
}

// Wait calls Waits, if it is set.
func (w Watch) Wait(s *Shortage) {
	if w.Waits != nil {
		w.Waits(s)
	}
}

// GiveUp calls Short, if it is set, and returns the shortage.
func (w Watch) GiveUp(s *Shortage) error {
	if w.Short != nil {
		w.Short(s)
	}
	return s
}

// Answers is when calls of one kind were answered. The zero value is ready. It keeps whole
// times, whose monotonic clock a change of the wall clock does not move.
type Answers struct {
	mu     sync.Mutex
	last   time.Time // an answer
	began  time.Time // the failures since then, zero for none
	failed time.Time // the last of them
}

// maxQuiet is the longest time between two failures of one outage.
const maxQuiet = 30 * time.Second

// Note records a call that was answered, or that failed by our side.
func (a *Answers) Note(failed bool) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !failed:
		a.last, a.began = now, time.Time{}
		return
	case a.began.IsZero() || now.Sub(a.failed) > maxQuiet:
		a.began = now
	}
	a.failed = now
}

// Since reports whether a call was answered after t.
func (a *Answers) Since(t time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last.After(t)
}

// Outage is how long no call of the kind was answered, though some were made.
func (a *Answers) Outage() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		return 0
	}
	return time.Since(a.began)
}

// Stops reports whether err is, or contains, a shortage that was waited for in vain.
func Stops(err error) bool { return errors.As(err, new(*Shortage)) }

// Of says whose fault an error of a part is, and for ours what is short.
func Of(p part, err error) (whose, *Shortage) {
	if err == nil || errors.Is(err, context.Canceled) {
		return unknown, nil
	}
	var known *Shortage
	if errors.As(err, &known) {
		return Ours, known
	}
	if s := machine(err); s != nil {
		return Ours, s
	}
	switch p {
	case Web:
		return ofWeb(err)
	case Database:
		return ofDatabase(err)
	default:
		return ofStore(err)
	}
}

// local are the errors of the operating system that are about this machine.
var local = []struct {
	is    syscall.Errno
	some  bool // see Shortage
	lasts bool
	lacks string
}{
	{syscall.EMFILE, false, false, "this process has too many open files: raise `ulimit -n`, or lower --concurrency"},
	{syscall.ENFILE, false, false, "this machine has too many open files: close other programs, or lower --concurrency"},
	{syscall.ENOBUFS, false, false, "this machine has no memory for another connection: lower --concurrency"},
	{syscall.ENOMEM, false, false, "this machine has no memory left: give it more, close other programs, or lower --concurrency"},
	{syscall.EADDRNOTAVAIL, true, false, "this machine has no free port for another connection: lower --concurrency or --rate"},
	{syscall.EPERM, true, true, "this machine does not let the program do it: look at its firewall, its permissions and the service's limits"},
	{syscall.ENETDOWN, true, false, "this machine's network is down: look at its connection"},
	{syscall.ENOSPC, false, false, "the disk is full: make space on it"},
	{syscall.EDQUOT, false, false, "the disk quota is used up: make space, or raise the quota"},
	{syscall.EFBIG, false, false, "the largest size of a file is reached: raise `ulimit -f`"},
	{syscall.EROFS, false, true, "the file system is read-only: look at the system's log for errors of the disk, and mount it for writing"},
	{syscall.EIO, false, false, "the disk fails: look at the system's log"},
}

// machine returns what this machine lacks, nil if err has another cause. A look-up's error
// (net.DNSError) contains its cause as text only.
func machine(err error) *Shortage {
	lookup := lookupFailed(err)
	var op *net.OpError
	for _, s := range local {
		if !errors.Is(err, s.is) && !strings.HasSuffix(lookup, s.is.Error()) {
			continue
		}
		if s.is == syscall.EADDRNOTAVAIL && errors.As(err, &op) && isIPv6(op.Addr) {
			return nil // a machine without IPv6 has no address to connect from: it lacks no port
		}
		return &Shortage{s.lacks, err, s.some, s.lasts}
	}
	return nil
}

func isIPv6(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.To4() == nil
}

// lookupFailed returns the text of a look-up's error, empty if the name does not exist.
func lookupFailed(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) && !dns.IsNotFound {
		return dns.Err
	}
	return ""
}

// unreachable are what a look-up ends with if no resolver can be reached.
var unreachable = []syscall.Errno{syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH}

func ofWeb(err error) (whose, *Shortage) {
	lookup := lookupFailed(err)
	for _, no := range unreachable {
		if strings.HasSuffix(lookup, no.Error()) {
			return Ours, &Shortage{"this machine's resolver cannot be reached: look at /etc/resolv.conf and the network", err, true, false}
		}
	}
	if errors.As(err, new(x509.SystemRootsError)) {
		return Ours, &Shortage{"this machine's certificate authorities cannot be read: install ca-certificates, or set SSL_CERT_FILE", err, false, true}
	}
	return Theirs, nil
}

// disconnected reports whether a service could not be reached, or broke off.
func disconnected(err error) bool {
	for _, e := range []error{context.DeadlineExceeded, net.ErrClosed, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.ETIMEDOUT, syscall.EINTR, syscall.EAGAIN, syscall.ESTALE} {
		if errors.Is(err, e) {
			return true
		}
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError)) || errors.As(err, &timeout) && timeout.Timeout()
}

// ofDatabase reads PostgreSQL's SQLSTATE and SQLite's result codes.
func ofDatabase(err error) (whose, *Shortage) {
	var pg interface{ SQLState() string }
	var lite interface{ Code() int }
	var unsent interface{ SafeToRetry() bool } // of pgx
	switch {
	case errors.As(err, &pg):
		return ofSQLState(pg.SQLState(), err)
	case errors.As(err, &lite):
		return ofSQLite(lite.Code()&0xff, err)
	case disconnected(err), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &unsent) && unsent.SafeToRetry():
		return Ours, &Shortage{"the database cannot be reached: look whether it runs, and at the network", err, false, false}
	}
	return unknown, nil
}

func ofSQLState(code string, err error) (whose, *Shortage) {
	in := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(code, p) })
	}
	ours := func(lacks string, lasts bool) (whose, *Shortage) { return Ours, &Shortage{lacks, err, false, lasts} }
	switch {
	case in("22", "23", "54"): // data exception, integrity constraint violation, program limit exceeded
		return Theirs, nil
	case in("08", "57P01", "57P02", "57P03", "57P05"):
		return ours("the database cannot be reached: look whether it runs, and at the network", false)
	case in("53300"):
		return ours("the database has too many connections: close other programs' connections, or raise max_connections", false)
	case in("53", "58"):
		return ours("the database lacks space, memory or files: look at its log, and make space", false)
	case in("25006"):
		return ours("the database is read-only: connect to the primary server", false)
	case in("28", "3D"):
		return ours("the database refuses this user: look at the user, the password and the database's name", true)
	}
	return unknown, nil
}

func ofSQLite(code int, err error) (whose, *Shortage) {
	ours := func(lacks string, lasts bool) (whose, *Shortage) { return Ours, &Shortage{lacks, err, false, lasts} }
	switch code {
	case 18, 19, 20: // TOOBIG, CONSTRAINT, MISMATCH
		return Theirs, nil
	case 7: // NOMEM
		return ours("this machine has no memory left: give it more, close other programs, or lower --concurrency", false)
	case 8: // READONLY
		return ours("the database's file may not be written: look at its permissions and its file system", true)
	case 10, 13: // IOERR, FULL
		return ours("the database's file cannot grow or be written: make space on its disk, and look at `ulimit -f`", false)
	case 14: // CANTOPEN
		return ours("the database's file cannot be opened: look at its folder, its permissions and `ulimit -n`", false)
	}
	return unknown, nil
}

// The codes of S3 (Amazon S3 API Reference, Error responses). ServiceUnavailable is no
// throttling: a server that is down says it too.
var (
	throttlingCodes = []string{"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"}
	transientCodes  = []string{"RequestTimeout", "ConditionalRequestConflict", "OperationAborted", "InternalError", "ServiceUnavailable"}
	refusedCodes    = []string{"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed"}
)

// Throttled reports whether a store refused a call because there are too many.
func Throttled(err error) bool {
	return Status(err) == http.StatusTooManyRequests || slices.Contains(throttlingCodes, code(err))
}

// Status returns the HTTP status of a store's answer, 0 for none.
func Status(err error) int {
	var aws interface{ HTTPStatusCode() int }
	var google *googleapi.Error
	switch {
	case errors.As(err, &aws):
		return aws.HTTPStatusCode()
	case errors.As(err, &google):
		return google.Code
	}
	return 0
}

// code returns the error code of an S3 server, empty for none.
func code(err error) string {
	var api interface{ ErrorCode() string } // of the AWS SDK
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func ofStore(err error) (whose, *Shortage) {
	ours := func(lacks string, lasts bool) (whose, *Shortage) { return Ours, &Shortage{lacks, err, true, lasts} }
	answered, said := Status(err), code(err)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, errors.ErrUnsupported):
		return unknown, nil
	case Throttled(err):
		return ours("the store refuses calls because there are too many: lower --concurrency", false)
	case slices.Contains(transientCodes, said), answered == http.StatusRequestTimeout, answered >= 500 && answered != http.StatusNotImplemented:
		return ours("the store fails: look at the service's state", false)
	case said == "NoSuchBucket", answered == http.StatusNotFound:
		return ours("the store's bucket does not exist any more: create it again, or look at its name", true)
	case answered == http.StatusUnauthorized, answered == http.StatusForbidden, slices.Contains(refusedCodes, said), errors.Is(err, fs.ErrPermission):
		return ours("the store refuses this user: look at the credentials and at what they may do", true)
	case answered != 0:
		return unknown, nil
	}
	var send interface{ ConnectionError() bool } // of the AWS SDK
	if disconnected(err) || errors.As(err, &send) && send.ConnectionError() ||
		errors.As(err, new(*url.Error)) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) ||
		slices.Contains([]gcerrors.ErrorCode{gcerrors.ResourceExhausted, gcerrors.DeadlineExceeded, gcerrors.Internal}, gcerrors.Code(err)) {
		return ours("the store cannot be reached: look whether it runs, and at the network", false)
	}
	return unknown, nil
}
