package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/newsfork/seed-engine/io/store"
)

// maxLogPart is the maximum size of one object of a run's log. Two are kept; the one
// named "log" has the newest lines.
const maxLogPart = 512 << 10

// Log keeps the log of a run in the store. Lines are kept in memory until Flush.
type Log struct {
	store store.Store
	key   string

	mu       sync.Mutex
	current  []byte
	previous []byte
	written  int64 // bytes ever
	dirty    bool
	rotated  bool // before is not in the store yet

	flushing sync.Mutex
}

// NewLog begins a run's log. process names a worker outside the launcher, whose lines
// are kept in its own objects; "" is the launcher.
func NewLog(s store.Store, runID, process string) (*Log, error) {
	if err := checkName("run id", runID); err != nil {
		return nil, fmt.Errorf("keeping the log of a run: %w", err)
	}
	key := runKey(runID, "log")
	if process != "" {
		if err := checkName("process", process); err != nil {
			return nil, fmt.Errorf("keeping the log of run %s: %w", runID, err)
		}
		key += "-" + process
	}
	return &Log{store: s, key: key}, nil
}

// WorkerLogged reports whether a worker outside the launcher has written to the run's
// log. A worker flushes its first line within 15 seconds.
func WorkerLogged(ctx context.Context, s store.Store, runID string) (bool, error) {
	for _, err := range s.List(ctx, runKey(runID, "log-")) {
		if err != nil {
			return false, fmt.Errorf("looking for the logs of workers: %w", err)
		}
		return true, nil
	}
	return false, nil
}

// Write adds one line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.current)+len(line) > maxLogPart {
		l.previous, l.current, l.rotated = l.current, nil, true
	}
	l.current = append(l.current, line[:min(len(line), maxLogPart)]...)
	l.written += int64(len(line))
	l.dirty = true
	return len(line), nil
}

// NearlyFull reports that three quarters of one object's maximum size was written. From
// then on lines about progress should be omitted, to leave space for errors.
func (l *Log) NearlyFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written > maxLogPart*3/4
}

// Flush writes new lines to the store.
func (l *Log) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	now, before, dirty, turned := bytes.Clone(l.current), l.previous, l.dirty, l.rotated
	l.dirty, l.rotated = false, false
	l.mu.Unlock()
	if !dirty {
		return nil
	}
	var err error
	if turned {
		err = l.put(ctx, l.key+".1", before)
	}
	if err == nil {
		err = l.put(ctx, l.key, now)
	}
	if err != nil {
		l.mu.Lock()
		l.dirty, l.rotated = true, l.rotated || turned
		l.mu.Unlock()
	}
	return err
}

func (l *Log) put(ctx context.Context, key string, b []byte) error {
	return store.Write(ctx, l.store, key, b, store.PutOptions{ContentType: "text/plain; charset=utf-8"})
}

// maxLog is the maximum size of ReadLog's result: on a cluster each process has a log.
const maxLog = 8 << 20

// ProcessLog has the kept lines of one process of a run, each a JSON object, the oldest first.
type ProcessLog struct {
	Process string // host and process id, or launcher
	Lines   []byte
}

// ReadLogs returns the logs that a run's processes have kept. Together they have at most maxLog bytes.
func ReadLogs(ctx context.Context, s store.Store, runID string) (all []ProcessLog, err error) {
	if err := checkName("run id", runID); err != nil {
		return nil, fmt.Errorf("reading the log of a run: %w", err)
	}
	prefix, left := runKey(runID, "log"), maxLog
	var logs []string
	there := map[string]bool{}
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		there[o.Key] = true
		if log := strings.TrimSuffix(o.Key, ".1"); !slices.Contains(logs, log) {
			logs = append(logs, log)
		}
	}
	for _, log := range logs {
		l := ProcessLog{Process: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(log, prefix), "-"), "launcher")}
		for _, key := range []string{log + ".1", log} {
			if !there[key] {
				continue
			}
			b, err := read(ctx, s, key)
			if err != nil && !errors.Is(err, store.ErrNotExist) { // else it was removed since the listing
				return nil, err
			}
			if left -= len(b); left < 0 {
				return all, nil
			}
			l.Lines = append(l.Lines, b...)
		}
		all = append(all, l)
	}
	return all, nil
}

// ReadLog returns the lines of ReadLogs, process after process. The error matches store.ErrNotExist when there are none.
func ReadLog(ctx context.Context, s store.Store, runID string) ([]byte, error) {
	all, err := ReadLogs(ctx, s, runID)
	var b []byte
	for _, l := range all {
		b = append(b, l.Lines...)
	}
	if err == nil && b == nil {
		err = fmt.Errorf("reading the log of run %s: %w", runID, store.ErrNotExist)
	}
	return b, err
}

// IsWarning reports whether a line of a log is a warning or an error.
func IsWarning(line []byte) bool {
	head := line[:min(len(line), 80)] // the time and the level come first
	return bytes.Contains(head, []byte(`"level":"WARN"`)) || bytes.Contains(head, []byte(`"level":"ERROR"`))
}

// WorkerLines are the newest warnings and errors of one process of a run, the oldest first.
type WorkerLines struct {
	Worker string            `json:"worker"` // ProcessLog.Process
	Lines  []json.RawMessage `json:"lines"`  // each an object with time, level, event and what the event has besides
}

// maxWorkerLines is how many warnings and errors of one process are shown.
const maxWorkerLines = 100

// Warnings returns the newest warnings and errors of the processes that have some.
func Warnings(logs []ProcessLog) (all []WorkerLines) {
	for _, l := range logs {
		w := WorkerLines{Worker: l.Process}
		for line := range bytes.Lines(l.Lines) {
			if line = bytes.TrimSpace(line); IsWarning(line) && json.Valid(line) {
				w.Lines = append(w.Lines, line)
			}
		}
		if n := len(w.Lines); n > 0 {
			w.Lines = w.Lines[max(0, n-maxWorkerLines):]
			all = append(all, w)
		}
	}
	return all
}

// maxLogValue is the maximum length of a text in a warning, in bytes.
const maxLogValue = 1000

// CleanAttr is a slog.HandlerOptions.ReplaceAttr for warnings, which people see on pages: texts have no secrets, no control
// characters and a limited length.
func CleanAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		text := a.Value.String()
		a.Value = slog.StringValue(oneLine(text[:min(len(text), 20*maxLogValue)], maxLogValue)) // a huge one costs little
	}
	return a
}
