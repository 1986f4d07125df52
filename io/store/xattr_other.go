//go:build !linux

package store

import (
	"errors"
	"os"
)

func hasXattrs(string) bool { return false }

func setXattr(*os.File, string, []byte) error { return errors.ErrUnsupported }

func getXattr(string, string) ([]byte, error) { return nil, nil }
