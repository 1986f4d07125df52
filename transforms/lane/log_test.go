package lane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/stretchr/testify/require"
)

// takeLines collects the libraries' lines from the log.
func takeLines(t *testing.T) func() []string {
	t.Helper()
	flags, out := log.Flags(), log.Writer()
	t.Cleanup(func() { log.SetFlags(flags); log.SetOutput(out) })
	var mu sync.Mutex
	var b bytes.Buffer
	TakeLibraryLines(slog.New(slog.NewJSONHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	}), nil)))
	return func() (texts []string) {
		mu.Lock()
		defer mu.Unlock()
		for lines := bufio.NewScanner(&b); lines.Scan(); {
			var e struct{ Level, Msg, Text string }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &e), lines.Text())
			require.Equal(t, []string{"WARN", "library_message"}, []string{e.Level, e.Msg})
			texts = append(texts, e.Text)
		}
		return texts
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// net/http reports with package log what it received on an idle connection, and that
// a server's handler panicked.
func TestLibraryLinesAreEvents(t *testing.T) {
	lines := takeLines(t)
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
		defer tr.CloseIdleConnections()
		idle := make(chan struct{})
		go func() {
			_, _ = http.ReadRequest(bufio.NewReader(theirs))
			_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			<-idle
			_, _ = io.WriteString(theirs, "HTTP/1.1 400 X\nToken: token=abc\x1b[31m")
			_ = theirs.Close()
		}()
		resp, err := (&http.Client{Transport: tr}).Get("http://site.example/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		close(idle)
		synctest.Wait()
	})
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	_, err = http.Get("http://" + l.Addr().String())
	require.Error(t, err)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	texts := lines()
	require.Len(t, texts, 2)
	require.Contains(t, texts[0], "Unsolicited response received on idle HTTP channel")
	require.NotContains(t, texts[0], "abc")
	require.Contains(t, texts[1], "panic serving")
}

func TestLibraryLinesAreBounded(t *testing.T) {
	lines := takeLines(t)
	log.Print(strings.Repeat("x", 5<<10), "\xff")
	log.Print("a \xff token=secret\n")
	require.Equal(t, []string{strings.Repeat("x", maxLibraryLine) + "…", "a \ufffd token=REDACTED"}, lines())
}

// captured has the lines of Beam's log that a runner would get.
type captured []string

func (c *captured) Log(_ context.Context, s beamlog.Severity, _ int, msg string) {
	*c = append(*c, fmt.Sprint(s, " ", msg))
}

// A worker's events reach its runner with their severity.
func TestLogToRunner(t *testing.T) {
	var got captured
	beamlog.SetLogger(&got)
	LogToRunner()
	t.Cleanup(func() { toRunner.Store(false); beamlog.SetLogger(&beamlog.Standard{}) })
	for _, format := range []string{"json", "text"} {
		l := Logger(format, slog.LevelInfo)
		l.Debug("nothing")
		l.Info("robots_fetched")
		l.Warn("lease_unsure", "by", `"level":"x`)
		l.Error("store_failed")
	}
	require.Len(t, got, 6)
	for i, want := range []beamlog.Severity{beamlog.SevInfo, beamlog.SevWarn, beamlog.SevError} {
		for _, line := range []string{got[i], got[i+3]} {
			require.True(t, strings.HasPrefix(line, fmt.Sprint(want, " ")), line)
		}
	}
	require.Regexp(t, `^\d \{"time":"[^"]+","level":"WARN","event":"lease_unsure","by":"[^\n]*\}$`, got[1])
}
