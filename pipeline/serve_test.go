package pipeline

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServe settles what the runs of a server share.
func TestServe(t *testing.T) {
	t.Setenv("SEED_RATE", "7")
	dir := t.TempDir()
	s, environ, log, err := Serve(t.Context(), []string{"--store=" + dir, "--web=demo"}, map[string]string{"web": "live", "rate": "9", "concurrency": "5"}, io.Discard)
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
		{[]string{"runs"}, nil, "flags alone"},
		{[]string{"--store=" + dir + "/none"}, nil, "--store"},
	} {
		_, _, _, err := Serve(t.Context(), c.args, c.file, io.Discard)
		var usage interface{ Usage() }
		assert.ErrorAs(t, err, &usage, "%v %v", c.args, c.file)
		assert.ErrorContains(t, err, c.says)
	}
}
