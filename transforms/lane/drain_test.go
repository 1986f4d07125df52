package lane

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// idle makes a worker without store and web, which is enough for Drain.
func idle(t *testing.T, grace time.Duration) *Worker {
	w := &Worker{cfg: Config{Grace: grace}, Log: Logger("json", 12)}
	w.stopping, w.noMore = context.WithCancel(context.Background())
	w.ctx, w.cancel = context.WithCancel(t.Context())
	t.Cleanup(w.cancel)
	return w
}

// alone makes a lane that is alone in its bundle.
func alone(t *testing.T, w *Worker) *Lane {
	l := &Lane{w: w, ctx: t.Context(), bundle: w.NewBundle(false), progress: new(ledger.LaneProgress)}
	t.Cleanup(l.bundle.abandon)
	return l
}

func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func noFailure(t *testing.T) func(int, error) int {
	return func(_ int, err error) int { t.Error(err); return -1 }
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDrainRunsNAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		begin := time.Now()
		merged := 0
		Drain(t.Context(), alone(t, idle(t, 0)), 4, upTo(20), func(ctx context.Context, i int) int {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			_ = pause(ctx, time.Second)
			now.Add(-1)
			return i
		}, noFailure(t), func(i int) { merged += i }) // without a lock: the race detector would see another goroutine
		assert.True(t, most.Load() == 4 && merged == 190 && time.Since(begin) == 5*time.Second,
			"%d at once, sum %d, %v; want 4, 190, 5s", most.Load(), merged, time.Since(begin))
	})
}

func TestDrainOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		Drain(t.Context(), alone(t, idle(t, 0)), 4, upTo(0), func(context.Context, int) int { return 0 }, noFailure(t), func(int) { t.Error("merged") })
	})
}

// A result is merged while other visits are still running.
func TestDrainMergesWhileThePoolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		Drain(t.Context(), alone(t, idle(t, 0)), 2, upTo(4), func(ctx context.Context, i int) int {
			_ = pause(ctx, []time.Duration{time.Hour, 1, 2, 3}[i])
			return i
		}, noFailure(t), func(int) { at = append(at, time.Since(begin)) })
		assert.Equal(t, []time.Duration{1, 3, 6, time.Hour}, at, "merged at")
	})
}

func TestDrainPanicIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		Drain(t.Context(), alone(t, idle(t, 0)), 1, upTo(3), func(_ context.Context, i int) string {
			if i == 1 {
				panic("boom")
			}
			return fmt.Sprint(i)
		}, func(i int, err error) string {
			var p *PanicError
			assert.True(t, errors.As(err, &p) && p.Value == "boom" && len(p.Stack) != 0, err)
			return fmt.Sprintf("failed %d", i)
		}, func(s string) { got = append(got, s) })
		assert.Equal(t, []string{"0", "failed 1", "2"}, got)
	})
}

func TestDrainStops(t *testing.T) {
	cause := errors.New("the network is down")
	for _, tt := range []struct {
		name  string
		grace time.Duration
		cut   bool
		end   time.Duration
	}{
		{"within the grace time", time.Minute, false, 10 * time.Second},
		{"past the grace time", 2 * time.Second, true, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := idle(t, tt.grace)
				time.AfterFunc(5*time.Second, func() { w.Stop(cause); w.Stop(errors.New("a second cause")) })
				begin := time.Now()
				var begun, cut atomic.Int64
				merged := 0
				Drain(t.Context(), alone(t, w), 3, upTo(100), func(ctx context.Context, _ int) int {
					begun.Add(1)
					if pause(ctx, 10*time.Second) != nil {
						cut.Add(1)
					}
					return 0
				}, noFailure(t), func(int) { merged++ })
				assert.True(t, begun.Load() == 3 && merged == 3,
					"%d begun, %d merged; want 3 of each: nothing new begins, and all visits that began are merged", begun.Load(), merged)
				assert.True(t, (cut.Load() == 3) == tt.cut && time.Since(begin) == tt.end,
					"%d cut, ended after %v, want cut %v, after %v", cut.Load(), time.Since(begin), tt.cut, tt.end)
				assert.True(t, w.Stopped() && errors.Is(w.Cause(), cause) && !w.Proceed(t.Context()), "stopped %v by %v", w.Stopped(), w.Cause())
			})
		})
	}
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		merged := 0
		Drain(ctx, alone(t, idle(t, time.Minute)), 2, upTo(100), func(ctx context.Context, _ int) int { _ = pause(ctx, 2*time.Second); return 0 }, noFailure(t), func(int) { merged++ })
		assert.Equal(t, 6, merged)
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idle(t, 0)
		begin := time.Now()
		time.AfterFunc(time.Second, func() { w.paused.Store(true) })
		time.AfterFunc(time.Minute, func() { w.paused.Store(false) })
		merged := 0
		Drain(t.Context(), alone(t, w), 1, upTo(3), func(ctx context.Context, _ int) int {
			at := time.Since(begin)
			assert.True(t, at <= time.Second || at >= time.Minute, "a visit began %v after the start, during the pause", at)
			_ = pause(ctx, 2*time.Second)
			return 0
		}, noFailure(t), func(int) { merged++ })
		took := time.Since(begin)
		assert.True(t, merged == 3 && took >= time.Minute+2*time.Second && took <= time.Minute+5*time.Second, "%d merged after %v", merged, took)
	})
}

// What the ledger asks of a run reaches its worker at the next poll.
func TestControlIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idle(t, time.Second)
		w.cfg.RunID, w.Store = "run", memory(t)
		go w.watch()
		for _, action := range []ledger.Action{ledger.ActionPause, ledger.ActionRun, ledger.ActionCancel} {
			time.Sleep(time.Minute)
			require.NoError(t, ledger.WriteControl(t.Context(), w.Store, "run", ledger.Control{Action: action}))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got, want := w.paused.Load(), action == ledger.ActionPause; got != want {
				t.Errorf("asked to %s, the worker is paused: %t, want %t", action, got, want)
			}
			if got, want := w.Stopped(), action == ledger.ActionCancel; got != want {
				t.Errorf("asked to %s, the worker is stopped: %t, want %t", action, got, want)
			}
		}
	})
}
