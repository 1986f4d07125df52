package server

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

var english = message.NewPrinter(language.English)

// formatSeconds writes seconds like 1m30s.
func formatSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	return d.Round(cmp.Or(map[bool]time.Duration{true: 100 * time.Millisecond}[d < time.Minute], time.Second)).String()
}

// formatCount writes 1234567 as 1,234,567.
func formatCount(n int64) string { return english.Sprintf("%d", n) }

// formatBytes writes bytes in a suitable unit.
func formatBytes(n int64) string {
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

func total(c ledger.Counts) int64 {
	n := int64(0)
	for _, k := range c {
		n += k
	}
	return n
}

// words writes a name like domains_collected with spaces.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// scalar is the text of a YAML scalar.
func scalar(v any) (string, error) {
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

func zone(name string) (*time.Location, error) {
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("timezone %q is unknown; use a name such as Asia/Seoul", name)
	}
	return z, nil
}

// maxObject is how many bytes are read of one of the server's own objects.
const maxObject = 16 << 20
