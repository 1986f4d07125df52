// Package server has the tests that run the real server from outside:
// `go test -tags e2e ./pipeline/e2etest/server`. They start the program, send it
// requests as curl does, open its pages in Chromium, kill it, and let
// schemathesis compare it with its own description. No promise: see docs/library.md.
package server
