package value

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// clock matches a time of day.
var clock = regexp.MustCompile(`(?i)(오전|오후|上午|下午|午前|午後)?\s*\b(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([ap]\.?m\b\.?)?`)

// joined matches the sign between date and time of ISO 8601.
var joined = regexp.MustCompile(`(\d)T(\d)`)

// Time reads the only point in time in a text and returns it as RFC 3339. A text without
// an offset from UTC is of zone, and an offset is converted to it; zone may be nil.
func Time(text string, l Locale, zone *time.Location) (string, error) {
	s := strings.TrimSpace(digits(text))
	for _, layout := range instants {
		if t, err := time.Parse(layout, s); err == nil {
			if zone != nil {
				t = t.In(zone)
			}
			return t.Format(time.RFC3339), nil
		}
	}
	if zone == nil {
		return "", fmt.Errorf("%q has no offset from UTC: set the site's or the field's timezone", text)
	}
	s = joined.ReplaceAllString(s, "$1 $2")
	at := clock.FindAllStringSubmatchIndex(s, -1)
	if len(at) != 1 {
		return "", fmt.Errorf("%q has %d times of day, and not one: choose one by a regexp, or use the type date", text, len(at))
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
	rest := strings.TrimRight(s[:at[0][0]], "T ") + " " + s[at[0][1]:]
	day, err := Date(rest, l, nil)
	if err != nil {
		return "", err
	}
	t, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		return "", err
	}
	return time.Date(t.Year(), t.Month(), t.Day(), hour, minute, second, 0, zone).Format(time.RFC3339), nil
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
