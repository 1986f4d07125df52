package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/storetest"
)

// The newest lines of each process are kept, bounded and without secrets, and a run
// has a limited number of objects.
func TestWorkerLog(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	l, err := NewWorkerLog(s, "r1", "host-7")
	must(t, err)
	must(t, l.Flush(ctx))
	assert.Empty(t, s.M)
	log := slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{ReplaceAttr: CleanAttr}))
	log.Warn("refused", "error", errors.New("token=abc \x1b[31m"+strings.Repeat("한", 9000)), "n", 3)
	many := []any{}
	for n := range 40 {
		many = append(many, fmt.Sprint("k", n), strings.Repeat("x", 300))
	}
	log.Warn("many", many...)
	s.Fail(errors.New("down"))
	assert.Error(t, l.Flush(ctx), "what was not written counts as written")
	s.Fail(nil)
	must(t, l.Flush(ctx))
	got, err := ReadWorkers(ctx, s, "r1")
	must(t, err)
	require.True(t, len(got) == 1 && got[0].Worker == "host-7" && len(got[0].Lines) == 2, "%d processes: %.300s", len(got), got)
	first, second := string(got[0].Lines[0]), string(got[0].Lines[1])
	if !strings.Contains(first, `"msg":"refused","error":"token=REDACTED \\u001b[31m한`) || !strings.HasSuffix(first, ` …","n":3}`) || len(first) > 600 {
		t.Errorf("%d bytes: %s", len(first), first)
	}
	assert.True(t, strings.Contains(second, `"level":"WARN"`) && strings.Contains(second, `"cut":`) && len(second) <= maxWorkerLine,
		"%d bytes: %s", len(second), second)
	for n := range 3 * maxWorkerLines {
		log.Error("again", "n", n)
	}
	must(t, l.Flush(ctx))
	got, err = ReadWorkers(ctx, s, "r1")
	must(t, err)
	lines := got[0].Lines
	if len(lines) != maxWorkerLines+1 || !strings.Contains(string(lines[0]), `"event":"lines_dropped","count":202`) || !strings.HasSuffix(string(lines[maxWorkerLines]), `"n":299}`) {
		t.Errorf("%d lines, from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	for n := range maxWorkers + 3 {
		l, err := NewWorkerLog(s, "r1", fmt.Sprintf("other-%03d", n))
		must(t, err)
		_, err = l.Write([]byte("{}\n"))
		must(t, errors.Join(err, l.Flush(ctx), l.Flush(ctx)))
	}
	if got, err = ReadWorkers(ctx, s, "r1"); err != nil || len(got) != maxWorkers || len(s.M) != maxWorkers {
		t.Errorf("%d processes are shown and %d objects kept, want %d; %v", len(got), len(s.M), maxWorkers, err)
	}
	if _, err := NewWorkerLog(s, "r1", "../x"); err == nil {
		t.Error("a worker's log outside its folder")
	}
	if none, err := ReadWorkers(ctx, s, "r2"); err != nil || len(none) != 0 {
		t.Errorf("a run without warnings has %v, %v", none, err)
	}
}

// FuzzWorkerLines: whatever is in the object, each line that is shown is one JSON
// object of limited length.
func FuzzWorkerLines(f *testing.F) {
	f.Add([]byte("{\"time\":\"2026-01-02T03:04:05Z\",\"level\":\"WARN\",\"event\":\"x\"}\nno json\n[1]\n\n{"))
	f.Add([]byte(`{"event":"` + strings.Repeat("<", 5000) + `"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines := workerLines(b)
		require.LessOrEqual(t, len(lines), maxWorkerLines+1)
		for _, l := range lines {
			var fields map[string]any
			err := json.Unmarshal(l, &fields)
			require.True(t, err == nil && len(l) <= maxWorkerLine, "%d bytes: %q: %v", len(l), l, err)
		}
	})
}
