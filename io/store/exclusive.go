package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
)

// ErrNotExclusive means that a store lets two writers create the same object.
var ErrNotExclusive = errors.New("the store lets a second writer create an object that exists (it ignores If-None-Match: *), so two runs could work at the same time: use a newer version of it, or another store")

// probe remembers that a bucket was probed.
type probe struct {
	sync.Mutex
	done bool
}

// Exclusive checks that PutIfAbsent works: some S3 servers and gateways ignore its
// condition. A bucket is probed once, by creating a key twice. A directory needs
// no probe: it uses link(2).
func Exclusive(ctx context.Context, s Store) error {
	s = bare(s)
	var done *probe
	switch s := s.(type) {
	case *dir:
		return nil
	case *cloud:
		done = &s.probed
	default:
		done = new(probe)
	}
	done.Lock()
	defer done.Unlock()
	if done.done {
		return nil
	}
	key := "lease/.probe/" + rand.Text()
	if err := Create(ctx, s, key, []byte("first\n"), PutOptions{}); err != nil {
		return fmt.Errorf("probing the store: %w", err)
	}
	second := Create(ctx, s, key, []byte("second\n"), PutOptions{})
	if err := Remove(ctx, s, key); err != nil {
		return fmt.Errorf("probing the store: %w", err)
	}
	switch {
	case second == nil:
		return ErrNotExclusive
	case !errors.Is(second, ErrExist):
		return fmt.Errorf("probing the store: %w", second)
	}
	done.done = true
	return nil
}
