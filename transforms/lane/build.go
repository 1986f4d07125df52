package lane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// unstamped begins the name of a build whose commit is unknown, as with go run or changes that are not committed.
const unstamped = "sha256:"

var ownBuild = sync.OnceValue(func() string {
	commit, changed := "", false
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	if commit != "" && !changed {
		return commit
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(self)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return unstamped + hex.EncodeToString(h.Sum(nil)[:8])
})

// Build names the build of this program for its workers elsewhere: its commit, or else the hash of its file. ""
// where it is unknown, or where same says that the workers have another file of the same build.
func Build(same bool) string {
	if b := ownBuild(); !same || !strings.HasPrefix(b, unstamped) {
		return b
	}
	return ""
}

// checkBuild refuses a worker of another build than its launcher: their stages and configurations may differ.
func (c Config) checkBuild() error {
	if c.Build == "" {
		return nil
	}
	own := ownBuild()
	if c.Build == own || own == "" {
		return nil
	}
	return fmt.Errorf("the launcher is build %s and this worker is build %s (commits, or hashes of programs that were built without one): "+
		"start both from the same build", c.Build, own)
}
