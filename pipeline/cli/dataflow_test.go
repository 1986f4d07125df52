package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/usage"
)

const onDataflow = "--runner=dataflow --project=p --region=r --staging_location=gs://b/s --store=gs://b "

// However many workers and threads are requested, all of them together keep
// --rate and --concurrency. Each one sends at least one request at a time, so
// their number is limited.
func TestSlotsUnderTheLimits(t *testing.T) {
	emptyEnv(t)
	const onFlink = "--runner=flink --endpoint=localhost:8099 --store=s3://b --environment_type=EXTERNAL --parallelism=16 "
	for _, c := range []struct {
		args string
		all  int
	}{
		{onDataflow, 4},
		{onDataflow + "--num_workers=3 --rate=5.9", 3},
		{onFlink, 16},
		{onFlink + "--concurrency=3", 3},
		{onFlink + "--rate=2", 2},
	} {
		t.Run(c.args, func(t *testing.T) {
			resetBeam(t)
			o, err := parseOptions(strings.Fields(c.args), io.Discard)
			require.NoError(t, err)
			require.Equal(t, c.all, o.Slots())
			require.Equal(t, 16*c.all, o.Lanes)
		})
	}
}

func TestDataflowRefusals(t *testing.T) {
	emptyEnv(t)
	for args, want := range map[string][]string{
		onDataflow + "--autoscaling_algorithm=BASIC":                                                                  {"--autoscaling_algorithm=BASIC", "NONE or THROUGHPUT_BASED"},
		onDataflow + "--autoscaling_algorithm=NONE --max_num_workers=5":                                               {"--max_num_workers=5", "leave one of them out"},
		onDataflow + "--num_workers=6 --max_num_workers=5":                                                            {"--num_workers=6", "--max_num_workers=5"},
		onDataflow + "--template_location=gs://b/t":                                                                   {"--template_location", "leave it out"},
		onDataflow + "--update":                                                                                       {"--update", "runs cancel ID"},
		onDataflow + "--max_num_workers=-1":                                                                           {"--max_num_workers=-1", "1 to 10000"},
		onDataflow + "--num_workers=-1":                                                                               {"--num_workers=-1", "1 to 10000"},
		onDataflow + "--number_of_worker_harness_threads=20000":                                                       {"--number_of_worker_harness_threads=20000", "1 to 10000"},
		onDataflow + "--worker_binary=/nowhere":                                                                       {"--worker_binary", "/nowhere"},
		onDataflow + "--worker_binary=.":                                                                              {"--worker_binary=.", "no file"},
		"--runner=spark --endpoint=localhost:8099 --store=s3://b --environment_type=PROCESS":                          {"--runner=spark needs --parallelism", "executors"},
		"--runner=spark --endpoint=localhost:8099 --store=s3://b --environment_type=PROCESS --parallelism=-1":         {"--runner=spark needs --parallelism"},
		"--runner=spark --endpoint=localhost:8099 --store=s3://b --environment_type=PROCESS --parallelism=8 --rate=3": {"--parallelism=8", "use 3"},
		"--runner=universal --endpoint=localhost:8099 --store=s3://b --environment_type=LOOPBACK":                     {"--runner=universal needs --parallelism"},
		onDataflow + "--async":                                                                                        {"--async", "leave it out"},
		"--runner=prism --async --store=s":                                                                            {"--async", "leave it out"},
		"--runner=direct --execute_async --store=s":                                                                   {"--async", "leave it out"},
		"--runner=flink --endpoint=localhost:8099 --async --store=s":                                                  {"--async", "leave it out"},
	} {
		t.Run(args, func(t *testing.T) {
			resetBeam(t)
			_, err := parseOptions(strings.Fields(args), io.Discard)
			require.True(t, usage.Is(err), err)
			for _, part := range want {
				require.Contains(t, err.Error(), part)
			}
		})
	}
}
