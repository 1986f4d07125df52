package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// cron is when a schedule ticks: an expression, read on the clock of a zone.
//
// A clock that is put forward skips times. A tick at one of them comes at the
// moment of the jump, so that a daily job has its run that day. A clock that is
// put back shows times twice. A tick then comes the first time alone, unless
// the expression names every hour: such a schedule goes by the hours that pass,
// and has none more or less.
type cron struct {
	expr   string
	zone   *time.Location
	hourly bool // every hour is named
}

// aroundJump is longer than any clock was ever put forward or back.
const aroundJump = 26 * time.Hour

// parseCron refuses what a crontab has no line for, and what never comes. now
// is where the search for the first tick begins.
func parseCron(expr string, zone *time.Location, now time.Time) (cron, error) {
	fields := strings.Fields(expr)
	wrong := fmt.Errorf("%q is no cron expression; write minute hour day month weekday, such as 15 3 * * *", expr)
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
	for _, near := range []time.Duration{-aroundJump, aroundJump} {
		o := offset(after.Add(near), c.zone)
		least, most = min(least, o), max(most, o)
	}
	jump := most - least
	var best time.Time
	for wall := onClock(after, c.zone).Add(-jump); ; {
		next, err := gronx.NextTickAfter(c.expr, wall, false)
		switch {
		case !best.IsZero() && (err != nil || next.After(onClock(best, c.zone).Add(jump))):
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

// offset is how far a zone's clock is before UTC.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, s := t.In(zone).Zone()
	return time.Duration(s) * time.Second
}

// onClock is what a zone's clock shows, as a time that never jumps.
func onClock(t time.Time, zone *time.Location) time.Time {
	return t.UTC().Add(offset(t, zone))
}

// at are the times of the ticks for what the clock shows.
func (c *cron) at(wall time.Time) []time.Time {
	before, later := offset(wall.Add(-aroundJump), c.zone), offset(wall.Add(aroundJump), c.zone)
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
