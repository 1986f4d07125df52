package lease

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

const ttl = 30 * time.Second

// other is a holder on another host: only expiry ends its leases.
var other = Holder{Host: "b", PID: 7, BootID: "x", PIDNamespace: "y", RunID: "run-b", Job: "seed"}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func wantKeys(t *testing.T, s *storetest.Memory, want ...string) {
	t.Helper()
	assert.Equal(t, want, s.Keys(), "keys")
}

func TestLeaseIsHeldUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		a, err := Acquire(ctx, InStore(s), "run/seed", other, ttl)
		must(t, err)
		_, err = Acquire(ctx, InStore(s), "run/seed", CurrentHolder(), ttl)
		var inUse *InUseError
		require.True(t, errors.As(err, &inUse), "a second acquire: %v, want a InUseError", err)
		assert.True(t, inUse.Holder == other && inUse.ExpiresAt.Equal(time.Now().Add(ttl)), "in use: %+v", inUse)
		const want = "lease run/seed is held by run run-b (host b, pid 7) since 2000-01-01T00:00:00Z until 2000-01-01T00:00:30Z: wait until it ends, or stop it with `runs cancel run-b`; if its process was killed, try again when the lease has expired"
		assert.Equal(t, want, err.Error(), "message\n%s\nwant", err)

		time.Sleep(ttl - 1)
		_, err = Acquire(ctx, InStore(s), "run/seed", CurrentHolder(), ttl)
		assert.ErrorAs(t, err, &inUse, "just before expiry: %v, want a InUseError", err)
		time.Sleep(time.Nanosecond)
		b, err := Acquire(ctx, InStore(s), "run/seed", CurrentHolder(), ttl)
		must(t, err)
		assert.True(t, b.Epoch() == 2 && b.Valid() && !a.Valid(),
			"epoch %d, b valid %v, a valid %v; want 2, true, false", b.Epoch(), b.Valid(), a.Valid())
		wantKeys(t, s, "lease/run/seed/000002")
		assert.ErrorIs(t, a.Renew(ctx), ErrLost, "renewing a lost lease")
		must(t, a.Release(ctx)) // must not change b's
		wantKeys(t, s, "lease/run/seed/000002")
		must(t, b.Renew(ctx))
	})
}

// ahead is a place for a process whose machine's clock is a day ahead.
type ahead struct{ inStore }

func (a ahead) now() time.Time { return a.inStore.now().Add(24 * time.Hour) }

// A lease that a machine wrote whose clock is ahead does not outlast its holder by more than
// its time to live: who looks on that long without seeing a renewal acquires it.
func TestClockOfTheHolderIsAhead(t *testing.T) {
	for name, options := range map[string][]Option{
		"refuses": nil,
		"waits":   {Wait(WaitPolicy{Proceed: func(ctx context.Context) bool { return ctx.Err() == nil }, OnWait: func(*InUseError) {}})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := storetest.NewMemory(), t.Context()
				dead, err := Acquire(ctx, ahead{inStore{store: s}}, "seed", other, ttl)
				must(t, err)
				begun := time.Now()
				l, err := Acquire(ctx, InStore(s), "seed", CurrentHolder(), ttl, options...)
				must(t, err)
				took := time.Since(begun)
				assert.True(t, took > ttl && took <= ttl+2*maxPoll, "acquired after %v, want a little more than %v", took, ttl)
				assert.ErrorIs(t, dead.Renew(ctx), ErrLost, "the process was only suspended")
				must(t, l.Release(ctx))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		alive, err := Acquire(ctx, ahead{inStore{store: s}}, "seed", other, ttl)
		must(t, err)
		_, release := alive.Keep(ctx, func(e Event) { t.Errorf("%s: %v", e.Kind, e.Err) })
		begun := time.Now()
		_, err = Acquire(ctx, InStore(s), "seed", CurrentHolder(), ttl)
		var inUse *InUseError
		took := time.Since(begun)
		assert.True(t, errors.As(err, &inUse) && took <= ttl/3+2*maxPoll, "after %v: %v, want an InUseError within %v", took, err, ttl/3)
		must(t, release())
	})
}

func TestRenewSeesAHigherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		a, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		s.M["lease/l/000002"] = s.M["lease/l/000001"]
		if err := a.Renew(ctx); !errors.Is(err, ErrLost) || !a.Lost() {
			t.Errorf("renew: %v, lost %v; want ErrLost, true", err, a.Lost())
		}
		wantKeys(t, s, "lease/l/000002")
	})
}

// Another process may have read the old record before a late renewal was written.
// Only creating the next epoch shows who has the lease.
func TestLateRenewalIsATakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		a, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		s.Hook = func(op, _ string, before bool) {
			if op == "put" && before {
				time.Sleep(ttl)
			}
		}
		must(t, a.Renew(ctx))
		assert.True(t, a.Valid() && a.Epoch() == 2, "valid %v in epoch %d, want true in 2", a.Valid(), a.Epoch())
		wantKeys(t, s, "lease/l/000002")
	})
}

// In a store that ignores If-None-Match two processes can write the same epoch. The
// first one finds that at its next renewal.
func TestRenewSeesAnotherToken(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	a, err := Acquire(ctx, InStore(s), "l", other, ttl)
	must(t, err)
	s.M["lease/l/000001"] = strings.Replace(s.M["lease/l/000001"], a.body.Token, "another", 1)
	if err := a.Renew(ctx); !errors.Is(err, ErrLost) || !a.Lost() {
		t.Errorf("renew: %v, lost %v; want ErrLost, true", err, a.Lost())
	}
	assert.Contains(t, s.M["lease/l/000001"], "another", "the other's lease was overwritten")
}

// overwriting ignores If-None-Match, as some S3 servers do.
type overwriting struct{ store.Store }

func (s overwriting) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return s.Put(ctx, key, body, o)
}

func TestStoreThatIgnoresConditionsIsRefused(t *testing.T) {
	s := storetest.NewMemory()
	_, err := Acquire(t.Context(), InStore(overwriting{s}), "l", other, ttl)
	assert.ErrorIs(t, err, store.ErrNotExclusive, "acquire")
	wantKeys(t, s)
}

// stopping is a store whose caller is stopped as soon as it has created a lease.
type stopping struct {
	store.Store
	stop func()
}

func (s stopping) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	err := s.Store.PutIfAbsent(ctx, key, body, o)
	if err == nil && strings.HasPrefix(key, "lease/server/") {
		s.stop()
	}
	return err
}

func (s stopping) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(store.Object{}, err)
			return
		}
		s.Store.List(ctx, prefix)(yield)
	}
}

// A caller that is stopped while it acquires a lease has it, and can release it.
func TestStoppedWhileAcquiring(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, err := Acquire(ctx, InStore(stopping{storetest.NewMemory(), stop}), "server", CurrentHolder(), ttl)
	must(t, err)
	assert.True(t, ctx.Err() != nil && l.Valid(), "stopped: %v, valid: %v; want true, true", ctx.Err() != nil, l.Valid())
	must(t, l.Release(t.Context()))
}

func TestReleasedLeaseIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		a, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		must(t, a.Release(ctx))
		b, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		assert.True(t, b.Epoch() == 2 && a.Lost(), "epoch %d, a lost %v; want 2, true", b.Epoch(), a.Lost())
	})
}

// A lease of which nothing stays is acquired again after its release; a release that comes
// late removes nothing.
func TestReleasedLeaseIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		a, err := Acquire(ctx, InStoreWhileHeld(s), "l", other, ttl)
		must(t, err)
		must(t, a.Renew(ctx))
		wantKeys(t, s, "lease/l/000001")
		must(t, a.Release(ctx))
		wantKeys(t, s)
		b, err := Acquire(ctx, InStoreWhileHeld(s), "l", CurrentHolder(), ttl)
		must(t, err)
		assert.Equal(t, (Holder{}), b.Previous(), "the previous holder")
		time.Sleep(ttl - removeWithin)
		must(t, b.Release(ctx))
		wantKeys(t, s, "lease/l/000001")
		c, err := Acquire(ctx, InStoreWhileHeld(s), "l", other, ttl)
		must(t, err)
		must(t, b.Release(ctx))
		wantKeys(t, s, "lease/l/000002")
		must(t, c.Release(ctx))
		wantKeys(t, s)
	})
}

func TestNestedLeasesAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		_, err := Acquire(ctx, InStore(s), "seed/7", other, ttl)
		must(t, err)
		l, err := Acquire(ctx, InStore(s), "seed", other, ttl)
		must(t, err)
		assert.EqualValues(t, 1, l.Epoch(), "epoch")
	})
}

// A process lists the epochs and is then suspended, while others acquire and release
// the lease. Then it can still create an old epoch, but does not have the lease.
func TestStaleEpochIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		first := true
		s.Hook = func(op, key string, before bool) {
			if op == "create" && before && first {
				first = false
				s.M["lease/l/000003"] = `{"holder":{"host":"b","pid":7},"expires_at":"2000-01-01T00:00:30Z"}`
			}
		}
		_, err := Acquire(ctx, InStore(s), "l", Holder{}, ttl)
		var inUse *InUseError
		assert.True(t, errors.As(err, &inUse), "acquire: %v, want a InUseError", err)
		wantKeys(t, s, "lease/l/000003")
	})
}

// A store client repeats a create whose answer was lost, and gets "exists": the object
// is our own.
func TestOwnCreateIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		s.Ghost = func(op, _ string) error {
			if op == "create" {
				return store.ErrExist
			}
			return nil
		}
		l, err := Acquire(t.Context(), InStore(s), "l", other, ttl)
		must(t, err)
		assert.EqualValues(t, 1, l.Epoch(), "epoch")
	})
}

func TestRacingAcquirersHaveOneWinner(t *testing.T) {
	for _, before := range []string{"", `{"released":true}`, `{"expires_at":"2001-01-01T00:00:00Z"}`} {
		for range 200 {
			s := storetest.NewMemory()
			if before != "" {
				s.M["lease/l/000041"] = before
			}
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wg.Go(func() {
					_, errs[i] = Acquire(context.Background(), InStore(s), "l", other, ttl)
				})
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				var inUse *InUseError
				switch {
				case err == nil:
					won++
				case !errors.As(err, &inUse):
					t.Fatal(err)
				}
			}
			require.Equal(t, 1, won)
			require.Equal(t, 1, len(s.Keys()), "keys left: %v, want one", s.Keys())
		}
	}
}

// heard collects the events of a heartbeat.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) tell(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) kinds() (kinds []eventKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func wantKinds(t *testing.T, h *heard, want ...eventKind) {
	t.Helper()
	assert.Equal(t, want, h.kinds(), "events")
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		l, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		var h heard
		within, release := l.Keep(ctx, h.tell)
		time.Sleep(10*ttl + ttl/6) // between two renewals, so that none races with the next lines
		must(t, Check(within))
		// The lease survives one failed renewal.
		down := errors.New("store is down")
		s.Fail(down)
		time.Sleep(ttl / 3)
		s.Fail(nil)
		time.Sleep(ttl)
		must(t, Check(within))
		wantKinds(t, &h)

		// While the store is down for longer the work waits; then it resumes.
		s.Fail(down)
		began := time.Now()
		time.Sleep(ttl)
		assert.True(t, !sure(within) && !l.Valid() && !l.Lost(), "sure %v, valid %v, lost %v; want false", sure(within), l.Valid(), l.Lost())
		time.AfterFunc(ttl, func() { s.Fail(nil) })
		must(t, Check(within))
		waited := time.Since(began)
		assert.True(t, waited >= 2*ttl && waited <= 2*ttl+2*time.Second, "the work continued after %v, want soon after %v", waited, 2*ttl)
		synctest.Wait()
		wantKinds(t, &h, Unsure, Renewed)
		assert.True(t, errors.Is(h.events[0].Err, down) && h.events[1].For >= ttl, "events %+v", h.events)

		// But it does not wait for ever.
		s.Fail(down)
		time.Sleep(12 * ttl)
		synctest.Wait()
		if err := Check(within); !errors.Is(err, ErrLost) || !errors.Is(err, down) || !errors.Is(context.Cause(within), ErrLost) {
			t.Errorf("check: %v, cause %v; want ErrLost, with the store's error", err, context.Cause(within))
		}
		wantKinds(t, &h, Unsure, Renewed, Unsure, Lost)
		s.Fail(nil)
		must(t, release())
		_, err = Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
	})
}

// A process that was suspended until its lease expired sends and writes nothing when
// it resumes, before it knows whether another process has the lease.
func TestSuspended(t *testing.T) {
	for name, taken := range map[string]bool{"taken over": true, "not taken over": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := storetest.NewMemory(), t.Context()
				l, err := Acquire(ctx, InStore(s), "l", other, ttl)
				must(t, err)
				suspended := &asleep{Place: l.place}
				l.place = suspended
				var h heard
				within, release := l.Keep(ctx, h.tell)
				synctest.Wait() // the heartbeat sleeps while the machine does
				if taken {
					s.M["lease/l/000002"] = `{"holder":{"host":"c"},"token":"x","expires_at":"2100-01-01T00:00:00Z"}`
				}
				suspended.by = ttl
				assert.False(t, sure(within), "it is sure of its lease when it wakes up")
				err = Check(within)
				synctest.Wait()
				if taken {
					assert.True(t, errors.Is(err, ErrLost) && within.Err() != nil, "check: %v, want ErrLost", err)
					wantKinds(t, &h, Unsure, Lost)
					wantKeys(t, s, "lease/l/000001", "lease/l/000002")
				} else {
					must(t, err)
					wantKinds(t, &h, Unsure, Renewed)
					wantKeys(t, s, "lease/l/000002")
				}
				must(t, release())
			})
		})
	}
}

// asleep advances the clocks of a machine while nothing runs.
type asleep struct {
	Place
	by time.Duration
}

func (p *asleep) now() time.Time { return p.Place.now().Add(p.by) }

// While a machine is suspended its monotonic clock may stand still.
func TestWallClockCounts(t *testing.T) {
	l, err := Acquire(t.Context(), InStore(storetest.NewMemory()), "l", other, ttl)
	must(t, err)
	wall := l.validUntil
	l.validUntil = l.validUntil.Round(0).Add(-ttl) // the wall clock's part is over
	assert.False(t, l.Valid(), "valid although the wall clock says that it expired")
	l.validUntil = wall
	assert.True(t, l.Valid(), "not valid")
}

func TestCheckWaitsForAllLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		run, err := Acquire(ctx, InStore(s), "run", other, ttl)
		must(t, err)
		lane, err := Acquire(ctx, InStore(s), "lane", other, ttl)
		must(t, err)
		within := With(With(ctx, run), lane)
		must(t, Check(within))
		must(t, run.Release(ctx))
		if err := Check(within); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "lease run") {
			t.Errorf("check: %v, want that the outer one is lost", err)
		}
		assert.ErrorIs(t, Check(ctx, lane, run), ErrLost, "check")
		must(t, Check(exempt(within)))
	})
}

func TestKeepStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		l, err := Acquire(ctx, InStore(s), "l", other, ttl)
		must(t, err)
		_, release := l.Keep(ctx, func(e Event) { t.Errorf("events %v", e) })
		time.Sleep(ttl)
		must(t, release())
		before := s.M["lease/l/000001"]
		assert.True(t, strings.Contains(before, `"released": true`) && l.Lost(), "not released: %s", before)
		time.Sleep(ttl)
		assert.Equal(t, before, s.M["lease/l/000001"], "renewed after its release")
	})
}

func TestDeadHolder(t *testing.T) {
	self := CurrentHolder()
	if self.BootID == "" {
		t.Skip("there is no /proc here, so only expiry counts")
	}
	child := exec.Command(os.Args[0], "-test.run=^$")
	must(t, child.Run())
	zombie := exec.Command(os.Args[0], "-test.run=^$")
	out, err := zombie.StdoutPipe()
	must(t, err)
	must(t, zombie.Start())
	for b := make([]byte, 512); err == nil; { // its end of the pipe closes as it ends
		_, err = out.Read(b)
	}
	defer func() { must(t, zombie.Wait()) }()

	with := func(change func(*Holder)) Holder { h := self; change(&h); return h }
	for name, c := range map[string]struct {
		h    Holder
		dead bool
	}{
		"ourselves":         {self, false},
		"pid used again":    {with(func(h *Holder) { h.ProcessStart++ }), true},
		"gone":              {with(func(h *Holder) { h.PID = child.Process.Pid }), true},
		"other host":        {with(func(h *Holder) { h.ProcessStart++; h.Host = "b" }), false},
		"other boot":        {with(func(h *Holder) { h.ProcessStart++; h.BootID = "b" }), false},
		"other namespace":   {with(func(h *Holder) { h.ProcessStart++; h.PIDNamespace = "b" }), false},
		"foreign, no boot":  {with(func(h *Holder) { h.ProcessStart++; h.BootID = "" }), false},
		"ended, not reaped": {with(func(h *Holder) { h.PID = zombie.Process.Pid }), true},
	} {
		assert.Equal(t, c.dead, c.h.dead(self, "/proc"), "%s: dead", name)
		s := storetest.NewMemory()
		_, err := Acquire(t.Context(), InStore(s), "l", c.h, time.Hour)
		must(t, err)
		_, err = Acquire(t.Context(), InStore(s), "l", self, time.Hour)
		assert.Equal(t, c.dead, err == nil, "%s: taken over", name)
		_, err = (request{place: InStore(s), holder: self, ttl: time.Hour, proc: t.TempDir(), seen: map[string]sighting{}}).tryAcquire(t.Context(), "l")
		assert.Error(t, err, "%s: taken over without /proc, want to wait for expiry", name)
	}
}

func TestParseStat(t *testing.T) {
	start, state, err := parseStat("42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20")
	assert.True(t, start == 987654 && state == "S" && err == nil, "got %d %q %v, want 987654 S", start, state, err)
	_, _, err = parseStat("42 (a")
	assert.Error(t, err, "a cut line is accepted")
}

func TestBrokenLease(t *testing.T) {
	for _, body := range []string{"", "{", "[]", "{}", "null", `{"expires_at":5}`} {
		s := storetest.NewMemory()
		s.M["lease/l/000001"] = body
		_, err := Acquire(t.Context(), InStore(s), "l", other, ttl)
		if err == nil || !strings.Contains(err.Error(), "lease/l/000001: not a lease") || !strings.Contains(err.Error(), "delete that object") {
			t.Errorf("%q: %v, want an error that names the object and says what to do", body, err)
		}
	}
}
