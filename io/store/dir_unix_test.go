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
)

// A directory store that is unmounted or moved away is not an empty one, and is not created again.
func TestVanishedDirectory(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, string){
		"gone": func(*testing.T, string) {},
		"a mount point": func(t *testing.T, root string) {
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, root := t.Context(), filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := Open(ctx, root)
			if err != nil {
				t.Fatal(err)
			}
			put := func() error { return s.Put(ctx, "a/b", strings.NewReader("x"), PutOptions{}) }
			if err := put(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(root, root+".away"); err != nil { // kept, so that its inode is not given again
				t.Fatal(err)
			}
			leave(t, root)
			calls := map[string]error{"put": put(), "create": s.PutIfAbsent(ctx, "a/c", strings.NewReader("x"), PutOptions{}), "delete": s.Delete(ctx, "a/b")}
			_, calls["head"] = s.Head(ctx, "a/b")
			_, calls["exists"] = Exists(ctx, s, "a/b")
			_, calls["open"] = s.Open(ctx, "a/b")
			for _, err := range s.List(ctx, "") {
				calls["list"] = err
			}
			for what, err := range calls {
				if !errors.Is(err, ErrGone) || errors.Is(err, ErrNotExist) || Retryable(err) {
					t.Errorf("%s: %v, want ErrGone", what, err)
				}
			}
			if len(calls) != 7 {
				t.Error("the listing is empty")
			}
			if left, err := os.ReadDir(root); err == nil && len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("in its place is %v (%v)", left, err)
			}
			_ = os.Remove(root)
			if err := os.Rename(root+".away", root); err != nil {
				t.Fatal(err)
			}
			if err := put(); err != nil {
				t.Errorf("mounted again: %v", err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
			if info.Mode().Perm() != mode {
				t.Errorf("umask %03o: %s has %03o, want %03o", umask, path, info.Mode().Perm(), mode)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
