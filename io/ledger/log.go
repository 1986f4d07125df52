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

// logPart bounds one object of a run's log. Two are kept, the newest lines in
// the one named "log".
const logPart = 512 << 10

// Log keeps the log of a run in the store. What is written to it waits in
// memory until Flush.
type Log struct {
	store store.Store
	key   string

	mu      sync.Mutex
	now     []byte
	before  []byte
	written int64 // bytes ever
	dirty   bool
	turned  bool // before is not in the store yet

	flushing sync.Mutex
}

// NewLog begins a run's log. A process elsewhere that has a part in the run
// names itself, and its lines are kept next to the launcher's; "" is the launcher.
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

// WorkerLogged says whether a process besides the launcher has kept a line of the
// run's log, which each does within a quarter of a minute of its first.
func WorkerLogged(ctx context.Context, s store.Store, runID string) (bool, error) {
	for _, err := range s.List(ctx, runKey(runID, "log-")) {
		if err != nil {
			return false, fmt.Errorf("looking for the logs of workers: %w", err)
		}
		return true, nil
	}
	return false, nil
}

// Write takes one line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.now)+len(line) > logPart {
		l.before, l.now, l.turned = l.now, nil, true
	}
	l.now = append(l.now, line[:min(len(line), logPart)]...)
	l.written += int64(len(line))
	l.dirty = true
	return len(line), nil
}

// Crowded says that as much as one object may have has been written: lines that
// only report progress should give way to those that tell of trouble.
func (l *Log) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written > logPart*3/4
}

// Flush writes what is new into the store.
func (l *Log) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	now, before, dirty, turned := bytes.Clone(l.now), l.before, l.dirty, l.turned
	l.dirty, l.turned = false, false
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
		l.dirty, l.turned = true, l.turned || turned
		l.mu.Unlock()
	}
	return err
}

func (l *Log) put(ctx context.Context, key string, b []byte) error {
	err := store.Retry(ctx, func() error {
		return l.store.Put(ctx, key, bytes.NewReader(b), store.PutOptions{ContentType: "text/plain; charset=utf-8"})
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// maxLog bounds what ReadLog gives: a run on a cluster has a log a process.
const maxLog = 8 << 20

// ReadLog gives the kept lines of a run's log, one JSON object each, oldest
// first in each process's part. The error matches store.ErrNotExist when there
// are none.
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
