package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// TestServe checks the options that all runs of a server share.
func TestServe(t *testing.T) {
	t.Setenv("SEED_RATE", "7")
	dir := t.TempDir()
	s, environ, log, _, _, err := Serve(t.Context(), []string{"--store=" + dir, "--web=demo"}, map[string]string{"web": "live", "rate": "9", "concurrency": "5"}, io.Discard)
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
		{[]string{"runs"}, nil, "write pipeline serve"},
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
		_, _, _, _, _, err := Serve(t.Context(), c.args, c.file, io.Discard)
		assert.True(t, usage.Is(err), "%v %v", c.args, c.file)
		assert.ErrorContains(t, err, c.says)
	}
}

// A server knows before it starts a run that its names are unknown, by its own options and by what people keep in the store.
func TestServeChecksRuns(t *testing.T) {
	dir := t.TempDir()
	s, _, _, _, starts, err := Serve(t.Context(), []string{"--store=" + dir, "--web=demo", "--concurrency=5"}, map[string]string{"keep-html": "true"}, io.Discard)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	for _, c := range []struct{ job, flag, says string }{
		{"docs", "--provider=strpe", "--provider=strpe: there is no such provider; known are"},
		{"docs", "--provider=stripe", ""},
		{"docs", "--provider=acme", "there is no such provider"},
		{"catalog", "--site=matt", "--site=matt: there is no such site; known are"},
		{"catalog", "--site=gadgets", ""},
		{"news", "--publisher=nobody", "--publisher=nobody: there is no such enabled publisher"},
		{"seed", "--country=sg", ""},
	} {
		err := starts.Refuse(t.Context(), c.job, []string{c.flag}, false)
		if c.says == "" {
			assert.NoError(t, err, c.flag)
			continue
		}
		assert.True(t, usage.Is(err), c.flag)
		assert.ErrorContains(t, err, c.says)
	}
	text := `{"policy":"provider_id: acme\nseed_urls: [https://docs.acme.example/]\nallowed_path_patterns: [/**]\n"}`
	_, err = kept.On(s, policy.Kind(nil).Kept()).Add(t.Context(), "acme", 0, kept.Version{At: time.Now(), Who: "x", Action: "provider_add", Body: []byte(text)})
	require.NoError(t, err)
	assert.NoError(t, starts.Refuse(t.Context(), "docs", []string{"--provider=acme"}, true))
	assert.ErrorContains(t, starts.Refuse(t.Context(), "docs", []string{"--provider=acmee"}, true), "there is no such provider; known are acme, ant")
}

// Runs on a cluster are checked too: what the server was given for Beam does not get lost, and a
// database that only the workers reach stops none.
func TestServeChecksRunsOfClusters(t *testing.T) {
	emptyEnv(t)
	t.Setenv("SEED_DB", "postgres://seed:dbPassw0rd@127.0.0.1:1/seed")
	s, err := store.Open(t.Context(), "mem://checks")
	require.NoError(t, err)
	for _, line := range []string{onDataflow, "--runner=flink --endpoint=localhost:8099 --environment_type=PROCESS --parallelism=2 --store=gs://b",
		"--runner=flink --endpoint=localhost:8099 --environment_type=LOOPBACK --parallelism=2 --store=gs://b"} {
		resetBeam(t)
		o, err := parseOptions(strings.Fields(line), io.Discard)
		require.NoError(t, err, line)
		given := o.Flags.Given()
		refused := func(job string, flags ...string) error {
			_, err := o.checkRun(t.Context(), s, given, job, flags, false)
			return err
		}
		assert.NoError(t, refused("seed", "--country=sg"), line)
		if o.WorkersElsewhere {
			assert.NoError(t, refused("docs", "--provider=stripe"), line)
		}
		for _, wrong := range [][2]string{{"docs", "--provider=strpe"}, {"news", "--publisher=nobody"}} {
			assert.ErrorContains(t, refused(wrong[0], wrong[1:]...), "there is no such", line)
		}
	}
}
