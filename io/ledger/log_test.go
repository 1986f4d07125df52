package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

func TestLog(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	if _, err := ReadLog(ctx, s, "r1"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("the log of a run that has none: %v, want ErrNotExist", err)
	}
	l, err := NewLog(s, "r1", "")
	must(t, err)
	must(t, l.Flush(ctx))
	assert.Empty(t, s.M)
	line := func(n int) string { return fmt.Sprintf("{\"n\":%08d,\"pad\":%q}\n", n, strings.Repeat("x", 1000)) }
	const lines = 3000 // three megabytes
	for n := range lines {
		_, err := l.Write([]byte(line(n)))
		must(t, err)
		if n%100 == 0 {
			must(t, l.Flush(ctx))
		}
	}
	s.Fail(errors.New("down"))
	assert.Error(t, l.Flush(ctx), "what was not written counts as written")
	s.Fail(nil)
	must(t, l.Flush(ctx))
	got, err := ReadLog(ctx, s, "r1")
	must(t, err)
	assert.True(t, len(got) <= 2*maxLogPart && len(got) >= maxLogPart,
		"%d bytes are kept of %d, want between one part and two", len(got), lines*len(line(0)))
	kept := strings.SplitAfter(strings.TrimSuffix(string(got), "\n"), "\n")
	for i := range kept {
		require.Equal(t, strings.TrimSpace(line(lines-len(kept)+i)), strings.TrimSpace(kept[i]),
			"line %d of %d is %.30s, want", i, len(kept), kept[i])
	}
	assert.True(t, l.NearlyFull(), "three megabytes are no crowd")
	other, err := NewLog(s, "r1", "host-7")
	must(t, err)
	_, err = other.Write([]byte("of a worker\n"))
	must(t, errors.Join(err, other.Flush(ctx)))
	if again, err := ReadLog(ctx, s, "r1"); err != nil || string(again) != string(got)+"of a worker\n" {
		t.Errorf("with a worker's part: %d bytes, %v", len(again), err)
	}
	if _, err := NewLog(s, "../r1", ""); err == nil {
		t.Error("a run's log outside its folder")
	}
}

func TestWhy(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	must(t, Start(ctx, s, aRun("r1")))
	run, err := Finish(ctx, s, "r1", Failed, fmt.Errorf("opening postgres://u:secret@h/d:\n  \x1b[31mrefused"), day)
	must(t, err)
	const want = `opening postgres://REDACTED@h/d: \u001b[31mrefused`
	again, err := Load(ctx, s, "r1")
	must(t, err)
	assert.True(t, run.Error == want && again.Error == want && BuildReport(aJob(), again, Tally{}, day).Error == want,
		"kept %q, loaded %q, want %q", run.Error, again.Error, want)
	got := ErrorText(errors.New(strings.Repeat("한", 5000)))
	assert.LessOrEqual(t, len(got), maxError+8)
	must(t, Start(ctx, s, aRun("r2")))
	must(t, CloseAbandoned(ctx, s, "seed", day.Add(time.Hour)))
	if r, err := Load(ctx, s, "r2"); err != nil || r.State != Interrupted || r.Error == "" {
		t.Errorf("abandoned: %+v, %v", r, err)
	}
}

// Of each process the newest warnings and errors are shown, with texts that are bounded and have no secrets.
func TestWarningsOfProcesses(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	for _, process := range []string{"", "host-7"} {
		l, err := NewLog(s, "r1", process)
		must(t, err)
		log := slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{ReplaceAttr: CleanAttr}))
		log.Info("calm")
		for n := range 2 * maxWorkerLines {
			log.Warn("again", "n", n, "level", "INFO")
		}
		log.Error("refused", "error", errors.New("token=abc \x1b[31m"+strings.Repeat("한", 9000)), "n", 3)
		_, err = l.Write([]byte(`{"level":"WARN", cut` + "\n"))
		must(t, errors.Join(err, l.Flush(ctx)))
	}
	logs, err := ReadLogs(ctx, s, "r1")
	must(t, err)
	got := Warnings(logs)
	require.Len(t, got, 2)
	assert.Equal(t, []string{"launcher", "host-7"}, []string{got[0].Worker, got[1].Worker})
	for _, w := range got {
		require.Len(t, w.Lines, maxWorkerLines)
		assert.Contains(t, string(w.Lines[0]), `"n":101,`)
		last := string(w.Lines[maxWorkerLines-1])
		assert.Contains(t, last, `"msg":"refused","error":"token=REDACTED \\u001b[31m한`)
		assert.True(t, strings.HasSuffix(last, ` …","n":3}`) && len(last) < 1200, "%d bytes: %s", len(last), last)
	}
	logs, err = ReadLogs(ctx, s, "r2")
	must(t, err)
	assert.Empty(t, Warnings(logs))
}
