package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// Progress is what one process of a run has counted so far: the object runs/{run_id}/progress/{process}.json.gz. ReadProgress
// returns the sum over all processes.
type Progress struct {
	// Tally has what a process counted outside its lanes: other stages, requests, store calls, dead letters. The sum of a run also has the
	// counts of its lanes.
	Tally Tally          `json:"tally"`
	Lanes []LaneProgress `json:"lanes"`
}

// LaneProgress is one lane's part of a process's progress. Lanes that ended stay apart too: a runner may do one of them again.
type LaneProgress struct {
	Lane      int       `json:"lane"`
	Epoch     int64     `json:"epoch,omitempty"` // of the lane's lease
	Hosts     int64     `json:"hosts"`           // in this lane
	HostsDone int64     `json:"hosts_done"`      // finished, with success or without
	Finished  bool      `json:"finished"`        // the lane has ended
	UpdatedAt time.Time `json:"updated_at"`
	Waits     []string  `json:"waits,omitempty"` // texts: what its process is waiting for, if it takes long
	Tally     Tally     `json:"tally"`           // of this lane so far
}

// WriteProgress replaces the progress of one process.
func WriteProgress(ctx context.Context, s store.Store, runID, process string, p Progress) error {
	if err := errors.Join(checkName("run id", runID), checkName("process", process)); err != nil {
		return fmt.Errorf("writing the progress of a run: %w", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(p), z.Close()); err != nil {
		return fmt.Errorf("encoding the progress of run %s: %w", runID, err)
	}
	return store.Write(ctx, s, runKey(runID, "progress/"+process+".json.gz"), b.Bytes(), store.PutOptions{ContentType: "application/gzip"})
}

// ReadProgress sums the progress of all processes of a run. Of a lane that several processes had, it uses the one with the
// newest lease alone. The lanes are in order.
func ReadProgress(ctx context.Context, s store.Store, runID string) (sum Progress, err error) {
	if err := checkName("run id", runID); err != nil {
		return sum, fmt.Errorf("reading the progress of a run: %w", err)
	}
	prefix, lanes := runKey(runID, "progress/"), map[int]LaneProgress{}
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return sum, fmt.Errorf("listing %s: %w", prefix, err)
		}
		p, err := readProgress(ctx, s, o.Key)
		if err != nil {
			return sum, fmt.Errorf("reading %s: %w", o.Key, err)
		}
		sum.Tally.Add(p.Tally)
		for _, l := range p.Lanes {
			if old, ok := lanes[l.Lane]; !ok || l.Epoch >= old.Epoch {
				lanes[l.Lane] = l
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lanes)) {
		sum.Lanes = append(sum.Lanes, lanes[n])
		sum.Tally.Add(lanes[n].Tally)
	}
	return sum, nil
}

func readProgress(ctx context.Context, s store.Store, key string) (p Progress, err error) {
	b, err := read(ctx, s, key)
	if err != nil {
		return p, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return p, err
	}
	if b, err = io.ReadAll(io.LimitReader(z, maxObject)); err != nil {
		return p, err
	}
	return decode[Progress](b)
}
