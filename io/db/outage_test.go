package db

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/fault"
)

// A renewal of a lease has 15 s: an outage counts from the first call that met it, until one is answered.
func TestOutageOverCalls(t *testing.T) {
	for _, answered := range []int{-1, 2} { // the call with an answer
		synctest.Test(t, func(t *testing.T) {
			began, gaveUp := time.Now(), time.Duration(0)
			d := &DB{Shortages: fault.Watch{Short: func(*fault.Shortage) { gaveUp = time.Since(began) }}}
			for i := 0; i < 6 && gaveUp == 0; i++ {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				err := d.retry(ctx, func() error {
					if i == answered {
						return nil
					}
					return io.EOF
				})
				cancel()
				require.Equal(t, i == answered, err == nil)
				require.Equal(t, gaveUp > 0, errors.As(err, new(*fault.Shortage)))
			}
			if answered < 0 {
				require.InDelta(t, fault.MaxWait.Seconds(), gaveUp.Seconds(), 1)
			} else {
				require.Zero(t, gaveUp)
			}
		})
	}
}
