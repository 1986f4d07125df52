//go:build e2e && !nightly

package rig

// Nightly says that the long form of a test is wanted: see the Makefile's target nightly.
const Nightly = false
