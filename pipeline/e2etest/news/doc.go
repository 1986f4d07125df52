// Package news has the end-to-end tests of the news job: the real program
// against simulated publishers, with kills. Build tag e2e. No promise: see docs/library.md.
package news
