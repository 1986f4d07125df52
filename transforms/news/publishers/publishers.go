// Package publishers has the declarative publishers of the news job that
// ship with the program, one YAML file each. No promise: see docs/library.md.
package publishers

import (
	"embed"
	"io/fs"
)

// Files has the simulated ones at its root.
//
//go:embed *.yaml
var Files embed.FS

//go:embed world
var world embed.FS

// World returns the files of publishers of the world. They say where a publisher names
// its articles, and which of its URLs are articles; that is public, and may change.
func World() fs.FS {
	files, err := fs.Sub(world, "world")
	if err != nil {
		panic(err) // the name is valid
	}
	return files
}
