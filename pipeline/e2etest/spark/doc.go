// Package spark tests the program on a standalone Spark cluster, in processes of its
// own on one machine.
package spark
