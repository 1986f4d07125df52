// Package sites has the sites of the catalog job that ship with the
// program, one YAML file each.
package sites

import "embed"

// Files holds the real sites at its root and the simulated ones, which exist
// only under --web=demo, in demo.
//
//go:embed *.yaml demo/*.yaml
var Files embed.FS
