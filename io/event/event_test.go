package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/event"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
)

// row is a row of the test's job.
type row struct {
	Name   string     `parquet:"name" doc:"the name"`
	State  string     `parquet:"state" doc:"the state"`
	Text   string     `parquet:"text" doc:"a text"`
	At     time.Time  `parquet:"at" doc:"when"`
	GoneAt *time.Time `parquet:"gone_at,optional" doc:"since when it is gone"`
	Seen   time.Time  `parquet:"seen" doc:"when it was seen last"`
}

// kind yields what all returns, as the store would: what was stored at the filter's time or later.
func kind(all func() []row) rows.What {
	w := rows.What{Name: "things", Job: "toy", Table: "NAME STATE TEXT…",
		Event: &rows.Event{Type: "thing.changed", Subject: "name", ID: []string{"name", "at", "gone_at"}, Back: "seen"}}
	return rows.InStore(w, func(_ context.Context, _ store.Store, f rows.Filter) iter.Seq2[row, error] {
		return func(yield func(row, error) bool) {
			for _, r := range all() {
				if !r.Seen.Before(f.Stored) && !yield(r, nil) {
					return
				}
			}
		}
	})
}

// receiver takes events; of the first ones only as many as it can before it dies.
type receiver struct {
	mu    sync.Mutex
	dies  int // after so many sends; 0: never
	calls int
	times map[string]int // each id came
	last  map[string]any
}

var errRefused = fmt.Errorf("%w: it died", queue.ErrRefused)

func (r *receiver) Send(_ context.Context, events []queue.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls++; r.dies > 0 && r.calls > r.dies {
		return errRefused
	}
	for _, e := range events {
		if err := json.Unmarshal(e.JSON, &r.last); err != nil {
			return err
		}
		if r.last["id"] != e.ID {
			return errors.New("another id")
		}
		r.times[e.ID]++
	}
	return nil
}

func (r *receiver) Close() error { return nil }

func TestSend(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	start := time.Date(2026, 1, 28, 3, 0, 0, 0, time.UTC)
	now := start
	var all []row
	add := func(n int, at time.Time) {
		for range n {
			all = append(all, row{Name: fmt.Sprint("n", len(all)), State: "new", Text: strings.Repeat("é", 3000), At: at, Seen: at})
		}
	}
	what := kind(func() []row { return all })
	send := func(r *receiver) (int, error) {
		return event.Send(ctx, what, rows.Source{Store: s}, r, now)
	}
	fresh := func(dies int) *receiver { return &receiver{dies: dies, times: map[string]int{}} }

	add(5, start.Add(-time.Hour)) // before anybody wanted events
	require.NoError(t, event.Begin(ctx, s, "toy", start))
	require.NoError(t, event.Begin(ctx, s, "toy", start.Add(time.Hour)), "a position that is there stays")
	add(950, start.Add(time.Second))
	r := fresh(3)
	_, err = send(r)
	require.ErrorIs(t, err, queue.ErrRefused)
	require.ErrorContains(t, err, "the next run sends them again")
	require.Less(t, len(r.times), 950)

	r.dies = 0
	now = start.Add(time.Minute)
	n, err := send(r)
	require.NoError(t, err)
	require.Equal(t, []int{950, 950}, []int{n, len(r.times)}, "nothing is lost, and no id is new")

	n, err = send(r)
	require.NoError(t, err)
	require.Zero(t, n, "all are sent")

	add(2, start.Add(50*time.Second)) // visible late, after a send
	gone := start.Add(55 * time.Second)
	all[10].State, all[10].GoneAt, all[10].Seen = "gone", &gone, gone
	now = start.Add(10 * time.Minute)
	n, err = send(r)
	require.NoError(t, err)
	require.Equal(t, []int{3, 953}, []int{n, len(r.times)})
	for i := range 3 { // gone and back, again and again: each return is an event of its own
		now = now.Add(time.Hour)
		all[10].State, all[10].GoneAt, all[10].Seen = "back", nil, now
		n, err = send(r)
		require.NoError(t, err)
		require.Equal(t, []int{1, 954 + i}, []int{n, len(r.times)})
	}
	data, _ := r.last["data"].(map[string]any)
	text, _ := data["text"].(string)
	require.Equal(t, []any{"1.0", "/seed-engine/toy", "thing.changed", "n10", "application/json", "n10", "back", 1024},
		[]any{r.last["specversion"], r.last["source"], r.last["type"], r.last["subject"], r.last["datacontenttype"], data["name"], data["state"], len([]rune(text))})
	require.Equal(t, now.Format(time.RFC3339), r.last["time"])
}
