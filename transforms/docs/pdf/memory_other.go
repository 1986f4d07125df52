//go:build !unix

package pdf

func reserve(size int) ([]byte, error) { return make([]byte, size), nil }

func (l *linear) release() error { return nil }
