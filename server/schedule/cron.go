package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// cron is a cron expression in a time zone.
//
// When clocks go forward, they skip some times. A tick at a skipped time comes at the
// moment of the change, so that a daily job still has its run that day. When clocks go
// back, they show some times twice. Such a tick comes only the first time. If the
// expression has every hour, ticks are neither added nor repeated: one comes in each
// hour that passes.
type cron struct {
	expr   string
	zone   *time.Location
	hourly bool // the expression has every hour
}

// maxJump is longer than any change of clocks.
const maxJump = 26 * time.Hour

// parseCron parses a crontab expression. It refuses one that has no tick after now.
func parseCron(expr string, zone *time.Location, now time.Time) (cron, error) {
	fields := strings.Fields(expr)
	wrong := fmt.Errorf("%q is not a cron expression; write minute hour day month weekday, such as 15 3 * * *", expr)
	if len(fields) != 5 && (len(fields) != 1 || !strings.HasPrefix(expr, "@") || strings.EqualFold(expr, "@everysecond")) {
		return cron{}, wrong
	}
	parts, err := gronx.Segments(expr) // second, minute, hour, …
	if err != nil || !gronx.IsValid(expr) {
		return cron{}, wrong
	}
	c := cron{expr: expr, zone: zone, hourly: true}
	for h := range 24 {
		due, err := gronx.New().IsDue("0 "+parts[2]+" * * *", time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC))
		c.hourly = c.hourly && due && err == nil
	}
	if _, err := c.next(now); err != nil {
		return cron{}, fmt.Errorf("%q never comes: there is no such day", expr)
	}
	return c, nil
}

// next is the first tick after a time.
func (c *cron) next(after time.Time) (time.Time, error) {
	least, most := offset(after, c.zone), offset(after, c.zone)
	for _, near := range []time.Duration{-maxJump, maxJump} {
		o := offset(after.Add(near), c.zone)
		least, most = min(least, o), max(most, o)
	}
	jump := most - least
	var best time.Time
	for wall := wallTime(after, c.zone).Add(-jump); ; {
		next, err := gronx.NextTickAfter(c.expr, wall, false)
		switch {
		case !best.IsZero() && (err != nil || next.After(wallTime(best, c.zone).Add(jump))):
			return best, nil
		case err != nil:
			return time.Time{}, err
		}
		wall = next
		for _, t := range c.at(wall) {
			if t.After(after) && (best.IsZero() || t.Before(best)) {
				best = t
			}
		}
		if jump == 0 && !best.IsZero() {
			return best, nil
		}
	}
}

// offset is how far a zone's clock is ahead of UTC.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, s := t.In(zone).Zone()
	return time.Duration(s) * time.Second
}

// wallTime is the time that a zone's clock shows, as a UTC time, which has no jumps.
func wallTime(t time.Time, zone *time.Location) time.Time {
	return t.UTC().Add(offset(t, zone))
}

// at are the times at which a tick comes for a time that the clock shows: none, one
// or two.
func (c *cron) at(wall time.Time) []time.Time {
	before, later := offset(wall.Add(-maxJump), c.zone), offset(wall.Add(maxJump), c.zone)
	var times []time.Time
	for _, o := range slices.Compact([]time.Duration{before, later}) {
		if t := wall.Add(-o); offset(t, c.zone) == o {
			times = append(times, t.In(c.zone))
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	switch {
	case len(times) == 0 && c.hourly:
		return nil
	case len(times) == 0:
		jump, _ := wall.Add(-before).In(c.zone).ZoneBounds()
		return []time.Time{jump}
	case len(times) == 2 && !c.hourly:
		return times[:1]
	}
	return times
}
