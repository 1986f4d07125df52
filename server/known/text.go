package known

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/newsfork/seed-engine/io/ledger"
)

// English prints numbers with commas.
var English = message.NewPrinter(language.English)

// FormatSeconds writes seconds like 1m30s.
func FormatSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	return d.Round(cmp.Or(map[bool]time.Duration{true: 100 * time.Millisecond}[d < time.Minute], time.Second)).String()
}

// FormatCount writes 1234567 as 1,234,567.
func FormatCount(n int64) string { return English.Sprintf("%d", n) }

// FormatBytes writes bytes in a suitable unit.
func FormatBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if f /= 1024; f < 1024 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", f/1024)
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
