package launch

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

// A job whose worker was lost is submitted again, three times at most and after
// a pause. A failure that would come back, a cancel or a job server that is gone ends
// the run.
func TestRestarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	const lost = "job x failed:\njava.lang.Exception: TaskManager with id tm1 is no longer reachable."
	for name, c := range map[string]struct {
		args   string
		errs   []string      // of the tries; "" is a success
		works  time.Duration // each try, before it ends
		cancel bool          // during the first pause
		stream bool
		tries  int
		pause  time.Duration
		err    string
	}{
		"done at once":      {errs: []string{""}, tries: 1},
		"one lost":          {errs: []string{lost, ""}, tries: 2, pause: 10 * time.Second},
		"no heartbeat":      {errs: []string{"job x failed:\njava.util.concurrent.TimeoutException: Heartbeat of TaskManager with id tm1 timed out.", ""}, tries: 2, pause: 10 * time.Second},
		"a lost start":      {errs: []string{"job x failed:\njava.util.concurrent.TimeoutException: Waited 3 minutes (plus 185578 nanoseconds delay) for SettableFuture@138cd9ee[status=PENDING]", ""}, tries: 2, pause: 10 * time.Second},
		"lost every time":   {errs: []string{lost, lost, lost, lost}, tries: 4, pause: 30 * time.Second, err: "no longer reachable"},
		"lost each hour":    {errs: []string{lost, lost, lost, lost, lost, ""}, works: time.Hour, tries: 6, pause: 6*time.Hour + 50*time.Second},
		"lost sooner":       {errs: []string{lost, lost, lost, lost}, works: time.Hour - 1, tries: 4, pause: 4*(time.Hour-1) + 30*time.Second, err: "no longer reachable"},
		"a stream, lost":    {stream: true, errs: []string{lost, lost, ""}, works: 300 * time.Hour, tries: 3, pause: 900*time.Hour + 20*time.Second},
		"cancelled":         {errs: []string{lost}, cancel: true, tries: 1, pause: 2 * time.Second, err: "no longer reachable"},
		"a worker's reason": {errs: []string{"a worker says: opening the worker's store: no such directory; job x failed:"}, tries: 1, err: "no such directory"},
		"no slots":          {errs: []string{"job x failed:\nNoResourceAvailableException"}, tries: 1, err: "NoResource"},
		"no buffers":        {errs: []string{"job x failed:\nInsufficient number of network buffers: required 512"}, tries: 1, err: "buffers"},
		"server gone":       {errs: []string{"rpc error: code = Unavailable desc = error reading from server: EOF"}, tries: 1, err: "Unavailable"},
		"workers here":      {args: " --environment_type=LOOPBACK", errs: []string{lost}, tries: 1, err: "no longer reachable"},
		"no server later":   {args: " --endpoint=127.0.0.1:1", errs: []string{lost}, tries: 1, pause: 10 * time.Second, err: "no longer reachable"},
	} {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, "--runner=flink --parallelism=2 --environment_type=PROCESS --endpoint="+l.Addr().String()+c.args)
			o.Streaming = c.stream
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewMemory()
				r := &run{store: s, o: o, job: "seed", id: "r1", lostLease: make(chan struct{})}
				require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: "r1", Job: "seed"}))
				begin, tries := time.Now(), 0
				err := r.again(t.Context(), "r1", func() error {
					tries++
					time.Sleep(c.works)
					if c.cancel {
						require.NoError(t, ledger.WriteControl(t.Context(), s, "r1", ledger.Control{Action: ledger.ActionCancel, At: begin}))
					}
					if said := c.errs[tries-1]; said != "" {
						return errors.New(said)
					}
					return nil
				})
				require.Equal(t, c.tries, tries)
				require.Equal(t, c.pause, time.Since(begin))
				if c.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.err)
				}
			})
		})
	}
}
