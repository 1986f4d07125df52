// Package e2etest has the tests that run the real program from outside:
// `go test -tags e2e ./pipeline/e2etest`. It stands apart because its stores'
// test servers bring flags of their own into the test binary.
package e2etest
