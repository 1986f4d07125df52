// Package rig has what the end-to-end tests of runners share: the built
// program as a child process, a simulated web in the test's own process, and
// stores that can be compared. No promise: see docs/library.md.
package rig
