package pipeline

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const onDataflow = "--runner=dataflow --project=p --region=r --staging_location=gs://b/s --store=gs://b "

// However many workers and threads are asked for, those at work keep --rate and
// --concurrency together, each with one request in flight, or sent, at least.
func TestSlotsUnderTheLimits(t *testing.T) {
	emptyEnv(t)
	const onFlink = "--runner=flink --endpoint=localhost:8099 --store=s3://b --environment_type=EXTERNAL --parallelism=16 "
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
		{onFlink, 0, 0, 16},
		{onFlink + "--concurrency=3", 0, 0, 3},
		{onFlink + "--rate=2", 0, 0, 2},
	} {
		t.Run(c.args, func(t *testing.T) {
			resetBeam(t)
			o, err := parseOptions(strings.Fields(c.args), io.Discard)
			require.NoError(t, err)
			require.Equal(t, c.all, o.slots())
			require.Equal(t, 16*c.all, o.Lanes)
			if c.workers == 0 {
				return
			}
			require.LessOrEqual(t, c.workers*c.threads, o.mostSlots())
			require.NoError(t, o.dataflowWorkers())
			require.Equal(t, []string{fmt.Sprint(c.workers), fmt.Sprint(c.threads), "NONE"},
				[]string{o.beam("num_workers"), o.beam("number_of_worker_harness_threads"), o.beam("autoscaling_algorithm")}, "what Dataflow is asked for")
			require.Equal(t, c.all, o.slots(), "it stays so")
		})
	}
}

func TestDataflowRefusals(t *testing.T) {
	emptyEnv(t)
	for args, want := range map[string][]string{
		onDataflow + "--autoscaling_algorithm=THROUGHPUT_BASED":      {"--autoscaling_algorithm=THROUGHPUT_BASED", "--num_workers"},
		onDataflow + "--template_location=gs://b/t":                  {"--template_location", "leave it out"},
		onDataflow + "--num_workers=-1":                              {"--num_workers=-1", "1 to 10000"},
		onDataflow + "--number_of_worker_harness_threads=20000":      {"--number_of_worker_harness_threads=20000", "1 to 10000"},
		onDataflow + "--worker_binary=/nowhere":                      {"--worker_binary", "/nowhere"},
		onDataflow + "--worker_binary=.":                             {"--worker_binary=.", "no file"},
		onDataflow + "--async --watch=1m":                            {"--async with --watch", "--streaming"},
		onDataflow + "--async --report=-":                            {"--async with --report", "runs show ID"},
		onDataflow + "--async --strict":                              {"--async with --strict", "leave --strict out"},
		"--runner=prism --async --store=s":                           {"--async is for --runner=dataflow"},
		"--runner=direct --execute_async --store=s":                  {"--async is for --runner=dataflow"},
		"--runner=flink --endpoint=localhost:8099 --async --store=s": {"--async is for --runner=dataflow", "flink"},
	} {
		t.Run(args, func(t *testing.T) {
			resetBeam(t)
			_, err := parseOptions(strings.Fields(args), io.Discard)
			var usage *usageError
			require.ErrorAs(t, err, &usage)
			for _, part := range want {
				require.Contains(t, err.Error(), part)
			}
		})
	}
	resetBeam(t)
	o, err := parseOptions(strings.Fields(onDataflow+"--async --watch=1m --streaming"), io.Discard)
	require.NoError(t, err)
	require.True(t, o.async())
}
