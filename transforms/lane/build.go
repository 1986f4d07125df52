package lane

import (
	"fmt"
	"runtime/debug"
)

var ownBuild = Build()

// Build returns the commit from which this program was built, or "" if it is unknown, as with go run.
func Build() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// checkBuild refuses a worker of another commit than its launcher: their stages and configurations may differ.
func (c Config) checkBuild() error {
	if c.Build == "" || ownBuild == "" || c.Build == ownBuild {
		return nil
	}
	return fmt.Errorf("the launcher was built from commit %s and this worker from %s: start both from the same build", c.Build, ownBuild)
}
