// Package prism starts Beam's prism runner in this process so that it listens
// on loopback alone.
//
// Beam's own code listens on every interface, without authentication, and runs
// the command of any job that reaches it. It takes neither an address nor a
// listener, and begins to serve at once. But it logs its port before it serves:
// a log handler is called between the two, and there the socket is replaced.
// Nothing is read from connections that were made before. No promise: see docs/library.md.
package prism

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"golang.org/x/sys/unix"
)

// endpointMessage is what Beam logs, with its endpoint, between listening and serving.
const endpointMessage = "Serving JobManagement"

// Start starts a prism in this process and returns its endpoint. It runs until the
// process ends. Its log lines go to log. While it starts, log is also slog's
// default.
func Start(ctx context.Context, log *slog.Logger) (endpoint string, err error) {
	handler := &portHandler{Handler: log.Handler()}
	before := slog.Default()
	setDefault(slog.New(handler))
	defer setDefault(before)
	defer func() {
		if v := recover(); v != nil { // also Beam's own, when there is no port
			err = fmt.Errorf("starting prism on loopback: %v; use --runner=direct, which needs no socket", v)
		}
	}()
	if _, err := prism.CreateJobServer(ctx, prism.Options{}); err != nil {
		return "", fmt.Errorf("starting prism: %w", err)
	}
	if handler.endpoint == "" {
		return "", errors.New("starting prism on loopback: this version of Beam does not say when it listens, and may listen on every interface; use --runner=direct")
	}
	return handler.endpoint, nil
}

// Use lets all runs of this process on the runner prism share one, which the first
// call starts. Where Beam knows a job server already, it starts none.
func Use(ctx context.Context, log *slog.Logger) error {
	if *jobopts.Endpoint != "" {
		return nil
	}
	endpoint, err := Start(ctx, log)
	if err != nil {
		return err
	}
	*jobopts.Endpoint, *jobopts.EnvironmentType = endpoint, "loopback"
	return nil
}

// setDefault is slog.SetDefault without its effect on package log: slog's first
// handler writes by package log, so its lines would go round in an endless loop.
func setDefault(l *slog.Logger) {
	output, flags := stdlog.Writer(), stdlog.Flags()
	slog.SetDefault(l)
	stdlog.SetOutput(output)
	stdlog.SetFlags(flags)
}

// portHandler is the log handler that replaces the socket. When it cannot, it
// panics, because nothing else stops Beam from serving.
type portHandler struct {
	slog.Handler
	endpoint string
}

// Enabled implements slog.Handler.
func (h *portHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.endpoint == "" || h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h *portHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == endpointMessage && h.endpoint == "" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "endpoint" {
				h.endpoint = a.Value.String()
			}
			return true
		})
		if err := moveToLoopback(h.endpoint); err != nil {
			panic(err)
		}
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// moveToLoopback replaces the process's listener on every interface by one on
// loopback, with the same descriptor and the same port.
//
// The listening socket could get another address instead (shutdown, bind,
// listen), but then a half-open connection would be completed.
func moveToLoopback(endpoint string) error {
	at, err := net.ResolveTCPAddr("tcp", endpoint) // localhost, as clients resolve it
	if err != nil {
		return fmt.Errorf("finding the loopback address: %w", err)
	}
	if !at.IP.IsLoopback() {
		return fmt.Errorf("%s is %s on this machine, which is not a loopback address", endpoint, at.IP)
	}
	old, err := listeningSocket(at.Port)
	if err != nil {
		return err
	}
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP.To16())})
	if v4 := at.IP.To4(); v4 != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(v4)}
	}
	syscall.ForkLock.RLock() // no child inherits the socket before it is close-on-exec
	defer syscall.ForkLock.RUnlock()
	// The socket stays in blocking mode: Go's poller does not know it, and a goroutine
	// that accepts from it waits in the system call.
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	err = os.NewSyscallError("dup2", unix.Dup2(fd, old)) // closes the old socket and its connections
	unix.CloseOnExec(old)
	err = errors.Join(err, os.NewSyscallError("close", unix.Close(fd)))
	if err != nil {
		return err
	}
	if err := unix.Bind(old, address); err != nil {
		return fmt.Errorf("listening on %s: %w; was the port taken by another program? try again", endpoint, err)
	}
	return os.NewSyscallError("listen", unix.Listen(old, unix.SOMAXCONN))
}

// listeningSocket is the socket of this process that listens on a TCP port.
func listeningSocket(port int) (fd int, err error) {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0, fmt.Errorf("listing this process's sockets: %w", err)
	}
	for _, e := range open {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listening == 0 {
			continue
		}
		switch a, _ := unix.Getsockname(fd); a := a.(type) { // other kinds of sockets are ignored
		case *unix.SockaddrInet4:
			if a.Port == port {
				return fd, nil
			}
		case *unix.SockaddrInet6:
			if a.Port == port {
				return fd, nil
			}
		}
	}
	return 0, fmt.Errorf("no socket of this process listens on port %d", port)
}
