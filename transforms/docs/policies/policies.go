// Package policies carries the crawling policies of CPA-001 section 6.2, ready
// to run: the 15 providers of its five tables, a YAML file each.
package policies

import "embed"

// Files holds the policies at its root.
//
//go:embed *.yaml
var Files embed.FS
