// Package docs has the end-to-end tests of the docs job: the real program
// against simulated documentation sites, with kills. Build tag e2e. No promise: see docs/library.md.
package docs
