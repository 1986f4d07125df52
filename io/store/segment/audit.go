package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/io/store"
)

// What Audit finds.
const (
	EntryDamaged = "unreadable commits of packed results"
	FileDamaged  = "packed results that a commit names, and that are missing or of another size"
	FileLeft     = "packed files that no commit names"
)

// Audit calls found for what is inconsistent under root. It reads the commits and the sizes of their files, not their content.
func Audit(ctx context.Context, s store.Store, root string, found func(what, key string)) error {
	x, err := List(ctx, s, root)
	if err != nil {
		return err
	}
	x = x.WithoutNames()
	for _, dir := range x.Folders() {
		f, err := read(ctx, s, x.folders[dir], x.keep)
		if errors.Is(err, errEntry) {
			found(EntryDamaged, dir)
			continue
		}
		if err != nil {
			return err
		}
		commits, _ := f.valid()
		for _, c := range commits {
			for _, file := range c.Files {
				o, err := s.Head(ctx, file.Key)
				if err != nil && !errors.Is(err, store.ErrNotExist) {
					return fmt.Errorf("looking at %s: %w", file.Key, err)
				}
				if err != nil || o.Size != file.Size {
					found(FileDamaged, file.Key)
				}
			}
		}
		for _, key := range left(commits, f.others) {
			found(FileLeft, key)
		}
	}
	return nil
}
