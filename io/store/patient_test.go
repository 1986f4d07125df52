package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/fault"
)

// failing fails the writes of its keys.
type failing struct {
	Store
	fails map[string]func() error
}

func (s failing) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	if fails := s.fails[key]; fails != nil {
		if err := fails(); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, key, body, o)
}

// A run waits for what our side lacks. After a minute it stops with that word, unless the
// store takes other keys meanwhile.
func TestPatient(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		lasts  time.Duration
		others bool // are written meanwhile
		first  bool // nothing was written before
		stops  bool
		fails  bool
	}{
		"full, then not":             {err: syscall.ENOSPC, lasts: 40 * time.Second},
		"full":                       {err: syscall.ENOSPC, lasts: time.Hour, stops: true},
		"full, though others fit":    {err: syscall.ENOSPC, lasts: time.Hour, others: true, stops: true},
		"read-only, then not":        {err: syscall.EROFS, lasts: 20 * time.Second},
		"the disk fails":             {err: syscall.EIO, lasts: time.Hour, stops: true},
		"no descriptors, then some":  {err: syscall.EMFILE, lasts: 20 * time.Second},
		"down, then up":              {err: status(503), lasts: 40 * time.Second},
		"down":                       {err: status(503), lasts: time.Hour, stops: true},
		"one key is refused":         {err: status(500), lasts: time.Hour, others: true, fails: true},
		"keys refused, then allowed": {err: status(403), lasts: 30 * time.Second},
		"keys refused":               {err: status(403), lasts: time.Hour, stops: true},
		"never allowed":              {err: status(403), lasts: time.Hour, first: true, fails: true},
		"the bucket is gone":         {err: status(404), lasts: time.Hour, stops: true},
		"the folder is gone":         {err: ErrGone, lasts: time.Hour, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var calls Calls
				var waits, stops int
				calls.Shortages = fault.Watch{Waits: func(*fault.Shortage) { waits++ }, Short: func(*fault.Shortage) { stops++ }}
				s := failing{openMemory(t.Name()), map[string]func() error{}}
				patient := Counted(s, &calls)
				if !c.first {
					require.NoError(t, Write(t.Context(), patient, "before", nil, PutOptions{}))
				}
				s.fails["key"] = func() error {
					if c.others {
						require.NoError(t, patient.Put(t.Context(), "other", bytes.NewReader(nil), PutOptions{}))
					}
					if time.Since(began) < c.lasts {
						return c.err
					}
					return nil
				}
				err := Write(t.Context(), patient, "key", []byte("x"), PutOptions{})
				require.Equal(t, c.stops, fault.Stops(err), "%v", err)
				require.Equal(t, c.stops, stops == 1)
				if !c.stops && !c.fails {
					require.NoError(t, err)
					require.Equal(t, 1, waits)
					return
				}
				require.ErrorIs(t, err, c.err)
				if c.first {
					require.Zero(t, time.Since(began))
				} else {
					require.InDelta(t, fault.MaxWait.Seconds(), time.Since(began).Seconds(), 16)
				}
			})
		})
	}
}

// Without a run, a command hears soon of a store that is down, and at once of what a person
// must mend.
func TestImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, most := range map[error]time.Duration{syscall.ENOSPC: 3 * time.Second, syscall.EROFS: 0, ErrGone: 0} {
			began := time.Now()
			require.ErrorIs(t, Retry(t.Context(), func() error { return err }), err)
			require.LessOrEqual(t, time.Since(began), most, "%v", err)
		}
		require.False(t, fault.Stops(errors.New("x")))
	})
}

// Calls that have less time than a minute, as renewals of a lease, notice an outage as well.
func TestPatientInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls Calls
		stops := 0
		calls.Shortages.Short = func(*fault.Shortage) { stops++ }
		s := failing{openMemory(t.Name()), map[string]func() error{"key": func() error { return syscall.ENOSPC }}}
		write := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			return Write(ctx, Counted(s, &calls), "key", nil, PutOptions{})
		}
		for range 3 {
			require.False(t, fault.Stops(write()))
		}
		require.True(t, fault.Stops(write()))
		require.Equal(t, 1, stops)
		time.Sleep(time.Minute) // nothing is written
		require.False(t, fault.Stops(write()))
	})
}
