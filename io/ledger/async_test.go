package ledger

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

// An asynchronous run has no launcher: Load finds its state in what its workers wrote,
// and the next run writes it to the state object.
func TestAsynchronousRun(t *testing.T) {
	cancel, pause := Control{Action: ActionCancel}, Control{Action: ActionPause}
	total := func(name string) *Tally { return &Tally{Counts: Counts{"domains_collected": 3, name: 1}} }
	for name, c := range map[string]struct {
		unbounded bool
		control   Control
		total     *Tally
		after     time.Duration // since the control object and the total were written
		working   bool          // a worker has the lease of a lane
		want      State
		finished  time.Duration // after the total, the control object
	}{
		"submitted":                          {want: Running},
		"paused":                             {control: pause, want: Paused},
		"come to its end":                    {total: total("x"), after: time.Hour, want: Done},
		"our network was down":               {total: total(Outage), want: Failed},
		"a worker stopped it":                {total: total(WorkersStopped), control: cancel, want: Failed},
		"the store did not take all":         {total: total(NotStored), want: Failed},
		"kept nothing":                       {total: &Tally{Counts: Counts{"domains_collected": 3}, DeadLetters: Counts{"refused": 1}}, want: Failed},
		"a lane was lost":                    {total: total(LanesLost), want: Failed},
		"cancelled, and reported":            {total: total(LanesLost), control: cancel, want: Cancelled},
		"cancelled":                          {control: cancel, after: cancelDelay, want: Running},
		"cancelled, no worker left":          {control: cancel, after: cancelDelay + 1, want: Cancelled, finished: cancelDelay},
		"told to stop, still at work":        {control: cancel, after: time.Minute, working: true, want: Running},
		"endless, with a part of its total":  {unbounded: true, total: total("x"), want: Running},
		"endless, cancelled":                 {unbounded: true, total: total("x"), control: cancel, after: time.Minute, want: Cancelled, finished: cancelDelay},
		"endless, cancelled, still at work":  {unbounded: true, total: total("x"), control: cancel, after: time.Minute, working: true, want: Running},
		"endless, paused, a part of a total": {unbounded: true, total: total("x"), control: pause, want: Paused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := storetest.NewMemory(), t.Context()
				force, err := ForceID(ctx, s, "seed", "abc", true)
				require.NoError(t, err)
				_, err = ForceID(ctx, s, "seed", "other", true)
				require.NoError(t, err)
				require.NoError(t, Start(ctx, s, Run{RunID: "r1", Job: "seed", StartedAt: time.Now(), ForceID: force}))
				require.NoError(t, Detach(ctx, s, "r1", "2026-11-21_x", c.unbounded, Purpose{Kept: "kept", Refused: "refused"}))
				require.NoError(t, WriteProgress(ctx, s, "r1", "p", Progress{Tally: Tally{Counts: Counts{"domains_collected": 2}}}))
				at := time.Now()
				if c.control.Action != "" {
					c.control.At = at
					require.NoError(t, WriteControl(ctx, s, "r1", c.control))
				}
				collected := int64(2) // by the progress of the lanes
				if c.total != nil {
					require.NoError(t, WriteTotal(ctx, s, "r1", *c.total))
					collected = 3
				}
				time.Sleep(c.after)
				if c.working {
					_, err := lease.Acquire(ctx, lease.InStore(s), LanesOf("seed")+"/16/3", lease.Holder{Host: "vm", RunID: "r1"}, time.Hour)
					require.NoError(t, err)
				}
				var finished time.Time
				if c.want.Over() {
					finished = at.Add(c.finished).UTC()
				}
				check := func() {
					t.Helper()
					r, err := Load(ctx, s, "r1")
					require.NoError(t, err)
					require.Equal(t, c.want, r.State)
					require.Equal(t, finished, r.FinishedAt)
					require.Equal(t, "2026-11-21_x", r.RunnerJob)
					report, err := ReportSoFar(ctx, s, Job{}, r, time.Now())
					require.NoError(t, err)
					require.Equal(t, c.want, report.State)
					require.Equal(t, collected, report.Counts["domains_collected"])
					require.NotContains(t, report.Counts, Outage)
				}
				check()
				require.Contains(t, s.M["runs/r1/state.json"], `"state": "running"`, "who only looks writes nothing")

				atWork, err := ActiveAsync(ctx, s, "seed")
				require.NoError(t, err)
				require.Equal(t, map[bool]string{false: "r1"}[c.want.Over()], atWork)
				atWork, err = ActiveAsync(ctx, s, "docs")
				require.NoError(t, err)
				require.Empty(t, atWork, "another job's")

				// The next run of the job.
				for _, closing := range []func() error{
					func() error { return CloseHolder(ctx, s, lease.Holder{RunID: "r1"}, time.Now()) },
					func() error { return CloseAbandoned(ctx, s, "seed", time.Now()) },
				} {
					err := closing()
					var busy *NotEndedError
					if require.Equal(t, !c.want.Over(), errors.As(err, &busy), "%v", err); busy != nil {
						require.Equal(t, "r1", busy.Run.RunID)
						require.Equal(t, c.control.Action == ActionCancel, busy.Cancelled)
						require.Contains(t, err.Error(), "run r1 ")
					} else {
						require.NoError(t, err)
						require.Contains(t, s.M["runs/r1/state.json"], `"state": "`+string(c.want)+`"`)
					}
				}
				check()
				again, err := ForceID(ctx, s, "seed", "abc", false)
				require.NoError(t, err)
				require.Equal(t, c.want == Done, again == "", "a complete run's force is cleared")
				other, err := ForceID(ctx, s, "seed", "other", false)
				require.NoError(t, err)
				require.NotEmpty(t, other)
			})
		})
	}
}

// After the next run has closed an asynchronous run, its end stays, and a later control
// object does not change it.
func TestClosedAsyncRunStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := storetest.NewMemory(), t.Context()
		require.NoError(t, Start(ctx, s, Run{RunID: "r1", Job: "seed", StartedAt: time.Now()}))
		require.NoError(t, Detach(ctx, s, "r1", "j", false, Purpose{}))
		require.NoError(t, WriteTotal(ctx, s, "r1", Tally{}))
		require.NoError(t, CloseAbandoned(ctx, s, "seed", time.Now()))
		require.NoError(t, WriteControl(ctx, s, "r1", Control{Action: ActionCancel, At: time.Now()}))
		r, err := Load(ctx, s, "r1")
		require.NoError(t, err)
		require.Equal(t, Done, r.State)
	})
}
