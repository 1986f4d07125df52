package ledger

import (
	"context"
	"errors"

	"github.com/newsfork/seed-engine/io/store"
)

// demoKey is an object of a store whose results are those of --web=demo. It is there before the first of them.
const demoKey = "demo"

// IsDemo reports whether the results in a store are invented.
func IsDemo(ctx context.Context, s store.Store) (bool, error) { return store.Has(ctx, s, demoKey) }

// MarkDemo says for ever that the results in a store are invented.
func MarkDemo(ctx context.Context, s store.Store) error {
	text := "The results in this store are invented: they are of the simulated web (--web=demo). Runs of real sites refuse it.\n"
	err := store.Create(ctx, s, demoKey, []byte(text), store.PutOptions{ContentType: "text/plain; charset=utf-8"})
	if errors.Is(err, store.ErrExist) {
		return nil
	}
	return err
}
