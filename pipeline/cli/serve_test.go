package cli

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServe checks the options that all runs of a server share.
func TestServe(t *testing.T) {
	t.Setenv("SEED_RATE", "7")
	dir := t.TempDir()
	s, environ, log, _, err := Serve(t.Context(), []string{"--store=" + dir, "--web=demo"}, map[string]string{"web": "live", "rate": "9", "concurrency": "5"}, io.Discard)
	require.NoError(t, err)
	assert.NoError(t, s.Close())
	assert.NotNil(t, log)
	assert.Equal(t, []string{"SEED_PROGRESS=off", "SEED_CONCURRENCY=5", "SEED_LOG_FORMAT=json", "SEED_RATE=7", "SEED_STORE=" + dir, "SEED_WEB=demo"}, environ,
		"a flag beats the environment, which beats the file")
	for _, c := range []struct {
		args []string
		file map[string]string
		says string
	}{
		{[]string{"--force"}, nil, "for one run"},
		{nil, map[string]string{"country": "sg"}, "for one run"},
		{[]string{"--surprise"}, nil, "surprise"},
		{nil, map[string]string{"surprise": "x"}, "unknown key"},
		{nil, map[string]string{"lanes": "x"}, "no value for"},
		{[]string{"--store=mem://x"}, nil, "each run is a process of its own"},
		{[]string{"runs"}, nil, "only flags"},
		{[]string{"--store=" + dir + "/none"}, nil, "--store"},
		{[]string{"--runner=drect"}, nil, "there is no such runner"},
		{[]string{"--concurrency=0"}, nil, "use 1 to 10000"},
		{nil, map[string]string{"lanes": "-1"}, "--lanes=-1"},
		{[]string{"--store=s3://b", "--runner=flink"}, nil, "--runner=flink needs --endpoint"},
		{[]string{"--store=s3://b", "--runner=flink", "--endpoint=localhost:8099"}, nil, "needs --environment_type"},
		{[]string{"--store=" + dir, "--runner=flink", "--endpoint=localhost:8099", "--environment_type=PROCESS"}, nil, "is seen by this machine only"},
		{[]string{"--store=gs://b", "--runner=dataflow"}, nil, "--runner=dataflow needs --project"},
		{[]string{"--store=gs://b", "--runner=dataflow", "--project=p", "--region=r", "--staging_location=/tmp"}, nil, "Dataflow stages in Google Cloud Storage"},
		{[]string{"--web=demo", "--store=gs://b", "--runner=dataflow", "--project=p", "--region=r", "--staging_location=gs://b/s"}, nil, "lives in this process"},
	} {
		_, _, _, _, err := Serve(t.Context(), c.args, c.file, io.Discard)
		var usage interface{ Usage() }
		assert.ErrorAs(t, err, &usage, "%v %v", c.args, c.file)
		assert.ErrorContains(t, err, c.says)
	}
}
