// Package publishers has the declarative publishers of the news job that
// ship with the program, one YAML file each. So far all of them are simulated.
package publishers

import "embed"

// Files has them at its root.
//
//go:embed *.yaml
var Files embed.FS
