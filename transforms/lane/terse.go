package lane

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"

	"golang.org/x/term"

	"github.com/newsfork/seed-engine/io/ledger"
)

// onTerminal reports whether a person reads the log as it comes, and did not ask for more than warnings.
func onTerminal(cfg Config) bool {
	return cfg.LogFormat == "text" && cfg.LogLevel >= slog.LevelWarn && !toRunner.Load() && term.IsTerminal(int(os.Stderr.Fd()))
}

// unshown has the warnings that this process did not show, by run and event.
var unshown = struct {
	sync.Mutex
	byRun map[string]ledger.Counts
}{byRun: map[string]ledger.Counts{}}

// Unshown returns how many warnings of a run a terminal did not show, by event.
func Unshown(runID string) ledger.Counts {
	unshown.Lock()
	defer unshown.Unlock()
	return unshown.byRun[runID]
}

// terse shows the first warning of each event, and none about a single input, because there may be thousands. It counts the others.
type terse struct {
	slog.Handler
	runID string
	seen  *sync.Map // events
	input bool      // a file is among the attributes
}

// Handle implements slog.Handler.
func (h *terse) Handle(ctx context.Context, r slog.Record) error {
	input := h.input
	r.Attrs(func(a slog.Attr) bool { input = input || a.Key == inputAttr; return !input })
	if _, again := h.seen.LoadOrStore(r.Message, true); r.Level != slog.LevelWarn || !again && !input {
		return h.Handler.Handle(ctx, r)
	}
	unshown.Lock()
	defer unshown.Unlock()
	if unshown.byRun[h.runID] == nil {
		unshown.byRun[h.runID] = ledger.Counts{}
	}
	unshown.byRun[h.runID][r.Message]++
	return nil
}

// inputAttr is the attribute of events about one file.
const inputAttr = "file_path"

// WithAttrs implements slog.Handler.
func (h *terse) WithAttrs(a []slog.Attr) slog.Handler {
	input := h.input || slices.ContainsFunc(a, func(a slog.Attr) bool { return a.Key == inputAttr })
	return &terse{h.Handler.WithAttrs(a), h.runID, h.seen, input}
}

// WithGroup implements slog.Handler.
func (h *terse) WithGroup(name string) slog.Handler {
	return &terse{h.Handler.WithGroup(name), h.runID, h.seen, h.input}
}
