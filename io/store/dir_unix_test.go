//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A directory store that is unmounted or moved away is not an empty one, and is not created again.
func TestVanishedDirectory(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, string){
		"gone": func(*testing.T, string) {},
		"a mount point": func(t *testing.T, root string) {
			require.NoError(t, os.Mkdir(root, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, root := t.Context(), filepath.Join(t.TempDir(), "store")
			require.NoError(t, os.Mkdir(root, 0o755))
			s, err := Open(ctx, root)
			require.NoError(t, err)
			put := func() error { return s.Put(ctx, "a/b", strings.NewReader("x"), PutOptions{}) }
			require.NoError(t, put())
			require.NoError(t, os.Rename(root, root+".away")) // kept, so that its inode is not given again
			leave(t, root)
			calls := map[string]error{"put": put(), "create": s.PutIfAbsent(ctx, "a/c", strings.NewReader("x"), PutOptions{}), "delete": s.Delete(ctx, "a/b")}
			_, calls["head"] = s.Head(ctx, "a/b")
			_, calls["exists"] = Exists(ctx, s, "a/b")
			_, calls["open"] = s.Open(ctx, "a/b")
			for _, err := range s.List(ctx, "") {
				calls["list"] = err
			}
			for what, err := range calls {
				assert.True(t, errors.Is(err, ErrGone) && !errors.Is(err, ErrNotExist) && !Retryable(err), "%s: %v, want ErrGone", what, err)
			}
			assert.Len(t, calls, 7, "the listing is empty")
			if left, err := os.ReadDir(root); err == nil && len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("in its place is %v (%v)", left, err)
			}
			_ = os.Remove(root)
			require.NoError(t, os.Rename(root+".away", root))
			assert.NoError(t, put(), "mounted again")
		})
	}
}

// Who may read what a directory store keeps is the umask's to say.
func TestUmaskDecides(t *testing.T) {
	for umask, want := range map[int][2]fs.FileMode{0o022: {0o644, 0o755}, 0o077: {0o600, 0o700}, 0o002: {0o664, 0o775}} {
		root := t.TempDir()
		before := syscall.Umask(umask)
		s, err := Open(t.Context(), root)
		if err == nil {
			err = s.Put(t.Context(), "a/b", strings.NewReader("x"), PutOptions{Metadata: map[string]string{"k": "v"}})
		}
		syscall.Umask(before)
		require.NoError(t, err)
		err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			mode := want[0]
			if e.IsDir() {
				mode = want[1]
			}
			assert.Equal(t, mode, info.Mode().Perm(), "umask %03o: %s", umask, path)
			return nil
		})
		require.NoError(t, err)
	}
}
