package lane

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// RunLogger is Logger for one run: each line has the run's id and job. If this
// process keeps the run's log, the lines are also written to the store.
func RunLogger(cfg Config) *slog.Logger {
	h := Logger(cfg.LogFormat, cfg.LogLevel).Handler()
	if onTerminal(cfg) {
		h = &terse{Handler: h, runID: cfg.RunID, seen: new(sync.Map)}
	}
	if k := kept(cfg.RunID); k != nil {
		lines := slog.NewJSONHandler(k.log, handlerOptions(min(cfg.LogLevel, slog.LevelInfo)))
		h = slog.NewMultiHandler(h, &keptHandler{lines, k.clean(), k})
	}
	return slog.New(h).With("run_id", cfg.RunID, "job", cfg.Job)
}

// KeptLogger writes only to the run's log in the store.
func KeptLogger(cfg Config) *slog.Logger {
	k := kept(cfg.RunID)
	if k == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(k.clean()).With("run_id", cfg.RunID, "job", cfg.Job)
}

// clean is a handler whose lines may be shown on pages: see ledger.CleanAttr.
func (k *keptLog) clean() slog.Handler {
	o := handlerOptions(slog.LevelInfo)
	rename := o.ReplaceAttr
	o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr { return ledger.CleanAttr(groups, rename(groups, a)) }
	return slog.NewJSONHandler(k.log, o)
}

// keptHandler drops lines below warnings when the log has become long, so that there
// is space left for warnings and errors.
type keptHandler struct {
	lines, warnings slog.Handler
	k               *keptLog
}

// Enabled implements slog.Handler.
func (h *keptHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn || h.lines.Enabled(ctx, l) && !h.k.log.NearlyFull()
}

// Handle implements slog.Handler.
func (h *keptHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.lines.Handle(ctx, r)
	}
	err := h.warnings.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.k.soon()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h *keptHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return &keptHandler{h.lines.WithAttrs(a), h.warnings.WithAttrs(a), h.k}
}

// WithGroup implements slog.Handler.
func (h *keptHandler) WithGroup(name string) slog.Handler {
	return &keptHandler{h.lines.WithGroup(name), h.warnings.WithGroup(name), h.k}
}

// logEvery is how often the new lines of a run's log are written to the store. Errors
// are written sooner.
const logEvery = 15 * time.Second

type keptLog struct {
	log  *ledger.Log
	wake chan struct{}
}

func (k *keptLog) soon() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

var keptLogs = struct {
	sync.Mutex
	byRun map[string]*keptLog
}{byRun: map[string]*keptLog{}}

func kept(runID string) *keptLog {
	keptLogs.Lock()
	defer keptLogs.Unlock()
	return keptLogs.byRun[runID]
}

// KeepLog writes the log of a run, and its warnings once more, to the store until end is called. process is "" for the launcher. If the
// process keeps that log already, end does nothing.
func KeepLog(ctx context.Context, s store.Store, runID, process string) (end func(context.Context) error, err error) {
	l, err := ledger.NewLog(s, runID, process)
	if err != nil {
		return nil, err
	}
	k := &keptLog{l, make(chan struct{}, 1)}
	keptLogs.Lock()
	defer keptLogs.Unlock()
	if keptLogs.byRun[runID] != nil {
		return func(context.Context) error { return nil }, nil
	}
	keptLogs.byRun[runID] = k
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(logEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-k.wake:
				if polite.SystemClock.Sleep(ctx, time.Second) != nil { // one error is often followed by more
					return
				}
			case <-ctx.Done():
				return
			}
			_ = k.log.Flush(ctx) // tried again later; end returns the error of the last one
		}
	}()
	return func(ctx context.Context) error {
		cancel()
		<-done
		keptLogs.Lock()
		delete(keptLogs.byRun, runID)
		keptLogs.Unlock()
		if err := k.log.Flush(ctx); err != nil {
			return fmt.Errorf("writing the run's log: %w", err)
		}
		return nil
	}, nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// processName returns a name that is different in each process of a run. In containers the
// host's name and the process id can be the same, so a random part is in it.
var processName = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return notInName.ReplaceAllString(fmt.Sprintf("%.60s-%d-%.8s", host, os.Getpid(), rand.Text()), "-")
})

// keepOwnLog keeps the log of a worker whose run was launched by another process. It
// ends with the worker.
func (w *Worker) keepOwnLog(ctx context.Context) error {
	end, err := KeepLog(ctx, w.Store, w.cfg.RunID, processName())
	if err != nil {
		return err
	}
	if k := kept(w.cfg.RunID); k != nil { // so that the launcher sees soon that a worker has begun
		RunLogger(w.cfg).Info("worker_opened", "process", processName())
		k.soon()
	}
	w.endLog = func() error {
		within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return end(within)
	}
	return nil
}
