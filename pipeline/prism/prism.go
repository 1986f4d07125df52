// Package prism starts Beam's prism runner in this process so that it listens
// on loopback alone.
//
// Beam's own code listens on every interface, without authentication, and runs
// the command of any job that reaches it. It takes neither an address nor a
// listener, and begins to serve at once. But it logs its port before it serves:
// a log handler is called between the two, and there the socket is exchanged.
// Nothing that connected before that is ever read.
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

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"golang.org/x/sys/unix"
)

// announced is what Beam logs, with its endpoint, between listening and serving.
const announced = "Serving JobManagement"

// Start starts a prism of this process and gives its endpoint. It lasts as long
// as the process. What prism logs goes to log. While it starts, log is slog's
// default too.
func Start(ctx context.Context, log *slog.Logger) (endpoint string, err error) {
	gate := &gate{Handler: log.Handler()}
	before := slog.Default()
	setDefault(slog.New(gate))
	defer setDefault(before)
	defer func() {
		if v := recover(); v != nil { // also Beam's own, when there is no port
			err = fmt.Errorf("starting prism on loopback: %v; use --runner=direct, which listens nowhere", v)
		}
	}()
	if _, err := prism.CreateJobServer(ctx, prism.Options{}); err != nil {
		return "", fmt.Errorf("starting prism: %w", err)
	}
	if gate.endpoint == "" {
		return "", errors.New("starting prism on loopback: this version of Beam does not say when it listens, and may listen on every interface; use --runner=direct")
	}
	return gate.endpoint, nil
}

// setDefault is slog.SetDefault, which takes package log over too: that would
// send the lines of slog's first handler, which writes by log, round for ever.
func setDefault(l *slog.Logger) {
	lines, form := stdlog.Writer(), stdlog.Flags()
	slog.SetDefault(l)
	stdlog.SetOutput(lines)
	stdlog.SetFlags(form)
}

// gate is the log handler that exchanges the socket. It panics where it cannot:
// that alone keeps Beam from serving.
type gate struct {
	slog.Handler
	endpoint string
}

// Enabled implements slog.Handler.
func (g *gate) Enabled(ctx context.Context, l slog.Level) bool {
	return g.endpoint == "" || g.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (g *gate) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == announced && g.endpoint == "" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "endpoint" {
				g.endpoint = a.Value.String()
			}
			return true
		})
		if err := toLoopback(g.endpoint); err != nil {
			panic(err)
		}
	}
	if !g.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return g.Handler.Handle(ctx, r)
}

// toLoopback puts a listener on loopback in the place of the process's own one
// on every interface, under the same descriptor and with the same port.
//
// A socket that listens can be given another address too (shutdown, bind,
// listen), but a connection that was half open would then be completed.
func toLoopback(endpoint string) error {
	at, err := net.ResolveTCPAddr("tcp", endpoint) // localhost, as those who connect resolve it
	if err != nil {
		return fmt.Errorf("finding the loopback address: %w", err)
	}
	if !at.IP.IsLoopback() {
		return fmt.Errorf("%s is %s on this machine, which is not a loopback address", endpoint, at.IP)
	}
	old, err := listener(at.Port)
	if err != nil {
		return err
	}
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP.To16())})
	if v4 := at.IP.To4(); v4 != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(v4)}
	}
	syscall.ForkLock.RLock() // no child gets the socket before it is marked
	defer syscall.ForkLock.RUnlock()
	// It stays a blocking one: Go's poller does not know it, and a goroutine that
	// accepts from it waits in the system call.
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	err = os.NewSyscallError("dup2", unix.Dup2(fd, old)) // the end of the old socket and of its connections
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

// listener is this process's socket that listens on a TCP port.
func listener(port int) (fd int, err error) {
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
		switch a, _ := unix.Getsockname(fd); a := a.(type) { // another kind of socket is none of ours
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
