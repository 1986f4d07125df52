// Package search has the end-to-end tests of the search index, by questions on real documentation. Build tag e2e. No promise: see docs/library.md.
package search
