package ledger

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

const ttl = 30 * time.Second

// other is a holder on another host: only expiry ends its leases.
var other = Holder{Host: "b", PID: 7, BootID: "x", PIDNamespace: "y", RunID: "run-b", Job: "seed"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKeys(t *testing.T, s *memory, want ...string) {
	t.Helper()
	if got := s.keys(); !slices.Equal(got, want) {
		t.Errorf("keys are %v, want %v", got, want)
	}
}

func TestLeaseIsHeldUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		a, err := Acquire(ctx, s, "run/seed", other, ttl)
		must(t, err)
		_, err = Acquire(ctx, s, "run/seed", CurrentHolder(), ttl)
		var held *HeldError
		if !errors.As(err, &held) {
			t.Fatalf("a second acquire: %v, want a HeldError", err)
		}
		if held.Holder != other || !held.ExpiresAt.Equal(time.Now().Add(ttl)) {
			t.Errorf("held: %+v", held)
		}
		const want = "lease run/seed is held by run run-b (host b, pid 7) since 2000-01-01T00:00:00Z until 2000-01-01T00:00:30Z: wait until it ends, or stop it with `runs cancel run-b`"
		if err.Error() != want {
			t.Errorf("message\n%s\nwant\n%s", err, want)
		}

		time.Sleep(ttl - 1)
		if _, err = Acquire(ctx, s, "run/seed", CurrentHolder(), ttl); !errors.As(err, &held) {
			t.Errorf("just before expiry: %v, want a HeldError", err)
		}
		time.Sleep(time.Nanosecond)
		b, err := Acquire(ctx, s, "run/seed", CurrentHolder(), ttl)
		must(t, err)
		if b.Epoch() != 2 || b.Lost() || !a.Lost() {
			t.Errorf("epoch %d, b lost %v, a lost %v; want 2, false, true", b.Epoch(), b.Lost(), a.Lost())
		}
		wantKeys(t, s, "lease/run/seed/000002")
		if err := a.Renew(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("renewing a lost lease: %v, want ErrLost", err)
		}
		must(t, a.Release(ctx)) // must not touch b's
		wantKeys(t, s, "lease/run/seed/000002")
		must(t, b.Renew(ctx))
	})
}

func TestRenewSeesAHigherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		a, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		s.m["lease/l/000002"] = s.m["lease/l/000001"]
		if err := a.Renew(ctx); !errors.Is(err, ErrLost) || !a.Lost() {
			t.Errorf("renew: %v, lost %v; want ErrLost, true", err, a.Lost())
		}
		wantKeys(t, s, "lease/l/000002")
	})
}

func TestRenewalThatCameTooLateIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		a, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		s.hook = func(op, _ string, before bool) {
			if op == "put" && before {
				time.Sleep(ttl)
			}
		}
		if err := a.Renew(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("renew: %v, want ErrLost", err)
		}
	})
}

func TestReleasedLeaseIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		a, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		must(t, a.Release(ctx))
		b, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		if b.Epoch() != 2 || !a.Lost() {
			t.Errorf("epoch %d, a lost %v; want 2, true", b.Epoch(), a.Lost())
		}
	})
}

func TestNestedLeasesAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		_, err := Acquire(ctx, s, "seed/7", other, ttl)
		must(t, err)
		l, err := Acquire(ctx, s, "seed", other, ttl)
		must(t, err)
		if l.Epoch() != 1 {
			t.Errorf("epoch %d, want 1", l.Epoch())
		}
	})
}

// A process that lists, then sleeps while others come and go, must not believe
// in the epoch it could still create.
func TestStaleEpochIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		first := true
		s.hook = func(op, key string, before bool) {
			if op == "create" && before && first {
				first = false
				s.m["lease/l/000003"] = `{"holder":{"host":"b","pid":7},"expires_at":"2000-01-01T00:00:30Z"}`
			}
		}
		_, err := Acquire(ctx, s, "l", Holder{}, ttl)
		var held *HeldError
		if !errors.As(err, &held) {
			t.Errorf("acquire: %v, want a HeldError", err)
		}
		wantKeys(t, s, "lease/l/000003")
	})
}

// A store client that repeats a create whose answer was lost is told that the
// object exists: it is our own.
func TestOwnCreateIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		s.ghost = func(op, _ string) error {
			if op == "create" {
				return store.ErrExist
			}
			return nil
		}
		l, err := Acquire(t.Context(), s, "l", other, ttl)
		must(t, err)
		if l.Epoch() != 1 {
			t.Errorf("epoch %d, want 1", l.Epoch())
		}
	})
}

func TestRacingAcquirersHaveOneWinner(t *testing.T) {
	for _, before := range []string{"", `{"released":true}`, `{"expires_at":"2001-01-01T00:00:00Z"}`} {
		for range 200 {
			s := newMemory()
			if before != "" {
				s.m["lease/l/000041"] = before
			}
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wg.Go(func() {
					_, errs[i] = Acquire(context.Background(), s, "l", other, ttl)
				})
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				var held *HeldError
				switch {
				case err == nil:
					won++
				case !errors.As(err, &held):
					t.Fatal(err)
				}
			}
			if won != 1 {
				t.Fatalf("%d winners after %q, want 1", won, before)
			}
			if n := len(s.keys()); n != 1 {
				t.Fatalf("keys left: %v, want one", s.keys())
			}
		}
	}
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		l, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		var lost error
		stop := l.Keep(ctx, func(err error) { lost = err })
		time.Sleep(10*ttl + ttl/6) // between two beats, so that none races with what follows
		if l.Lost() || lost != nil {
			t.Fatalf("lost %v (%v) under heartbeat", l.Lost(), lost)
		}
		// One failed beat is made up for.
		down := errors.New("store is down")
		s.fail(down)
		time.Sleep(ttl / 3)
		s.fail(nil)
		time.Sleep(ttl)
		if l.Lost() || lost != nil {
			t.Fatalf("lost %v (%v) after one failed beat", l.Lost(), lost)
		}
		s.fail(down)
		time.Sleep(ttl)
		synctest.Wait()
		if !l.Lost() || !errors.Is(lost, ErrLost) || !errors.Is(lost, down) {
			t.Errorf("lost %v (%v), want true, with ErrLost and the store's error", l.Lost(), lost)
		}
		stop()
	})
}

func TestKeepStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemory(), t.Context()
		l, err := Acquire(ctx, s, "l", other, ttl)
		must(t, err)
		stop := l.Keep(ctx, func(err error) { t.Errorf("onLost after stop: %v", err) })
		time.Sleep(ttl)
		stop()
		before := s.m["lease/l/000001"]
		time.Sleep(ttl)
		if s.m["lease/l/000001"] != before {
			t.Error("renewed after stop")
		}
		if !l.Lost() {
			t.Error("not lost by time alone")
		}
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
		if got := c.h.dead(self, "/proc"); got != c.dead {
			t.Errorf("%s: dead is %v, want %v", name, got, c.dead)
		}
		s := newMemory()
		_, err := Acquire(t.Context(), s, "l", c.h, time.Hour)
		must(t, err)
		_, err = Acquire(t.Context(), s, "l", self, time.Hour)
		if taken := err == nil; taken != c.dead {
			t.Errorf("%s: taken over is %v (%v), want %v", name, taken, err, c.dead)
		}
		if _, err = acquire(t.Context(), s, "l", self, time.Hour, t.TempDir()); err == nil {
			t.Errorf("%s: taken over without /proc, want to wait for expiry", name)
		}
	}
}

func TestParseStat(t *testing.T) {
	start, state, err := parseStat("42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20")
	if start != 987654 || state != "S" || err != nil {
		t.Errorf("got %d %q %v, want 987654 S", start, state, err)
	}
	if _, _, err := parseStat("42 (a"); err == nil {
		t.Error("a cut line is accepted")
	}
}

func TestBrokenLease(t *testing.T) {
	for _, body := range []string{"", "{", "[]", "{}", "null", `{"expires_at":5}`} {
		s := newMemory()
		s.m["lease/l/000001"] = body
		_, err := Acquire(t.Context(), s, "l", other, ttl)
		if err == nil || !strings.Contains(err.Error(), "lease/l/000001: not a lease") || !strings.Contains(err.Error(), "delete that object") {
			t.Errorf("%q: %v, want an error that names the object and says what to do", body, err)
		}
	}
}
