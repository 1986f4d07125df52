package prism

import (
	"bytes"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/sockets"
)

func init() {
	register.Function2x1(wantSix)
	register.Iter1[int]()
}

func wantSix(_ []byte, next func(*int) bool) error {
	sum := 0
	for n := 0; next(&n); {
		sum += n
	}
	if sum != 6 {
		return fmt.Errorf("the sum is %d", sum)
	}
	return nil
}

// A job runs on the prism that was started, and no other machine can reach a
// socket of the process.
func TestStart(t *testing.T) {
	if !beam.Initialized() {
		beam.Init()
	}
	var said bytes.Buffer
	log, before, output := slog.New(slog.NewTextHandler(&said, nil)), slog.Default(), stdlog.Writer()
	endpoint, err := Start(t.Context(), log)
	require.NoError(t, err)
	require.Same(t, before, slog.Default())
	require.Same(t, output, stdlog.Writer())
	require.Contains(t, said.String(), endpoint, "prism's own log")
	_, port, err := net.SplitHostPort(endpoint)
	require.NoError(t, err)

	listening := func() (ports []string) {
		found, err := sockets.Of(os.Getpid())
		require.NoError(t, err)
		for _, s := range found {
			require.False(t, s.Open(), "%s", s)
			ports = append(ports, s.Addr.String())
		}
		return ports
	}
	require.Contains(t, listening(), "127.0.0.1:"+port)

	*jobopts.Endpoint, *jobopts.EnvironmentType = endpoint, "loopback"
	t.Cleanup(func() { *jobopts.Endpoint, *jobopts.EnvironmentType = "", "" })
	run := func(numbers ...any) error {
		p, s := beam.NewPipelineWithRoot()
		beam.ParDo0(s, wantSix, beam.Impulse(s), beam.SideInput{Input: beam.Create(s, numbers...)})
		_, err := beam.Run(t.Context(), "prism", p)
		return err
	}
	for range 3 { // each with connections of its own
		require.NoError(t, run(1, 2, 3))
		listening()
	}
	require.ErrorContains(t, run(1, 2), "the sum is 3", "a DoFn that fails makes the job fail")
}

// slog's first handler writes by package log, which must not write to that handler.
func TestStartUnderTheFirstHandler(t *testing.T) {
	_, err := Start(t.Context(), slog.Default())
	require.NoError(t, err)
}

// A connection that was made before the socket was replaced is cut off, and nothing is read from it.
func TestEarlyConnection(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	at := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	early, err := net.DialTCP("tcp", nil, &at)
	require.NoError(t, err)
	defer func() { _ = early.Close() }()

	require.NoError(t, moveToLoopback(net.JoinHostPort("localhost", strconv.Itoa(port))))
	_, err = early.Read(make([]byte, 1))
	require.ErrorContains(t, err, "reset")

	late, err := net.DialTCP("tcp", nil, &at)
	require.NoError(t, err)
	defer func() { _ = late.Close() }()
	c, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, late.LocalAddr().String(), c.RemoteAddr().String())
	require.NoError(t, c.Close())
	found, err := sockets.Of(os.Getpid())
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, s := range found {
		require.False(t, s.Open(), "%s", s)
	}
}

func TestNoSuchListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	require.ErrorContains(t, moveToLoopback(at), "no socket of this process listens")
}
