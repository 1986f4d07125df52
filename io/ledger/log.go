package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// ReadLog returns the kept lines of a run's log, each a JSON object, process after
// process, the oldest line first. The error matches store.ErrNotExist when there are
// none.
func ReadLog(ctx context.Context, s store.Store, runID string) ([]byte, error) {
	if err := checkName("run id", runID); err != nil {
		return nil, fmt.Errorf("reading the log of a run: %w", err)
	}
	var keys []string
	prefix := runKey(runID, "log")
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if !strings.HasSuffix(o.Key, ".1") {
			keys = append(keys, o.Key+".1", o.Key)
		}
	}
	var all bytes.Buffer
	for _, key := range keys {
		b, err := read(ctx, s, key)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if all.Len()+len(b) > maxLog {
			break
		}
		all.Write(b)
	}
	if all.Len() == 0 {
		return nil, fmt.Errorf("reading the log of run %s: %w", runID, store.ErrNotExist)
	}
	return all.Bytes(), nil
}
