// Package flink tests the seed job on Beam's Flink job server, downloaded from
// Maven Central: `go test -tags e2e ./pipeline/e2etest/flink`. No promise: see docs/library.md.
package flink
