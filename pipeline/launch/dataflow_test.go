package launch

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// parsed returns the options of a command line, unchecked.
func parsed(t *testing.T, args string) Options {
	t.Helper()
	flag.CommandLine.VisitAll(func(f *flag.Flag) { // Beam's own flags are global to the process
		if was := f.Value.String(); !strings.HasPrefix(f.Name, "test.") {
			t.Cleanup(func() {
				if f.Value.String() != was {
					require.NoError(t, f.Value.Set(was))
				}
			})
		}
	})
	o := Options{Flags: option.New("")}
	o.LogFormat, o.LogLevel = "json", "error"
	o.Flags.StringVar(&o.Runner, "runner", "direct", "")
	o.Flags.IntVar(&o.Concurrency, "concurrency", 64, "")
	o.Flags.Float64Var(&o.Rate, "rate", 0, "")
	AddBeamFlags(o.Flags.FlagSet)
	require.NoError(t, o.Flags.Parse(strings.Fields(args)))
	return o
}

const onDataflow = "--runner=dataflow --project=p --region=r --staging_location=gs://b/s "

// However many workers and threads are requested, all of them together keep
// --rate and --concurrency. Each one sends at least one request at a time, so
// their number is limited.
func TestDataflowUnderTheLimits(t *testing.T) {
	for _, c := range []struct {
		args                  string
		workers, threads, all int
	}{
		{onDataflow, 1, 4, 4},
		{onDataflow + "--num_workers=8", 8, 4, 32},
		{onDataflow + "--num_workers=8 --number_of_worker_harness_threads=12", 8, 8, 64},
		{onDataflow + "--num_workers=100", 64, 1, 64},
		{onDataflow + "--num_workers=100 --concurrency=1000", 100, 4, 400},
		{onDataflow + "--num_workers=3 --concurrency=8", 3, 2, 6},
		{onDataflow + "--num_workers=3 --concurrency=1", 1, 1, 1},
		{onDataflow + "--num_workers=3 --rate=5.9", 3, 1, 3},
		{onDataflow + "--num_workers=3 --rate=0.2", 1, 1, 1},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := parsed(t, c.args)
			require.Equal(t, c.all, o.Slots())
			require.LessOrEqual(t, c.workers*c.threads, o.maxSlots())
			require.NoError(t, o.dataflowWorkers())
			require.Equal(t, []string{fmt.Sprint(c.workers), fmt.Sprint(c.threads), "NONE"},
				[]string{o.beam("num_workers"), o.beam("number_of_worker_harness_threads"), o.beam("autoscaling_algorithm")}, "the numbers that Dataflow gets")
			require.Equal(t, c.all, o.Slots(), "the number of slots does not change")
		})
	}
}

// With autoscaling Dataflow may have as many workers as the limits allow, and not
// more, because each sends at least one request at a time.
func TestDataflowAutoscales(t *testing.T) {
	for _, c := range []struct {
		args                        string
		workers, most, threads, all int
	}{
		{onDataflow + "--autoscaling_algorithm=THROUGHPUT_BASED", 1, 16, 4, 64},
		{onDataflow + "--max_num_workers=5", 1, 5, 4, 20},
		{onDataflow + "--autoscaling_algorithm=THROUGHPUT_BASED --max_num_workers=5 --num_workers=2", 2, 5, 4, 20},
		{onDataflow + "--max_num_workers=32 --num_workers=4", 4, 32, 2, 64},
		{onDataflow + "--max_num_workers=100", 1, 64, 1, 64},
		{onDataflow + "--max_num_workers=100 --concurrency=1000", 1, 100, 4, 400},
		{onDataflow + "--autoscaling_algorithm=THROUGHPUT_BASED --num_workers=100", 64, 64, 1, 64},
		{onDataflow + "--autoscaling_algorithm=THROUGHPUT_BASED --number_of_worker_harness_threads=1 --concurrency=10", 1, 10, 1, 10},
		{onDataflow + "--max_num_workers=8 --rate=0.2", 1, 1, 1, 1},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := parsed(t, c.args)
			require.NoError(t, o.checkDataflow())
			require.Equal(t, c.all, o.Slots())
			require.LessOrEqual(t, c.most*c.threads, o.maxSlots())
			require.NoError(t, o.dataflowWorkers())
			require.Equal(t, []string{fmt.Sprint(c.workers), fmt.Sprint(c.most), fmt.Sprint(c.threads), "THROUGHPUT_BASED"},
				[]string{o.beam("num_workers"), o.beam("max_num_workers"), o.beam("number_of_worker_harness_threads"), o.beam("autoscaling_algorithm")}, "what Dataflow gets")
			require.Equal(t, c.all, o.Slots(), "the number of slots does not change")
		})
	}
}

func TestRemedyOfFlinksErrors(t *testing.T) {
	o := parsed(t, "--runner=flink --endpoint=localhost:8099 --environment_type=EXTERNAL --parallelism=16")
	for said, want := range map[string]string{
		"job x failed:\njava.io.IOException: Insufficient number of network buffers: required 512, but only 389 available": "taskmanager.memory.network.min",
		"job x failed:\njava.util.concurrent.TimeoutException":                                                             "16 free task slots",
		"NoResourceAvailableException: Slot request bulk is not fulfillable!":                                              "16 free task slots",
		"job x failed:\nexit status 1": "^$",
	} {
		require.Regexp(t, want, o.remedy(errors.New(said)), said)
	}
}

// A temporary error of Dataflow's API does not end the wait, because the job
// continues. A refusal ends it.
func TestAwaitDataflow(t *testing.T) {
	unavailable, forbidden := &googleapi.Error{Code: 503}, &googleapi.Error{Code: 403, Message: "no right to look"}
	type answer struct {
		state string
		err   error
	}
	running, done := answer{state: "JOB_STATE_RUNNING"}, answer{state: "JOB_STATE_DONE"}
	var everyKind []answer
	for _, err := range []error{&googleapi.Error{Code: 500}, &googleapi.Error{Code: 502}, &googleapi.Error{Code: 504}, &googleapi.Error{Code: 408},
		&net.DNSError{Err: "no such host", IsNotFound: true}, &tls.CertificateVerificationError{Err: errors.New("expired")}, syscall.ECONNRESET,
		context.DeadlineExceeded /* of one request */} {
		everyKind = append(everyKind, answer{err: &url.Error{Op: "Get", URL: "https://dataflow.googleapis.com", Err: err}})
	}
	for name, c := range map[string]struct {
		answers []answer
		err     string
		took    time.Duration
	}{
		"one 503":         {[]answer{running, {err: unavailable}, running, done}, "", 30*time.Second + time.Second + 30*time.Second},
		"at first":        {[]answer{{err: unavailable}, done}, "", time.Second},
		"no connection":   {[]answer{{err: io.ErrUnexpectedEOF}, {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, done}, "", 3 * time.Second},
		"too many":        {[]answer{{err: &googleapi.Error{Code: 429}}, done}, "", time.Second},
		"every kind":      {append(everyKind, done), "", 121 * time.Second},
		"unauthorized":    {[]answer{running, {err: &googleapi.Error{Code: 401}}}, "may still run there", 30 * time.Second},
		"no such job":     {[]answer{running, {err: &googleapi.Error{Code: 404}}}, "may still run there", 30 * time.Second},
		"bad request":     {[]answer{running, {err: &googleapi.Error{Code: 400}}}, "may still run there", 30 * time.Second},
		"for minutes":     {append(slices.Repeat([]answer{{err: unavailable}}, 8), done), "", 121 * time.Second}, // 1 2 4 8 16 30 30 30
		"refused":         {[]answer{running, {err: forbidden}}, "job-1.*no right to look.*may still run there", 30 * time.Second},
		"failed":          {[]answer{running, {state: "JOB_STATE_FAILED"}}, "job-1 failed at Dataflow", 30 * time.Second},
		"cancelled there": {[]answer{running, {state: "JOB_STATE_CANCELLED"}}, "", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, asked := time.Now(), 0
				err := awaitDataflow(t.Context(), Options{RunOptions: pipeline.RunOptions{LogFormat: "json", LogLevel: "error"}}, dataflowJob{id: "job-1", cancelledAt: never, state: func(context.Context) (string, error) {
					a := c.answers[asked]
					asked++
					return a.state, a.err
				}})
				if c.err == "" {
					require.NoError(t, err)
				} else {
					require.Regexp(t, c.err, err)
				}
				require.Equal(t, len(c.answers), asked)
				require.Equal(t, c.took, time.Since(begin))
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := awaitDataflow(ctx, Options{RunOptions: pipeline.RunOptions{LogFormat: "json", LogLevel: "error"}}, dataflowJob{id: "job-1", cancelledAt: never, state: func(context.Context) (string, error) {
		cancel()
		return "JOB_STATE_RUNNING", nil
	}})
	require.ErrorIs(t, err, context.Canceled)
}

func never(context.Context) (time.Time, error) { return time.Time{}, nil }

// After half an hour without an answer the program ends. A watch waits for its batch without end.
func TestDataflowIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{RunOptions: pipeline.RunOptions{Job: "seed", LogFormat: "text", LogLevel: "error"}}
		begin, asked := time.Now(), 0
		err := awaitDataflow(t.Context(), o, dataflowJob{id: "job-1", cancelledAt: never, state: func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "JOB_STATE_RUNNING", nil
			}
			return "", &googleapi.Error{Code: 503}
		}})
		require.Regexp(t, "job job-1: no answer for 30m0s.*503.*may still run there", err)
		require.InDelta(t, (30 * time.Minute).Seconds(), time.Since(begin).Seconds(), 31)
	})
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		o := Options{RunOptions: pipeline.RunOptions{LogFormat: "json", LogLevel: "error"}}
		o.Watch = time.Minute
		require.NoError(t, awaitDataflow(t.Context(), o, dataflowJob{id: "job-1", cancelledAt: never, state: func(context.Context) (string, error) {
			if asked++; asked < 1000 {
				return "", io.ErrUnexpectedEOF
			}
			return "JOB_STATE_DONE", nil
		}}))
	})
}

// A job that is still there after its run was cancelled is cancelled at Dataflow, once.
func TestCancelAtDataflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, asked := time.Now(), []time.Duration{}
		err := awaitDataflow(t.Context(), Options{RunOptions: pipeline.RunOptions{LogFormat: "json", LogLevel: "error"}}, dataflowJob{id: "job-1",
			state: func(context.Context) (string, error) {
				if time.Since(begin) < 5*time.Minute {
					return "JOB_STATE_PENDING", nil
				}
				return "JOB_STATE_CANCELLED", nil
			},
			cancelledAt: func(context.Context) (time.Time, error) {
				if time.Since(begin) < time.Minute {
					return time.Time{}, nil
				}
				return begin.Add(time.Minute), nil
			},
			cancel: func(context.Context) error {
				if asked = append(asked, time.Since(begin)); len(asked) == 1 {
					return &googleapi.Error{Code: 503} // it is tried again
				}
				return nil
			}})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{150 * time.Second, 180 * time.Second}, asked)
	})
}
