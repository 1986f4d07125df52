package value

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/zonename"
)

// clock matches a time of day.
var clock = regexp.MustCompile(`(?i)(오전|오후|上午|下午|午前|午後)?\s*\b(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([ap]\.?m\b\.?)?`)

// joined matches the sign between date and time of ISO 8601.
var joined = regexp.MustCompile(`(\d)T(\d)`)

// Time reads the only point in time in a text and returns it as RFC 3339. A text without
// an offset from UTC is of zone, and an offset is converted to it; zone may be nil.
func Time(text string, l Locale, zone *time.Location) (string, error) {
	s := strings.ReplaceAll(strings.TrimSpace(digits(text)), " "+string(Apart), " ")
	if t, ok := instant(s, l, zone); ok {
		return t.Format(time.RFC3339), nil
	}
	s = joined.ReplaceAllString(s, "$1 $2")
	at := clock.FindStringIndex(s)
	if at == nil {
		return "", fmt.Errorf("%q has no time of day: use the type date", text)
	}
	own, after, err := offsetOf(s[at[1]:])
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	if clock.MatchString(after) {
		return "", fmt.Errorf("%q has several times of day: choose one by a regexp, or use the type date", text)
	}
	m := clock.FindStringSubmatch(s)
	hour, minute, second := number3(m[2], m[3], m[4])
	half := strings.ToLower(m[1] + m[5])
	pm := strings.HasPrefix(half, "p") || half == "오후" || half == "下午" || half == "午後"
	switch {
	case half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59, second > 59:
		return "", fmt.Errorf("%q has no time of day", text)
	case pm && hour < 12:
		hour += 12
	case half != "" && !pm && hour == 12:
		hour = 0
	}
	in := cmp.Or(own, zone)
	if in == nil {
		return "", fmt.Errorf("%q has no offset from UTC: set the site's or the field's timezone", text)
	}
	rest := strings.TrimRight(s[:at[0]], "T ") + " " + after
	day, err := Date(rest, l, nil)
	if err != nil {
		return "", err
	}
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "", err
	}
	t := time.Date(d.Year(), d.Month(), d.Day(), hour, minute, second, 0, in)
	switch h, m, _ := t.Clock(); {
	case h != hour || m != minute:
		return "", fmt.Errorf("%q: there is no such time in %s, because the clock is put forward", text, in)
	case twice(t):
		return "", fmt.Errorf("%q: this time is there twice in %s, because the clock is put back: choose a text that has its offset", text, in)
	}
	if zone != nil {
		t = t.In(zone)
	}
	return t.Format(time.RFC3339), nil
}

// twice reports whether the clock shows a time once more an hour later or earlier, because it
// is put back.
func twice(t time.Time) bool {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.Zone()
		return time.Duration(seconds) * time.Second
	}
	begin, end := t.ZoneBounds()
	if !begin.IsZero() && t.Sub(begin) < offset(begin.Add(-time.Second))-offset(t) {
		return true
	}
	return !end.IsZero() && end.Sub(t) <= offset(t)-offset(end)
}

// instants are the layouts of points in time. All of them have a colon.
var instants = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02 15:04 Z07:00", "2006-01-02 15:04 Z0700", time.RFC1123Z, time.RFC1123}

// instant reads a text that is nothing but a point in time with its offset from UTC.
func instant(s string, l Locale, zone *time.Location) (t time.Time, ok bool) {
	if !strings.Contains(s, ":") {
		return t, false
	}
	for _, layout := range instants {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if layout == time.RFC1123 { // to Parse most names of zones mean UTC
			name, _ := t.Zone()
			seconds, known := zonename.Seconds(name)
			if !known {
				return t, false
			}
			t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.FixedZone(name, seconds))
		}
		t = t.AddDate(-l.buddhist(t.Year()), 0, 0)
		if zone != nil {
			t = t.In(zone)
		}
		return t, true
	}
	return t, false
}

// offset matches what stands after a time of day: +02:00, UTC+9, GMT, CEST.
var offset = regexp.MustCompile(`^\s*\(?(?:(?:UTC|GMT)?\s*([+−-])(\d{2}):?(\d{2})?|(?:UTC|GMT)([+−-])(\d)|([A-Z]{1,5}))\b\)?`)

// offsetOf returns the offset from UTC with which a text begins, nil for none, and the rest.
func offsetOf(s string) (own *time.Location, rest string, err error) {
	m := offset.FindStringSubmatch(s)
	if m == nil {
		return nil, s, nil
	}
	rest = s[len(m[0]):]
	if name := m[6]; name != "" {
		seconds, known := zonename.Seconds(name)
		switch {
		case zonename.Several(name):
			return nil, s, fmt.Errorf("%s is the name of several offsets from UTC: choose the time without it by a regexp, and set timezone", name)
		case !known:
			return nil, s, nil
		}
		return time.FixedZone(name, seconds), rest, nil
	}
	hours, minutes, _ := number3(m[2]+m[5], m[3], "0")
	if hours > 14 || minutes > 59 {
		return nil, s, nil
	}
	seconds := hours*3600 + minutes*60
	if m[1]+m[4] != "+" {
		seconds = -seconds
	}
	return time.FixedZone("", seconds), rest, nil
}

// Epoch reads seconds or milliseconds since 1970 UTC.
func Epoch(text string, zone *time.Location) (time.Time, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 1e8 || n >= 1e13 {
		return time.Time{}, fmt.Errorf("%s is no time in seconds or milliseconds since 1970", text)
	}
	if n >= 1e11 {
		n /= 1e3
	}
	t := time.Unix(int64(n), 0).UTC()
	if zone != nil {
		t = t.In(zone)
	}
	return t, nil
}
