package launch

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The options of a stream have Beam's names, and are sent together with those
// that Beam's own runner sends.
func TestStreamOptions(t *testing.T) {
	text, err := json.Marshal(asStream(runtime.RawOptionsWrapper{Parallelism: 4}))
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(text, &got))
	for name, want := range map[string]any{"streaming": true, "parallelism": 4., "max_bundle_time_mills": 100., "number_of_execution_retries": 3., "execution_retry_delay": 10000.} {
		v := got["beam:option:"+name+":v1"]
		assert.True(t, v == want, "%s is %v, want %v, in %s", name, v, want, text)
	}
}

func TestOfWorker(t *testing.T) {
	for _, c := range []struct{ err, want string }{
		{"job x failed:\njava.lang.RuntimeException: process bundle failed for instruction 1 using plan 4-2 : while executing Up for Plan[4-2]:\n10: ParDo[seed.listFn] Out:[2 9]\n\tcaused by:\n" +
			"DoFn[UID:10, PID:e2, Name: seed.listFn] failed:\nopening the worker's store: no such directory", "a worker says: opening the worker's store: no such directory"},
		{"job x failed:\nthe TaskManager is gone", "job x failed:\nthe TaskManager is gone"},
		{"caused by:\nDoFn[1] is odd", "caused by:\nDoFn[1] is odd"},
	} {
		got := ofWorker(errors.New(c.err))
		assert.Equal(t, c.want, got.Error(), "%q becomes %q, want", c.err, got)
	}
	assert.NoError(t, ofWorker(nil), "no error becomes")
}
