// Package sites has the sites of the catalog job that ship with the
// program, one YAML file each. No promise: see docs/library.md.
package sites

import "embed"

// Files has the real sites at its root, and in demo the simulated ones, which exist
// only with --web=demo.
//
//go:embed *.yaml demo/*.yaml
var Files embed.FS
