// Package spark tests the program on a standalone Spark cluster, in processes of its
// own on one machine. No promise: see docs/library.md.
package spark
