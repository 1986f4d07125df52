// Package catalog runs the real program's catalog job against a simulated
// register in the test's process. Its tests need the build tag e2e. No promise: see docs/library.md.
package catalog
