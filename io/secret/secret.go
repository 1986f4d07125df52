// Package secret reads secrets of the environment, and sends them to no place that another names. No promise: see docs/library.md.
package secret

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// FileSuffix ends the name of a variable that names a file with the secret.
const FileSuffix = "_FILE"

// maxBytes is how many bytes of a file with a secret are read.
const maxBytes = 64 << 10

// Read is the secret in a variable, or in the file that NAME_FILE names; "" if
// there is none.
func Read(name string) (text string, err error) {
	value, path := os.Getenv(name), os.Getenv(name+FileSuffix)
	if path == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %s are both set; use one of them", name, name+FileSuffix)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name+FileSuffix, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", name+FileSuffix, err)
	}
	if text = strings.TrimSpace(string(b)); text == "" {
		return "", fmt.Errorf("%s: %s is empty", name+FileSuffix, path)
	}
	return text, nil
}

// Client returns a client for requests that have a secret in their address, header or body. It returns a redirect as it is: whoever
// controls the endpoint, or a proxy before it, could lead the secret to another host. A request takes at most timeout.
func Client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
