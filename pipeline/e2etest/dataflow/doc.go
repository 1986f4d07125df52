// Package dataflow tests submissions to Dataflow without the cloud, by fakes
// of its API and of Cloud Storage: `go test -tags e2e ./pipeline/e2etest/dataflow`. No promise: see docs/library.md.
package dataflow
