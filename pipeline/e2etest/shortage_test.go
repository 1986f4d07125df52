//go:build e2e

package e2etest

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// shortage takes something away from a run on a store, and gives it back.
type shortage struct {
	store      string // as the run sees it
	take, give func(*rig.Child)
}

// lackFiles leaves a process fewer open files than it has.
func lackFiles(t *testing.T, store string) shortage {
	may := func(files uint64) func(*rig.Child) {
		return func(c *rig.Child) {
			if err := unix.Prlimit(c.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: 4096}, nil); err != nil {
				t.Error(err)
			}
		}
	}
	return shortage{store, may(4), may(4096)}
}

// lackStore puts a proxy before the S3 server, which cuts connections off.
func lackStore(t *testing.T, target *url.URL, store string) shortage {
	var away atomic.Bool
	proxy := signedProxy(target)
	front := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			reset(rw)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	return shortage{strings.ReplaceAll(store, target.String(), front), func(*rig.Child) { away.Store(true) }, func(*rig.Child) { away.Store(false) }}
}

// lackDisk has the store on a small disk, and fills the disk.
func lackDisk(t *testing.T, files map[string]string) shortage {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=8m"); err != nil {
		rig.Missing(t, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	store, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	if err := os.Mkdir(store, 0o755); err != nil {
		t.Fatal(err)
	}
	rig.Put(t, store, files)
	take := func(*rig.Child) {
		f, err := os.Create(filler)
		if err != nil {
			t.Error(err)
			return
		}
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		_ = f.Close() // the disk is full, as it should
	}
	return shortage{store, take, func(*rig.Child) { _ = os.Remove(filler) }}
}

// What our side lacks in mid-run is no fact about a site. Returned within a minute, the
// run ends as one that lacked nothing. Otherwise it fails with that word, and the next one
// does the rest.
func TestShortage(t *testing.T) {
	s3 := buckettest.StartVersity(t)
	target, err := url.Parse(s3.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, word string
		lasts      time.Duration
		want       int
	}{
		{"descriptors", "open files", 6 * time.Second, 0},
		{"descriptors for good", "open files", 0, 1},
		{"store", "the store", 6 * time.Second, 0},
		{"store for good", "the store", 0, 1},
		{"disk", "disk is full", 6 * time.Second, 0},
		{"disk for good", "disk is full", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, release := slowWeb(t)
			b := gated()
			behind := "s3://" + s3.Bucket + "/" + strings.ReplaceAll(c.name, " ", "-") + "?region=us-east-1&endpoint=" + s3.Endpoint
			var s shortage
			switch strings.Fields(c.name)[0] {
			case "disk":
				s = lackDisk(t, b.files)
				behind = s.store
			case "store":
				s = lackStore(t, target, behind)
			default:
				s = lackFiles(t, behind)
			}
			rig.Put(t, behind, b.files)
			child := start(t, w, s.store)
			rig.Eventually(t, "the run at its hosts", time.Minute, asked(w, 6))
			s.take(child)
			release()
			if c.lasts > 0 {
				time.Sleep(c.lasts) // a real process lacks something
				s.give(child)
			}
			code := child.Wait(t, 3*time.Minute)
			if code != c.want || !strings.Contains(child.Output(t), c.word) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, c.want, c.word, rig.Tail(child.Output(t)))
			}
			got := rig.Objects(t, behind)
			for mark := range marks(t, behind, false) {
				if strings.HasSuffix(mark, "domain_metadata.json.success") && got[strings.TrimSuffix(mark, ".success")] == "" {
					t.Errorf("%s: marked, and there is no metadata", mark)
				}
			}
			if c.want != 0 {
				if strings.HasPrefix(c.name, "disk") {
					s.give(nil)
				}
				run(t, w, behind)
			}
			rig.Same(t, rig.Objects(t, behind), uninterrupted(t, w, b))
		})
	}
}
