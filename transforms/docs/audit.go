package docs

import (
	"context"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// maxManifest is the size in bytes of the largest manifest, or kept page, that is read.
const maxManifest = 64 << 20

// Audit calls found for objects that a manifest of the hand-off names and that are missing or of another size, and how to mend it.
func Audit(ctx context.Context, s store.Store, _ *db.DB, found func(what, key, mend string)) error {
	sizes := map[string]int64{}
	for o, err := range s.List(ctx, "handoff/docs/") {
		if err != nil {
			return err
		}
		sizes[o.Key] = o.Size
	}
	keys, err := store.Keys(ctx, s, manifests)
	if err != nil {
		return err
	}
	for _, key := range keys {
		var m manifest
		if store.ReadJSON(ctx, s, key, maxManifest, &m) != nil {
			continue // it is among what is no JSON
		}
		for _, p := range m.Providers {
			for _, o := range p.Objects {
				if size, there := sizes[o.Key]; !there || size != o.Size {
					found("objects of the hand-off that its manifest names, and that are missing or of another size", o.Key,
						"docs --handoff-again="+p.Provider+" hands everything over again")
				}
			}
		}
	}
	return nil
}
