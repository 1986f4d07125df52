//go:build e2e

package rig

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// FromPyPI installs packages into a virtual environment of Python in dir, and returns
// the folder of its programs. Python compiles what is imported, not all that is installed. It fails where Python or the packages are missing.
func FromPyPI(dir string, packages ...string) (bin string, err error) {
	bin = filepath.Join(dir, "bin")
	for _, args := range [][]string{{"python3", "-m", "venv", dir}, append([]string{filepath.Join(bin, "pip"), "-q", "install", "--no-compile"}, packages...)} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", args, err, out)
		}
	}
	return bin, nil
}
