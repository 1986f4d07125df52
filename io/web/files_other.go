//go:build !unix

package web

func maxFiles() int { return 1 << 20 }
