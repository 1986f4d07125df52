package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrLost means that a lease is no longer ours: another holder took it over, or
// it was not renewed in time. The work under it must stop at once.
var ErrLost = errors.New("lease lost")

// HeldError means that a living holder has the lease: wait until it expires, or
// stop that run.
type HeldError struct {
	Name      string
	Holder    string
	ExpiresAt time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %s is held by %s until %s: wait until it ends, or stop that run", e.Name, e.Holder, e.ExpiresAt.Format(time.RFC3339))
}

// Lease is the right to do one piece of work until it expires, is released, or
// is lost. Copies are the same lease. Its methods may be called from several
// goroutines.
type Lease struct {
	db      *DB
	name    string
	epoch   int64
	ttl     time.Duration
	expires *atomic.Int64 // micros; 0: given back or lost
}

// Lease takes the lease name for ttl. When it is held, also by the same holder,
// the error is a *HeldError; once it is released or expired one of several
// that race takes it over. holder says to a person who that is: a run's id.
//
// Expiry compares the clocks of two machines, so ttl must be well over the
// skew between them (seconds, where clocks are synchronised).
func (d *DB) Lease(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error) {
	if name == "" || ttl <= 0 {
		return Lease{}, fmt.Errorf("taking lease %q for %v: want a name and a time", name, ttl)
	}
	if err := d.prepareLeases(ctx); err != nil {
		return Lease{}, err
	}
	l := Lease{db: d, name: name, ttl: ttl, expires: new(atomic.Int64)}
	err := d.Tx(ctx, func(tx *sql.Tx) error {
		now := d.Now()
		until := Micros(now.Add(ttl))
		err := tx.QueryRowContext(ctx, `
			INSERT INTO leases (name, holder, epoch, acquired_at, expires_at) VALUES ($1, $2, 1, $3, $4)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = leases.epoch + 1,
				acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
			WHERE leases.expires_at <= excluded.acquired_at
			RETURNING epoch`, name, holder, Micros(now), until).Scan(&l.epoch)
		if err == nil {
			l.expires.Store(until)
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		held := &HeldError{Name: name}
		var expires int64
		if err := tx.QueryRowContext(ctx, `SELECT holder, expires_at FROM leases WHERE name = $1`, name).Scan(&held.Holder, &expires); err != nil {
			return err
		}
		held.ExpiresAt = Time(expires)
		return held
	})
	if err != nil {
		return Lease{}, fmt.Errorf("taking lease %s: %w", name, err)
	}
	return l, nil
}

func (d *DB) prepareLeases(ctx context.Context) error {
	d.leasing.Lock()
	defer d.leasing.Unlock()
	if d.leasesReady {
		return nil
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("reading the tables of leases: %w", err)
	}
	if err := d.Migrate(ctx, "db", files); err != nil {
		return err
	}
	d.leasesReady = true
	return nil
}

// Epoch is the number of this holding: higher than that of every earlier one.
func (l Lease) Epoch() int64 { return l.epoch }

// Lost reports whether the lease is no longer ours. It is cheap and needs no
// heartbeat to turn true: time alone does it, somewhat before others may take
// the lease, for clocks differ and work under way needs time to stop.
func (l Lease) Lost() bool {
	return Micros(l.db.Now().Add(l.ttl/6)) >= l.expires.Load()
}

// Renew makes the lease last its time to live from now on. The error matches
// ErrLost when it is lost for good; after any other it may be tried again until
// Lost reports true.
func (l Lease) Renew(ctx context.Context) error {
	if l.Lost() {
		l.expires.Store(0)
		return fmt.Errorf("renewing lease %s: %w: it was not renewed before it expired", l.name, ErrLost)
	}
	until := Micros(l.db.Now().Add(l.ttl))
	ours, err := l.set(ctx, until)
	if err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	if !ours {
		l.expires.Store(0)
		return fmt.Errorf("renewing lease %s: %w: another holder took it over", l.name, ErrLost)
	}
	l.expires.Store(until)
	return nil
}

// Release gives the lease back, so that the next holder need not wait for it to
// expire. Releasing a lost lease does nothing to its new holder.
func (l Lease) Release(ctx context.Context) error {
	l.expires.Store(0)
	if _, err := l.set(ctx, 0); err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.name, err)
	}
	return nil
}

// Evict gives back the lease name if holder has it. Only who knows for certain
// that the holder is dead may call it.
func (d *DB) Evict(ctx context.Context, name, holder string) error {
	err := d.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET expires_at = 0 WHERE name = $1 AND holder = $2`, name, holder)
		return err
	})
	if err != nil {
		return fmt.Errorf("giving back lease %s of %s: %w", name, holder, err)
	}
	return nil
}

// set changes when our holding ends, and reports whether there still is one.
func (l Lease) set(ctx context.Context, until int64) (ours bool, err error) {
	err = l.db.Tx(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `UPDATE leases SET expires_at = $1 WHERE name = $2 AND epoch = $3 AND expires_at > 0`, until, l.name, l.epoch)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		ours = n == 1
		return err
	})
	return ours, err
}

// releaseWithin is how long giving a kept lease back may take.
const releaseWithin = 10 * time.Second

// Keep renews the lease every third of its time to live until release is called
// or ctx ends. When the lease is lost it calls onLost once, with an error that
// matches ErrLost, and ends. release waits for the heartbeat to end, so onLost
// must not call it; then it gives the lease back as Release does, within ten
// seconds and also when ctx has ended. After its error the lease expires by itself.
func (l Lease) Keep(ctx context.Context, onLost func(error)) (release func() error) {
	work := ctx
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(l.ttl / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			within, end := context.WithTimeout(ctx, l.ttl/3)
			err := l.Renew(within)
			end()
			if errors.Is(err, ErrLost) && ctx.Err() == nil {
				onLost(err)
				return
			}
		}
	}()
	return func() error {
		cancel()
		<-done
		within, end := context.WithTimeout(context.WithoutCancel(work), releaseWithin)
		defer end()
		return l.Release(within)
	}
}
