package ledger

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// Alive is what one worker process of a run says of itself: the object
// runs/{run_id}/alive/{process}. It has one byte for each lane at work there, so one
// listing shows all processes, and an object never shows half of a change.
type Alive struct {
	Process string
	Lanes   int
	At      time.Time // when it was written, by the store's clock
}

func aliveKey(runID, process string) string { return runKey(runID, "alive/"+process) }

// SayAlive writes how many lanes a process has at work.
func SayAlive(ctx context.Context, s store.Store, runID, process string, lanes int) error {
	if err := checkName("process", process); err != nil {
		return fmt.Errorf("writing the lanes at work of a process of run %s: %w", runID, err)
	}
	return store.Write(ctx, s, aliveKey(runID, process), bytes.Repeat([]byte("|"), lanes), store.PutOptions{ContentType: "text/plain"})
}

// ListAlive returns what the processes of a run said last, also those that have died
// since.
func ListAlive(ctx context.Context, s store.Store, runID string) ([]Alive, error) {
	var all []Alive
	prefix := aliveKey(runID, "")
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		all = append(all, Alive{strings.TrimPrefix(o.Key, prefix), int(o.Size), o.ModTime})
	}
	return all, nil
}

// EndAlive removes what a process said.
func EndAlive(ctx context.Context, s store.Store, runID, process string) error {
	return store.Remove(ctx, s, aliveKey(runID, process))
}
