// Package publishers has the declarative publishers of the news job that
// ship with the program, one YAML file each. All are simulated ones so far.
package publishers

import "embed"

// Files holds them at its root.
//
//go:embed *.yaml
var Files embed.FS
