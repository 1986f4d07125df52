package seed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFileTracker(t *testing.T) {
	start := time.Date(2026, 1, 28, 0, 0, 0, 0, time.UTC)
	l := FileTracker{Interval: time.Minute}
	for i, poll := range []struct {
		at    time.Duration
		open  []string // key, an equals sign, ETag
		want  []string
		pause time.Duration
	}{
		{0, []string{"a=1", "b=1"}, []string{"a", "b"}, time.Minute},           // what is there at the first poll
		{1 * time.Minute, []string{"b=1", "c=1"}, nil, time.Minute / 2},        // a is done, b waits, c may be half written
		{90 * time.Second, []string{"b=1", "c=1"}, []string{"c"}, time.Minute}, // c is as it was
		{2 * time.Minute, []string{"b=1", "c=2"}, []string{"b"}, time.Minute / 2},
		{3 * time.Minute, []string{"b=1", "c=3"}, nil, time.Minute / 2}, // still being written
		{4 * time.Minute, []string{"b=1", "c=3"}, []string{"c"}, time.Minute},
		{5 * time.Minute, []string{"b=1", "c=3"}, nil, time.Minute},
		{6 * time.Minute, []string{"b=1", "c=3"}, []string{"b", "c"}, time.Minute}, // b after 4 minutes, c after 2
		{13 * time.Minute, []string{"b=1"}, nil, time.Minute},
		{14 * time.Minute, []string{"b=1", "c=3"}, []string{"b"}, time.Minute / 2}, // c is back without its mark
		{15 * time.Minute, []string{"c=3"}, []string{"c"}, time.Minute},
	} {
		var open []File
		for _, f := range poll.open {
			open = append(open, File{Key: f[:1], ETag: f[2:]})
		}
		var got []string
		for _, f := range l.Due(open, start.Add(poll.at), 10) {
			got = append(got, f.Key)
		}
		assert.True(t, slices.Equal(got, poll.want) && l.Pause() == poll.pause,
			"poll %d: due %v, next poll in %v; want %v, %v", i, got, l.Pause(), poll.want, poll.pause)
	}
}

// A thousand files one after another leave nothing behind, and an open one is
// read less and less often.
func TestFileTrackerForgets(t *testing.T) {
	now := time.Date(2026, 1, 28, 0, 0, 0, 0, time.UTC)
	l := FileTracker{Interval: 30 * time.Second}
	stuck := 0
	for i := range 2880 { // a day
		open := []File{{Key: "stuck", ETag: "1"}, {Key: fmt.Sprint(i / 2), ETag: "1"}}
		for _, f := range l.Due(open, now, 10) {
			if f.Key == "stuck" {
				stuck++
			}
		}
		require.Len(t, l.Files, 2)
		now = now.Add(l.Interval)
	}
	assert.True(t, stuck >= 24 && stuck <= 32, "a file that stays open was read %d times a day, want about once an hour", stuck)
}

func TestFileTrackerCapsABatch(t *testing.T) {
	now := time.Date(2026, 1, 28, 0, 0, 0, 0, time.UTC)
	l := FileTracker{Interval: time.Minute}
	open := []File{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	assert.Len(t, l.Due(open, now, 2), 2)
	got := l.Due(open, now.Add(time.Second), 2)
	assert.True(t, len(got) == 1 && got[0].Key == "c", "then %v, want c", got)
}

// Where nobody says when the work on a file ends, it is given again after a long pause.
func TestFileTrackerAwaitsTheEnd(t *testing.T) {
	start := time.Date(2026, 1, 28, 0, 0, 0, 0, time.UTC)
	l := FileTracker{Interval: time.Minute, AwaitEnd: true}
	open := []File{{Key: "a", ETag: "1"}}
	for _, poll := range []struct {
		at  time.Duration
		due int
	}{{0, 1}, {9 * time.Minute, 0}, {10 * time.Minute, 1}, {19 * time.Minute, 0}, {20 * time.Minute, 1}} {
		assert.Len(t, l.Due(open, start.Add(poll.at), 10), poll.due, "after %v", poll.at)
	}
}
