package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// InStore keeps leases as objects lease/{name}/{epoch} of a store.
func InStore(s store.Store) Place { return inStore{store: s} }

// InStoreWhileHeld is InStore for leases with so many names that their objects must not
// stay: Release removes a lease's object.
func InStoreWhileHeld(s store.Store) Place { return inStore{store: s, removes: true} }

type inStore struct {
	store   store.Store
	removes bool // the object of a released lease
}

func (inStore) now() time.Time { return time.Now() }

const prefix = "lease/"

func key(name string, epoch int64) string { return fmt.Sprintf("%s%s/%06d", prefix, name, epoch) }

// maxObject is how many bytes of a lease are read, so that another object at its key
// cannot fill the memory.
const maxObject = 1 << 20

func (p inStore) load(ctx context.Context, key string) (record, error) {
	b, err := store.ReadAll(ctx, p.store, key, maxObject)
	if err != nil {
		return record{}, err
	}
	r, err := decode(b)
	if err != nil {
		return record{}, fmt.Errorf("reading %s: not a lease: %w (delete that object if no run is at work)", key, err)
	}
	return r, nil
}

func decode(b []byte) (record, error) {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, err
	}
	if r.ExpiresAt.IsZero() && !r.Released {
		return record{}, errors.New("it has no expires_at")
	}
	return r, nil
}

func encode(r record) []byte {
	b, _ := json.MarshalIndent(r, "", "  ") // a struct of strings, numbers and times always encodes
	return append(b, '\n')
}

var asJSON = store.PutOptions{ContentType: "application/json"}

func (p inStore) newest(ctx context.Context, name string) (int64, record, error) {
	for {
		epochs, err := p.epochs(ctx, name)
		if err != nil || len(epochs) == 0 {
			return 0, record{}, err
		}
		epoch := epochs[len(epochs)-1]
		r, err := p.load(ctx, key(name, epoch))
		if errors.Is(err, store.ErrNotExist) && ctx.Err() == nil {
			continue // a newer epoch replaced it since the listing
		}
		return epoch, r, err
	}
}

// completeWithin is how long acquire may take to complete after it has created the lease,
// also if its context ends.
const completeWithin = 10 * time.Second

func (p inStore) acquire(ctx context.Context, name string, before int64, _, r record) (bool, error) {
	if err := store.Exclusive(ctx, p.store); err != nil {
		return false, err
	}
	epoch := before + 1
	err := store.Create(ctx, p.store, key(name, epoch), encode(r), asJSON)
	if errors.Is(err, store.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// The lease exists now: a caller that is stopped here would leave it behind unreleased.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), completeWithin)
	defer cancel()
	// Between our listing and our creating, other processes may have created this epoch
	// and newer ones and deleted this one. The newest epoch is never deleted, so a
	// listing shows it.
	epochs, err := p.epochs(ctx, name)
	if err != nil {
		return false, err
	}
	if len(epochs) == 0 || epochs[len(epochs)-1] < epoch {
		return false, nil // somebody deleted it by hand
	}
	if epochs[len(epochs)-1] > epoch {
		return false, store.Remove(ctx, p.store, key(name, epoch))
	}
	for _, old := range epochs[:len(epochs)-1] {
		if err := store.Remove(ctx, p.store, key(name, old)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// removeWithin is how long a lease must still last when its object is removed. Nobody may be
// taking it over by its epoch meanwhile: without an object the epochs begin with 1 again.
const removeWithin = 5 * time.Second

func (p inStore) renew(ctx context.Context, name string, epoch int64, r record) (bool, error) {
	there, err := p.load(ctx, key(name, epoch))
	if errors.Is(err, store.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if there.Token != r.Token || there.Released {
		return false, nil
	}
	if r.Released && p.removes && p.now().Add(removeWithin).Before(r.ExpiresAt) {
		return true, store.Remove(ctx, p.store, key(name, epoch))
	}
	if err := store.Write(ctx, p.store, key(name, epoch), encode(r), asJSON); err != nil {
		return false, err
	}
	epochs, err := p.epochs(ctx, name)
	if err != nil {
		return false, err
	}
	if len(epochs) > 0 && epochs[len(epochs)-1] > epoch {
		// The write above may have created a deleted epoch again.
		return false, store.Remove(ctx, p.store, key(name, epoch))
	}
	return true, nil
}

// epochs lists the epochs of one lease, oldest first.
func (p inStore) epochs(ctx context.Context, name string) ([]int64, error) {
	under := prefix + name + "/"
	var epochs []int64
	err := store.Retry(ctx, func() error {
		epochs = epochs[:0]
		for o, err := range p.store.List(ctx, under) {
			if err != nil {
				return fmt.Errorf("listing %s: %w", under, err)
			}
			// A lease's name may begin with another's name; its keys have more segments.
			if n, err := strconv.ParseInt(strings.TrimPrefix(o.Key, under), 10, 64); err == nil && n > 0 && o.Key == key(name, n) {
				epochs = append(epochs, n)
			}
		}
		return nil
	})
	slices.Sort(epochs)
	return epochs, err
}

// Sign returns when the newest lease of that name in a store was last renewed, and whether its holder still has it.
func Sign(ctx context.Context, s store.Store, name string) (renewed time.Time, alive bool, err error) {
	p := inStore{store: s}
	_, r, err := p.newest(ctx, name)
	return r.ExpiresAt.Add(-r.TTL), r.alive(p.now(), holderAt("/proc"), "/proc"), err
}

// ActiveHolder returns the living holder of one of the leases in a store whose names
// begin with name and a slash, or are name. found is false when there is none.
func ActiveHolder(ctx context.Context, s store.Store, name string) (holder Holder, found bool, err error) {
	p := inStore{store: s}
	newest := map[string]string{} // key by name: keys come in the order of their epochs
	for o, err := range s.List(ctx, prefix+name+"/") {
		if err != nil {
			return Holder{}, false, fmt.Errorf("listing %s/: %w", prefix+name, err)
		}
		newest[path.Dir(o.Key)] = o.Key
	}
	self := holderAt("/proc")
	for _, key := range newest {
		r, err := p.load(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotExist):
			continue // taken over since the listing
		case err != nil:
			return Holder{}, false, err
		case r.alive(p.now(), self, "/proc"):
			return r.Holder, true, nil
		}
	}
	return Holder{}, false, nil
}
