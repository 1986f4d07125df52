package lane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// TestRunLog: a run's log is in the store, errors within a second, other lines within
// logEvery, the last lines at the end. Each line has its run and job. When the log is
// full, it still has the warnings and errors.
func TestRunLog(t *testing.T) {
	s := memory(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		read := func() string {
			t.Helper()
			b, err := ledger.ReadLog(ctx, s, "r1")
			require.True(t, err == nil || errors.Is(err, store.ErrNotExist), err)
			return string(b)
		}
		end, err := KeepLog(ctx, s, "r1", "")
		require.NoError(t, err)
		log := RunLogger(Config{Job: "seed", RunID: "r1", LogLevel: 12})
		log.Info("calm")
		log.Debug("nothing")
		time.Sleep(logEvery - time.Second)
		assert.Equal(t, "", read(), "kept at once")
		time.Sleep(2 * time.Second)
		if got := read(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"event":"calm","run_id":"r1","job":"seed"`) {
			t.Errorf("after %s: %q", logEvery, got)
		}
		log.Error("trouble")
		time.Sleep(1100 * time.Millisecond)
		assert.Contains(t, read(), "trouble", "a second after an error")
		for range 20000 {
			log.Info("calm", "pad", strings.Repeat("x", 200))
		}
		log.With("domain", "a.example").WithGroup("g").Warn("last words", "error", errors.New("token=abc"))
		require.NoError(t, end(ctx))
		lines := strings.Split(strings.TrimSpace(read()), "\n")
		for _, want := range []string{"trouble", "last words"} {
			assert.Contains(t, strings.Join(lines, "\n"), want, "%d lines are kept, without", len(lines))
		}
		for _, l := range lines {
			var v struct {
				RunID string `json:"run_id"`
				Job   string `json:"job"`
			}
			err := json.Unmarshal([]byte(l), &v)
			require.True(t, err == nil && v.RunID == "r1" && v.Job == "seed", "%q: %v", l, err)
		}
		logs, err := ledger.ReadLogs(ctx, s, "r1")
		require.NoError(t, err)
		warned := ledger.Warnings(logs)
		require.Len(t, warned, 1)
		require.Len(t, warned[0].Lines, 2)
		for i, want := range []string{`"level":"ERROR","event":"trouble","run_id":"r1","job":"seed"}`, `"level":"WARN","event":"last words","run_id":"r1","job":"seed","domain":"a.example","g":{"error":"token=REDACTED"}}`} {
			got := string(warned[0].Lines[i])
			assert.True(t, strings.HasSuffix(got, want), "warning %d is %s, want …%s", i, got, want)
		}
		log.Error("nobody keeps this")
		assert.NotContains(t, read(), "nobody", "a log that has ended still gets lines")
	})
}

// Two containers can give their processes the same host name and the same process id.
func TestProcessName(t *testing.T) {
	name := processName()
	assert.True(t, regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_-]+-%d-[A-Z2-7]{8}$`, os.Getpid())).MatchString(name),
		"the process is called %s, want its host, its id and a random part", name)
	assert.Equal(t, name, processName(), "the process is called")
}
