// Package policies has the crawling policies that ship with the program: 15
// providers of documentation, one YAML file each. No promise: see docs/library.md.
package policies

import "embed"

// Files has the policies at its root.
//
//go:embed *.yaml
var Files embed.FS
