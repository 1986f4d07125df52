package known

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// FormatSeconds writes seconds like 1m30s.
func FormatSeconds(s float64) string {
	d, to := time.Duration(s*float64(time.Second)), time.Second
	if d < time.Minute {
		to = 100 * time.Millisecond
	}
	return d.Round(to).String()
}

// Total is the sum of counts.
func Total(c ledger.Counts) int64 {
	n := int64(0)
	for _, k := range c {
		n += k
	}
	return n
}

// Words writes a name like domains_collected with spaces.
func Words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Scalar is the text of a YAML scalar.
func Scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int, int64, uint64:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return "", errors.New("must be a single value")
}

// Zone is the time zone of an IANA name; "" is UTC. The error is for a person.
func Zone(name string) (*time.Location, error) {
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("timezone %q is unknown; use a name such as Asia/Seoul", name)
	}
	return z, nil
}

// MaxObject is how many bytes are read of one of the server's own objects.
const MaxObject = 16 << 20
