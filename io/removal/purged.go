package removal

import (
	"context"
	"fmt"

	"github.com/newsfork/seed-engine/io/db"
)

// Purged returns the providers of the docs job of which everything was removed, and which
// were not enabled again.
func Purged(ctx context.Context, d *db.DB) (map[string]bool, error) {
	ids, err := db.Texts(ctx, d, `SELECT id FROM docs_providers WHERE NOT `+d.Never("disabled_at"))
	if err != nil {
		return nil, fmt.Errorf("reading which providers were purged: %w", err)
	}
	out := map[string]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out, nil
}
