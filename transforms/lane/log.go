package lane

import (
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Logger writes structured events to standard error: the message is the
// seeds' event name, under the key "event" (design 1.1.0, section 9.1).
func Logger(format string, level slog.Level) *slog.Logger {
	o := handlerOptions(level)
	if format == "text" {
		return slog.New(slog.NewTextHandler(os.Stderr, o))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, o))
}

func handlerOptions(level slog.Level) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.MessageKey {
			a.Key = "event"
		}
		return a
	}}
}

// maxLibraryLine bounds a library's line: net/http quotes what a stranger sent.
const maxLibraryLine = 1 << 10

// TakeLibraryLines makes events of the lines that libraries write by package
// log, so that each line of a JSON log is JSON: net/http, client and server,
// has no other way to tell of a connection that it gives up.
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
