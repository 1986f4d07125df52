package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
)

const (
	maxWorkerLines = 100     // of one process
	maxWorkerLine  = 4 << 10 // bytes of one line
	maxWorkerValue = 400     // bytes of one text in a line
	maxWorkers     = 50      // of one run, that have an object
)

// launcherWorker is the name of the process that launched the run in the names of
// WorkerLog and WorkerLines.
const launcherWorker = "launcher"

// WorkerLog keeps the newest warnings and errors of one process of a run, as JSON
// lines in the object runs/{run id}/workers/{process}.jsonl. Lines are kept in memory
// until Flush. A process without any has no object, and a run has at most maxWorkers
// of them: the lines of later processes are only in their own logs and at the runner.
type WorkerLog struct {
	store  store.Store
	folder string
	key    string

	mu      sync.Mutex
	lines   [][]byte
	dropped int64
	dirty   bool

	flushing sync.Mutex
	exists   bool // the object, or the decision that there is none
	refused  bool
}

// NewWorkerLog begins the log of a process; "" is the launcher.
func NewWorkerLog(s store.Store, runID, process string) (*WorkerLog, error) {
	if process == "" {
		process = launcherWorker
	}
	if err := errors.Join(checkName("run id", runID), checkName("process", process)); err != nil {
		return nil, fmt.Errorf("keeping the warnings of a worker: %w", err)
	}
	folder := workersFolder(runID)
	return &WorkerLog{store: s, folder: folder, key: folder + process + workerSuffix}, nil
}

const workerSuffix = ".jsonl"

func workersFolder(runID string) string { return runKey(runID, "workers") + "/" }

// CleanAttr is a slog.HandlerOptions.ReplaceAttr for the handler that writes to a
// WorkerLog: texts have no secrets, no control characters and a limited length.
func CleanAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(workerText(a.Value.String()))
	case slog.KindAny:
		a.Value = slog.StringValue(workerText(fmt.Sprint(a.Value.Any())))
	}
	return a
}

func workerText(text string) string {
	if long := 20 * maxWorkerValue; len(text) > long { // so that a huge one costs little
		text = text[:long]
	}
	return oneLine(text, maxWorkerValue)
}

// Write adds one line, a JSON object.
func (l *WorkerLog) Write(line []byte) (int, error) {
	kept := bytes.Clone(line)
	if len(kept) > maxWorkerLine {
		kept = shortLine(kept)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.dirty = append(l.lines, kept), true
	if extra := len(l.lines) - maxWorkerLines; extra > 0 {
		l.lines = slices.Delete(l.lines, 0, extra)
		l.dropped += int64(extra)
	}
	return len(line), nil
}

// shortLine keeps what says when and what happened, and the beginning of the rest.
func shortLine(line []byte) []byte {
	var short struct {
		Time  string `json:"time"`
		Level string `json:"level"`
		Event string `json:"event"`
		Cut   string `json:"cut"`
	}
	if err := json.Unmarshal(line, &short); err != nil {
		short.Event = "unreadable"
	}
	short.Time, short.Level, short.Event = bounded(short.Time, 40), bounded(short.Level, 40), bounded(short.Event, 100)
	short.Cut = workerText(string(line))
	b, _ := json.Marshal(short) // it has only texts
	return append(b, '\n')
}

// Flush writes new lines to the store.
func (l *WorkerLog) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	var all bytes.Buffer
	if l.dropped > 0 {
		fmt.Fprintf(&all, `{"time":%q,"level":"WARN","event":"lines_dropped","count":%d}`+"\n", time.Now().Format(time.RFC3339), l.dropped)
	}
	for _, line := range l.lines {
		all.Write(line)
	}
	dirty := l.dirty
	l.dirty = false
	l.mu.Unlock()
	if !dirty || l.refused {
		return nil
	}
	err := l.begin(ctx)
	if err == nil && !l.refused {
		err = store.Write(ctx, l.store, l.key, all.Bytes(), store.PutOptions{ContentType: "application/jsonl"})
	}
	if err != nil {
		l.mu.Lock()
		l.dirty = true
		l.mu.Unlock()
		return fmt.Errorf("keeping the warnings of a worker: %w", err)
	}
	return nil
}

// begin decides once whether this process may have an object.
func (l *WorkerLog) begin(ctx context.Context) error {
	if l.exists {
		return nil
	}
	keys, err := workerObjects(ctx, l.store, l.folder)
	if err != nil {
		return err
	}
	l.exists, l.refused = true, len(keys) >= maxWorkers && !slices.Contains(keys, l.key)
	return nil
}

func workerObjects(ctx context.Context, s store.Store, folder string) (keys []string, err error) {
	for o, err := range s.List(ctx, folder) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", folder, err)
		}
		if strings.HasSuffix(o.Key, workerSuffix) {
			keys = append(keys, o.Key)
		}
		if len(keys) > 2*maxWorkers { // several may have begun at once; more than that are not ours
			break
		}
	}
	return keys, nil
}

// WorkerLines are the newest warnings and errors of one process of a run, the oldest
// first.
type WorkerLines struct {
	Worker string            `json:"worker"` // host and process id, or launcherWorker
	Lines  []json.RawMessage `json:"lines"`  // each an object with time, level, event and what the event has besides
}

// ReadWorkers returns the warnings and errors of a run's processes.
func ReadWorkers(ctx context.Context, s store.Store, runID string) ([]WorkerLines, error) {
	if err := checkName("run id", runID); err != nil {
		return nil, fmt.Errorf("reading the warnings of workers: %w", err)
	}
	keys, err := workerObjects(ctx, s, workersFolder(runID))
	if err != nil {
		return nil, err
	}
	keys = keys[:min(len(keys), maxWorkers)]
	all := make([]WorkerLines, len(keys))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, key := range keys {
		g.Go(func() error {
			b, err := read(gctx, s, key)
			if errors.Is(err, store.ErrNotExist) { // purged since the listing
				return nil
			}
			all[i] = WorkerLines{strings.TrimSuffix(path.Base(key), workerSuffix), workerLines(b)}
			return err
		})
	}
	err = g.Wait()
	return slices.DeleteFunc(all, func(w WorkerLines) bool { return len(w.Lines) == 0 }), err
}

// workerLines returns the lines of an object. One that is no JSON object is shown as
// such: nothing is hidden.
func workerLines(b []byte) []json.RawMessage {
	lines := []json.RawMessage{}
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(line) > maxWorkerLine || line[0] != '{' || !json.Valid(line) {
			line = bytes.TrimSpace(shortLine(line))
		}
		if lines = append(lines, line); len(lines) > maxWorkerLines { // and the line about dropped ones
			break
		}
	}
	return lines
}
