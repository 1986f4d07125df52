package lane

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Logger writes structured events to standard error, or from a worker process to its
// runner. The message is the event's name, under the key "event".
func Logger(format string, level slog.Level) *slog.Logger {
	var to io.Writer = os.Stderr
	if toRunner.Load() {
		to = runnerLog{}
	}
	o := handlerOptions(level)
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, o))
	}
	return slog.New(slog.NewJSONHandler(to, o))
}

var toRunner atomic.Bool

// LogToRunner makes all loggers of a worker process write to the runner, some of which do not read standard error.
func LogToRunner() { toRunner.Store(true) }

// runnerLog expects one event in each call of Write, as slog's handlers do. What the
// runner does not accept, Beam writes to standard error.
type runnerLog struct{}

// Write implements io.Writer.
func (runnerLog) Write(line []byte) (int, error) {
	severity := beamlog.SevInfo
	head := line[:min(len(line), 80)] // the time and the level come first
	for said, s := range map[string]beamlog.Severity{"DEBUG": beamlog.SevDebug, "WARN": beamlog.SevWarn, "ERROR": beamlog.SevError} {
		if bytes.Contains(head, []byte(`"level":"`+said)) || bytes.Contains(head, []byte(" level="+said)) {
			severity = s
		}
	}
	beamlog.Output(context.Background(), severity, 0, strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

func handlerOptions(level slog.Level) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.MessageKey {
			a.Key = "event"
		}
		return a
	}}
}

// maxLibraryLine is the maximum length of a library's line: net/http quotes what strangers sent.
const maxLibraryLine = 1 << 10

// TakeLibraryLines turns the lines that libraries write with package log into events: net/http has no other way to report a connection
// that it abandons.
func TakeLibraryLines(l *slog.Logger) {
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(libraryLines{l})
}

type libraryLines struct{ to *slog.Logger }

func (w libraryLines) Write(line []byte) (int, error) {
	text := strings.ToValidUTF8(strings.TrimSpace(string(line)), "\ufffd")
	if len(text) > maxLibraryLine {
		text = strings.ToValidUTF8(text[:maxLibraryLine], "") + "…"
	}
	w.to.Warn("library_message", "text", ledger.Redact(text))
	return len(line), nil
}
