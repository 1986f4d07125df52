// Package e2etest has the tests that run the real program from outside:
// `go test -tags e2e ./pipeline/e2etest`. It is a package of its own because the
// test servers of its stores add their own flags to the test binary. No promise: see docs/library.md.
package e2etest
