package launch

import (
	"bytes"
	"encoding/json"
	"log"
	"log/slog"
	"testing"

	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/stretchr/testify/require"
)

// What a runner or a library logs is the text of an event: its first line, such as a Java
// exception, is no event's name.
func TestRunnerMessagesAreText(t *testing.T) {
	before, flags, out := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(out)
		beamlog.SetLogger(quiet{})
	})
	var b bytes.Buffer
	quietBeam(slog.New(slog.NewJSONHandler(&b, nil)))
	const stack = "java.lang.RuntimeException: lost\n\tat org.apache.flink.Task.run(Task.java:1)"
	beamlog.Error(t.Context(), stack)
	slog.Error("stage failed", "stage", "s1")
	slog.Warn("nothing of it is shown")
	var got []map[string]any
	for lines := json.NewDecoder(&b); lines.More(); {
		var e map[string]any
		require.NoError(t, lines.Decode(&e))
		delete(e, "time")
		got = append(got, e)
	}
	require.Equal(t, []map[string]any{
		{"level": "ERROR", "msg": "library_message", "text": stack},
		{"level": "ERROR", "msg": "library_message", "text": "stage failed", "stage": "s1"},
	}, got)
}
