// Package testdata carries the sample bucket, so that the first run of a new
// user needs nothing but the program. It is demo data: see README.md. No promise: see docs/library.md.
package testdata

import "embed"

// Bucket holds the sample bucket under "bucket/".
//
//go:embed all:bucket
var Bucket embed.FS
