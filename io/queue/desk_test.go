package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/queue/queuetest"
)

// bench is a program at a desk: each call of it is in a process of its own, which knows only what the one before encoded.
type bench struct {
	t     *testing.T
	q     *queuetest.Broker
	state []byte
	mu    sync.Mutex
	done  map[string]bool
	lost  error // of Look
	begun []string
	dead  []string
}

func (b *bench) step() error {
	b.t.Helper()
	var d queue.Desk
	require.NoError(b.t, json.Unmarshal(b.state, &d))
	_, err := d.Step(b.t.Context(), b.q, queue.Job{Log: slog.New(slog.DiscardHandler),
		Look: func(_ context.Context, w queue.Wanted) (queue.State, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			switch {
			case b.lost != nil:
				return queue.Ready, b.lost
			case b.done[w.Name()]:
				return queue.Done, nil
			case w.Key == "other":
				return queue.None, nil
			case w.Key == "missing":
				return queue.Ready, fmt.Errorf("%w: there is no such file", queue.ErrBad)
			}
			return queue.Ready, nil
		},
		Begin:      func(w queue.Wanted) { b.begun = append(b.begun, w.Name()) },
		DeadLetter: func(_ context.Context, w queue.Wanted, _ error) error { b.dead = append(b.dead, w.Name()); return nil },
	}, 5*time.Second)
	b.state, _ = json.Marshal(d)
	return err
}

// during lets time pass, in many calls.
func (b *bench) during(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		require.NoError(b.t, b.step())
	}
}

func file(key string) string { return `{"file_path":"` + key + `"}` }

func at(t *testing.T, do func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		do(&bench{t: t, q: &queuetest.Broker{TTL: time.Minute}, state: []byte("{}"), done: map[string]bool{}})
	})
}

// A message is acknowledged after the mark, not before, however long the work lasts, and however often it is delivered.
func TestAcknowledgedAfterTheMark(t *testing.T) {
	at(t, func(b *bench) {
		for range 3 {
			b.q.Put(file("a"), nil)
		}
		b.during(9 * time.Minute)
		require.Equal(t, []string{"a"}, b.begun)
		require.Equal(t, 3, b.q.Len())
		require.Greater(t, b.q.Extended, 3*9)
		b.done["a"] = true
		b.during(time.Minute)
		require.Zero(t, b.q.Len())
		b.q.Put(file("a"), nil) // late
		b.during(10 * time.Second)
		require.Zero(t, b.q.Len())
		require.Equal(t, []string{"a"}, b.begun)
	})
}

// What a kill leaves is delivered again after its lease.
func TestKilledDesk(t *testing.T) {
	at(t, func(b *bench) {
		b.q.Put(file("a"), nil)
		b.during(time.Second)
		b.state = []byte("{}") // a kill
		b.during(30 * time.Second)
		require.Equal(t, []string{"a"}, b.begun)
		b.during(45 * time.Second)
		require.Equal(t, []string{"a", "a"}, b.begun)
	})
}

// What stays open begins again after pauses, and is left to the queue after three tries.
func TestOpenWorkBeginsAgain(t *testing.T) {
	at(t, func(b *bench) {
		b.q.Put(file("a"), nil)
		b.during(69 * time.Minute)
		require.Equal(t, []string{"a", "a", "a"}, b.begun)
		require.Equal(t, 1, b.q.Len())
		b.during(4 * time.Minute) // its lease ends, and it is delivered again
		require.Len(t, b.begun, 4)
		require.Empty(t, b.dead)
	})
}

// What names nothing to do is a dead letter after three tries; what is for nobody here is acknowledged.
func TestBadMessages(t *testing.T) {
	at(t, func(b *bench) {
		b.q.Put("garbage", nil)
		b.q.Put(file("missing"), nil)
		b.q.Put(file("other"), nil)
		b.q.Put(`{"Event":"s3:TestEvent"}`, nil)
		b.during(9 * time.Second)
		require.Equal(t, 2, b.q.Len())
		require.Empty(t, b.dead)
		b.during(3 * time.Second)
		require.Zero(t, b.q.Len())
		slices.Sort(b.dead)
		require.Len(t, b.dead, 2)
		require.Regexp(t, "^message [0-9a-f]{16}$", b.dead[0])
		require.Equal(t, "missing", b.dead[1])
		require.Empty(t, b.begun)
	})
}

// A message of several files is acknowledged after the last one.
func TestMessageOfSeveralFiles(t *testing.T) {
	at(t, func(b *bench) {
		b.q.Put(`{"Records":[{"eventName":"ObjectCreated:Put","s3":{"object":{"key":"a"}}},{"eventName":"ObjectCreated:Put","s3":{"object":{"key":"b"}}}]}`, nil)
		b.during(time.Second)
		require.Equal(t, []string{"a", "b"}, b.begun)
		b.done["a"] = true
		b.during(2 * time.Minute)
		require.Equal(t, 1, b.q.Len())
		b.done["b"] = true
		b.during(time.Minute)
		require.Zero(t, b.q.Len())
	})
}

// A store that does not answer loses nothing.
func TestStoreDoesNotAnswer(t *testing.T) {
	at(t, func(b *bench) {
		b.q.Put(file("a"), nil)
		b.lost = errors.New("503")
		for range 20 {
			require.ErrorContains(t, b.step(), "503")
			time.Sleep(time.Second)
		}
		b.lost = nil
		b.during(2 * time.Second)
		require.Equal(t, []string{"a"}, b.begun)
		require.Empty(t, b.dead)
		require.Equal(t, 1, b.q.Len())
	})
}
