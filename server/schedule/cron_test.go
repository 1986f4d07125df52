package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClockChanges has the ticks of schedules in the nights when clocks go forward or
// back.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, cron, zone, from, to string
		want                       []string // in UTC
	}{
		{"daily in the skipped hour", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-10T00:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"daily in the hour that comes twice", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-03T00:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"hourly in autumn", "0 * * * *", "America/New_York", "2026-11-01T03:30:00Z", "2026-11-01T08:30:00Z",
			[]string{"2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z", "2026-11-01T08:00:00Z"}},
		{"half past every hour in spring", "30 0-23 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-08T09:00:00Z",
			[]string{"2026-03-08T05:30:00Z", "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z", "2026-03-08T08:30:00Z"}},
		{"every twenty minutes in autumn", "*/20 * * * *", "Europe/Berlin", "2026-10-24T23:50:00Z", "2026-10-25T02:00:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T00:20:00Z", "2026-10-25T00:40:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:20:00Z", "2026-10-25T01:40:00Z", "2026-10-25T02:00:00Z"}},
		{"often in the skipped hour alone: once", "*/10 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z"}},
		{"midnight is skipped", "0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z",
			[]string{"2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"}},
		{"half an hour is skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"a whole day is skipped", "0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T20:00:00Z",
			[]string{"2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"}},
		{"no change", "15 3 * * *", "Asia/Seoul", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z",
			[]string{"2026-03-01T18:15:00Z", "2026-03-02T18:15:00Z"}},
		{"each twenty minutes", "*/20 * * * *", "UTC", "2026-03-02T00:00:01Z", "2026-03-02T00:40:00Z",
			[]string{"2026-03-02T00:20:00Z", "2026-03-02T00:40:00Z"}},
		{"on working days", "0 9 * * 1-5", "UTC", "2026-03-06T10:00:00Z", "2026-03-09T12:00:00Z", []string{"2026-03-09T09:00:00Z"}},
		{"crontab(5): day of month or of week", "0 0 13 * 5", "UTC", "2026-03-02T00:00:00Z", "2026-03-13T12:00:00Z",
			[]string{"2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"}},
		{"29 February", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, err := time.LoadLocation(c.zone)
			require.NoError(t, err)
			from, err := time.Parse(time.RFC3339, c.from)
			require.NoError(t, err)
			to, err := time.Parse(time.RFC3339, c.to)
			require.NoError(t, err)
			cr, err := parseCron(c.cron, z, from)
			require.NoError(t, err)
			var got []string
			for at, err := cr.next(from); !at.After(to); at, err = cr.next(at) {
				require.NoError(t, err)
				got = append(got, at.UTC().Format(time.RFC3339))
				require.Less(t, len(got), 20)
			}
			assert.Equal(t, c.want, got)
			// The next tick is the same from each second of a minute.
			for i, want := range c.want[1:] {
				last, err := time.Parse(time.RFC3339, c.want[i])
				require.NoError(t, err)
				next, err := time.Parse(time.RFC3339, want)
				require.NoError(t, err)
				for at := last; at.Before(next) && at.Before(last.Add(3*time.Hour)); at = at.Add(97 * time.Second) {
					got, err := cr.next(at)
					require.NoError(t, err)
					require.Equal(t, want, got.UTC().Format(time.RFC3339), "after %s", at)
				}
			}
		})
	}
}

func TestCronRefuses(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for expr, says := range map[string]string{
		"* * * * * *": "is not a cron expression", "0 15 3 * * *": "is not a cron expression", "15 3 * * * 2026": "is not a cron expression", "@everysecond": "is not a cron expression",
		"15 3 * *": "is not a cron expression", "": "is not a cron expression", "nightly": "is not a cron expression", "@nightly": "is not a cron expression", "61 * * * *": "is not a cron expression",
		"0 0 31 2 *": "never comes", "0 0 30 2 *": "never comes", "0 0 31 4,6,9,11 *": "never comes",
	} {
		_, err := parseCron(expr, time.UTC, now)
		assert.ErrorContains(t, err, says, expr)
	}
	for _, expr := range []string{"15 3 * * *", "  15  3 * * MON", "@daily", "@hourly", "0 0 31 1,2 *", "0 0 29 2 *", "0 0 31 2 1"} {
		_, err := parseCron(expr, time.UTC, now)
		assert.NoError(t, err, expr)
	}
}
