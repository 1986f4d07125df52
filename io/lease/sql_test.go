package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/lease"
)

func run(id string) lease.Holder { return lease.Holder{Host: "elsewhere", PID: 1, RunID: id} }

func TestInDB(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, p := t.Context(), lease.InDB(d)
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		d.Now = func() time.Time { return now }
		const ttl = time.Minute

		a, err := lease.Acquire(ctx, p, "site/matter", run("a"), ttl)
		require.NoError(t, err)
		assert.EqualValues(t, 1, a.Epoch())
		_, err = lease.Acquire(ctx, p, "site/other", run("b"), ttl)
		require.NoError(t, err, "another name is free")

		_, err = lease.Acquire(ctx, p, "site/matter", run("b"), ttl)
		var inUse *lease.InUseError
		require.ErrorAs(t, err, &inUse)
		assert.Equal(t, lease.InUseError{Name: "site/matter", Holder: run("a"), AcquiredAt: now, ExpiresAt: now.Add(ttl), Epoch: 1, TTL: ttl}, *inUse)

		now = now.Add(40 * time.Second)
		assert.True(t, a.Valid())
		require.NoError(t, a.Renew(ctx))
		now = now.Add(40 * time.Second)
		_, err = lease.Acquire(ctx, p, "site/matter", run("b"), ttl)
		require.ErrorAs(t, err, &inUse, "it was renewed")

		now = now.Add(15 * time.Second)
		assert.False(t, a.Valid(), "it must stop before another may take it")
		_, err = lease.Acquire(ctx, p, "site/matter", run("b"), ttl)
		require.ErrorAs(t, err, &inUse)
		require.NoError(t, a.Renew(ctx), "nobody took it")
		assert.EqualValues(t, 2, a.Epoch())
		now = now.Add(time.Minute)
		b, err := lease.Acquire(ctx, p, "site/matter", run("b"), ttl)
		require.NoError(t, err)
		assert.EqualValues(t, 3, b.Epoch())
		assert.Equal(t, run("a"), b.Previous())
		assert.ErrorIs(t, a.Renew(ctx), lease.ErrLost)
		assert.True(t, a.Lost())
		require.NoError(t, a.Release(ctx), "of a lost lease")
		assert.True(t, b.Valid())
		require.NoError(t, b.Renew(ctx), "the release of a lost lease took it away")

		require.NoError(t, b.Release(ctx))
		assert.False(t, b.Valid())
		assert.ErrorIs(t, b.Renew(ctx), lease.ErrLost)
		c, err := lease.Acquire(ctx, p, "site/matter", run("a"), ttl)
		require.NoError(t, err, "it was released")
		assert.EqualValues(t, 4, c.Epoch())
	})
}

// evict makes Acquire treat a run as dead.
func evict(id string) lease.Option {
	return lease.EvictIf(func(_ context.Context, h lease.Holder) bool { return h.RunID == id })
}

func TestEvict(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := lease.InDB(d)
		dead, err := lease.Acquire(t.Context(), p, "x", run("dead"), time.Hour)
		require.NoError(t, err)
		var inUse *lease.InUseError
		_, err = lease.Acquire(t.Context(), p, "x", run("next"), time.Hour)
		require.ErrorAs(t, err, &inUse)
		next, err := lease.Acquire(t.Context(), p, "x", run("next"), time.Hour, evict("dead"))
		require.NoError(t, err)
		assert.ErrorIs(t, dead.Renew(t.Context()), lease.ErrLost)
		_, err = lease.Acquire(t.Context(), p, "x", run("third"), time.Hour, evict("dead"))
		require.ErrorAs(t, err, &inUse, "that holding is over: the next one lives")
		assert.True(t, next.Valid())
	})
}

// The lease of a dead process on this machine is taken over at once.
func TestDeadProcessInDB(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, child.Run())
	holder := lease.CurrentHolder()
	if holder.BootID == "" {
		t.Skip("there is no /proc here, so only expiry counts")
	}
	holder.PID, holder.RunID = child.Process.Pid, "dead"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := lease.Acquire(t.Context(), lease.InDB(d), "x", holder, time.Hour)
		require.NoError(t, err)
		next, err := lease.Acquire(t.Context(), lease.InDB(d), "x", lease.CurrentHolder(), time.Hour)
		require.NoError(t, err)
		assert.Equal(t, holder, next.Previous())
		_, err = lease.Acquire(t.Context(), lease.InDB(d), "x", run("third"), time.Hour)
		var inUse *lease.InUseError
		require.ErrorAs(t, err, &inUse, "this process lives")
	})
}

// Rows of old versions have a run's id in the column holder.
func TestHolderOfAnEarlierVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, err := lease.Acquire(t.Context(), lease.InDB(d), "x", run("a"), time.Hour)
		require.NoError(t, err)
		_, err = d.ExecContext(t.Context(), `UPDATE leases SET holder = '20261121-143524-123-9f3a1c2e'`)
		require.NoError(t, err)
		_, err = lease.Acquire(t.Context(), lease.InDB(d), "x", run("b"), time.Hour)
		var inUse *lease.InUseError
		require.ErrorAs(t, err, &inUse)
		assert.Equal(t, "20261121-143524-123-9f3a1c2e", inUse.Holder.RunID)
		assert.ErrorIs(t, a.Renew(t.Context()), lease.ErrLost)
	})
}

// A holder whose machine was suspended finds at its next renewal that the lease is lost.
func TestTakenOverUnnoticed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		d.Now = func() time.Time { return now }
		a, err := lease.Acquire(t.Context(), lease.InDB(d), "x", run("a"), time.Minute)
		require.NoError(t, err)
		now = now.Add(time.Hour)
		_, err = lease.Acquire(t.Context(), lease.InDB(d), "x", run("b"), time.Minute)
		require.NoError(t, err)
		now = now.Add(-time.Hour)
		assert.True(t, a.Valid())
		assert.ErrorIs(t, a.Renew(t.Context()), lease.ErrLost)
		assert.True(t, a.Lost())
	})
}

func TestRaceInDB(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const holders = 8
		won := make(chan string, holders)
		var all sync.WaitGroup
		for i := range holders {
			all.Go(func() {
				_, err := lease.Acquire(t.Context(), lease.InDB(d), "x", run(fmt.Sprint(i)), time.Minute)
				var inUse *lease.InUseError
				if err == nil {
					won <- fmt.Sprint(i)
				} else if !errors.As(err, &inUse) {
					t.Errorf("taking: %v", err)
				}
			})
		}
		all.Wait()
		assert.Len(t, won, 1)
	})
}

// A transaction is rolled back if its lease was lost after it began.
func TestNothingIsCommittedWithoutALease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Now()
		d.Now = func() time.Time { return now }
		d.Allow = lease.Allow()
		p := lease.InDB(d)
		a, err := lease.Acquire(t.Context(), p, "x", run("a"), time.Minute)
		require.NoError(t, err)
		within := lease.With(t.Context(), a)
		_, err = d.ExecContext(within, `CREATE TABLE kept (n INTEGER)`)
		require.NoError(t, err)
		tries := 0
		insert := func(tx *sql.Tx) error {
			if tries++; tries == 1 {
				now = now.Add(2 * time.Minute) // the process was suspended here
			}
			_, err := tx.ExecContext(within, `INSERT INTO kept VALUES ($1)`, tries)
			return err
		}
		require.NoError(t, d.Tx(within, insert), "nobody took the lease over")
		var n int
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT n FROM kept`).Scan(&n))
		assert.Equal(t, 2, n, "the first try was committed while the lease was unsure")

		now = now.Add(2 * time.Minute)
		_, err = lease.Acquire(t.Context(), p, "x", run("b"), time.Minute)
		require.NoError(t, err)
		require.ErrorIs(t, d.Tx(within, insert), lease.ErrLost)
		_, err = d.ExecContext(within, `DELETE FROM kept`)
		require.ErrorIs(t, err, lease.ErrLost)
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT n FROM kept`).Scan(&n))
	})
}

func TestKeepInDB(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const ttl = 300 * time.Millisecond
		a, err := lease.Acquire(t.Context(), lease.InDB(d), "x", run("a"), ttl)
		require.NoError(t, err)
		within, release := a.Keep(t.Context(), func(lease.Event) {})
		defer func() { assert.NoError(t, release()) }()
		_, err = d.ExecContext(t.Context(), `UPDATE leases SET epoch = epoch + 1, holder = 'b'`) // taken over
		require.NoError(t, err)
		<-within.Done()
		assert.ErrorIs(t, lease.Check(within), lease.ErrLost)
	})
}

// The database refuses writes under a lease that another process has acquired, also
// when this process does not know that yet.
func TestFence(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := lease.InDB(d)
		a, err := lease.Acquire(t.Context(), p, "x", run("a"), time.Hour)
		require.NoError(t, err)
		lost := make(chan error, 1)
		within, release := a.Keep(t.Context(), func(e lease.Event) { lost <- e.Err })
		defer func() { assert.NoError(t, release()) }()
		under := lease.With(t.Context(), a) // a loss does not end this context
		_, err = d.ExecContext(under, `CREATE TABLE kept (n INTEGER)`)
		require.NoError(t, err)
		insert := func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO kept VALUES (1)`)
			return err
		}
		require.NoError(t, d.Tx(under, insert))
		require.NoError(t, a.Renew(t.Context()))
		require.NoError(t, d.Tx(under, insert), "after a renewal")

		var inUse *lease.InUseError
		_, err = lease.Acquire(t.Context(), p, "x", run("b"), time.Hour, evict("z"))
		require.ErrorAs(t, err, &inUse)
		_, err = lease.Acquire(t.Context(), p, "x", run("b"), time.Hour, evict("a"))
		require.NoError(t, err)
		require.True(t, a.Valid(), "by its own clock")
		require.ErrorIs(t, d.Tx(under, insert), lease.ErrLost)
		_, err = d.ExecContext(under, `DELETE FROM kept`)
		require.ErrorIs(t, err, lease.ErrLost)
		var n int
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM kept`).Scan(&n))
		assert.Equal(t, 2, n)
		require.ErrorIs(t, <-lost, lease.ErrLost, "the heartbeat looks at once, not at the next third of an hour")
		<-within.Done()

		require.NoError(t, d.Tx(t.Context(), insert), "what needs no lease is written")
	})
}

// A take-over waits for a transaction that has checked the lease. A transaction that
// checks it after a take-over is rolled back.
func TestFenceInPostgres(t *testing.T) {
	d, err := db.Open(t.Context(), dbtest.Postgres(t))
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	p := lease.InDB(d)
	a, err := lease.Acquire(t.Context(), p, "x", run("a"), time.Hour)
	require.NoError(t, err)
	within := lease.With(t.Context(), a)
	_, err = d.ExecContext(within, `CREATE TABLE kept (n INTEGER)`)
	require.NoError(t, err)
	tries := 0
	require.NoError(t, d.Tx(within, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(within, `INSERT INTO kept VALUES (1)`)
		if tries++; tries == 1 {
			err = errors.Join(err, a.Renew(t.Context())) // its heartbeat, meanwhile
		}
		return err
	}))
	assert.Equal(t, 2, tries, "it was made again under the renewed lease")
	require.ErrorIs(t, d.Tx(within, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(within, `INSERT INTO kept VALUES (2)`)
		var inUse *lease.InUseError
		if _, taken := lease.Acquire(t.Context(), p, "x", run("b"), time.Hour, evict("a")); !errors.As(taken, &inUse) { // at the second try b has it
			err = errors.Join(err, taken)
		}
		return err
	}), lease.ErrLost)
	var n int
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM kept`).Scan(&n))
	assert.Equal(t, 1, n)
}
