package launch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// notice writes a line for a person, or an event when the log is JSON, because
// then all lines must be JSON.
func notice(o Options, stderr io.Writer, event, line string, args ...any) error {
	if o.LogFormat == "json" {
		lane.Logger(o.LogFormat, o.Level()).Info(event, args...)
		return nil
	}
	_, err := fmt.Fprintln(stderr, printable.Line(line))
	return err
}

// quietBeam drops what the runner logs, except errors, which appear in the form
// of the user's log.
func quietBeam(log *slog.Logger) {
	slog.SetDefault(slog.New(&errorsOnly{log.Handler()}))
	lane.TakeLibraryLines(log) // after SetDefault, which would redirect them too, and drop them
	beamlog.SetLogger(quiet{})
}

// errorsOnly passes only errors on. The message of a library or runner, such as a Java
// exception with its stack, is the text of an event and not its name.
type errorsOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h *errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h *errorsOnly) Handle(_ context.Context, r slog.Record) error {
	var attrs []any
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	slog.New(h.Handler).With(attrs...).Error("library_message", "text", ledger.Redact(r.Message))
	return nil
}

// WithAttrs implements slog.Handler.
func (h *errorsOnly) WithAttrs(a []slog.Attr) slog.Handler {
	return &errorsOnly{h.Handler.WithAttrs(a)}
}

// WithGroup implements slog.Handler.
func (h *errorsOnly) WithGroup(name string) slog.Handler {
	return &errorsOnly{h.Handler.WithGroup(name)}
}

type quiet struct{}

// Log implements Beam's log.Logger.
func (quiet) Log(_ context.Context, sev beamlog.Severity, _ int, msg string) {
	if sev >= beamlog.SevError && !slices.Contains([]string{"", "EOF"}, msg) {
		slog.Error(msg)
	}
}
