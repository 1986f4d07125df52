package lane

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

// A unit at which processes died is read alone, then refused. One of several that was read at the time of a
// death is read alone and cleared. A replay forgets.
func TestUnitsAtWhichProcessesDied(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	bucket, process := t.TempDir(), 0
	open := func() *Worker {
		t.Helper()
		run := "died-" + filepath.Base(t.TempDir())
		w, err := Open(t.Context(), Config{Job: "docs", RunID: run, Store: bucket})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, Close(run)) })
		return w
	}
	input := func(name string) ledger.Input { return ledger.Input{Source: "s", URL: "https://a.example/" + name} }
	begin := func(w *Worker, name string) (end, done func()) {
		t.Helper()
		ctx, done, err := w.Unit(t.Context(), input(name))
		require.NoError(t, err)
		end, err = budget.Begin(ctx, 100)
		require.NoError(t, err)
		return end, done
	}
	// dies leaves what a killed process leaves on its machine: its local file, which nobody has locked.
	dies := func(w *Worker) {
		t.Helper()
		text, err := os.ReadFile(w.begun.file.Name())
		require.NoError(t, err)
		process++
		dir := filepath.Join(os.TempDir(), w.journal()+"dead")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, strings.Repeat("p", process)), text, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".seed-engine-in-use"), nil, 0o600))
	}
	deaths := func(w *Worker, name string) ledger.Deaths { return w.begun.deaths[ledger.Unit("docs", input(name))] }

	w := open()
	endBad, _ := begin(w, "bad")
	endGood, _ := begin(w, "good")
	endDone, doneDone := begin(w, "done")
	endDone()
	doneDone()
	dies(w)
	endBad()
	endGood()

	w = open()
	require.Equal(t, ledger.Deaths{Count: 1}, deaths(w, "bad"))
	require.Equal(t, ledger.Deaths{Count: 1}, deaths(w, "good"))
	require.Equal(t, ledger.Deaths{}, deaths(w, "done"))
	endGood, doneGood := begin(w, "good")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := budget.Begin(ended, 1)
	require.ErrorIs(t, err, context.Canceled, "a suspect is read while nothing else is")
	endGood()
	doneGood()
	require.Equal(t, ledger.Deaths{}, deaths(w, "good"))
	endBad, _ = begin(w, "bad")
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(w.begun.file.Name())
		return err == nil && strings.Contains(string(text), " alone")
	}, time.Minute, time.Millisecond)
	dies(w)
	endBad()

	w = open()
	require.Equal(t, ledger.Deaths{Count: 2, Alone: true}, deaths(w, "bad"))
	require.Equal(t, ledger.Deaths{}, deaths(w, "good"))
	_, _, err = w.Unit(t.Context(), input("bad"))
	var died *diedError
	require.ErrorAs(t, err, &died)
	require.Equal(t, &diedError{Deaths: 2}, died)

	s, err := store.Open(t.Context(), bucket)
	require.NoError(t, err)
	require.NoError(t, ledger.ForgetDeaths(t.Context(), s, []ledger.DeadLetter{{Job: "docs", Kind: ledger.Died, Input: input("bad")}}))
	w = open()
	require.Equal(t, ledger.Deaths{}, deaths(w, "bad"))

	endBad, _ = begin(w, "bad")
	dies(w)
	endBad()
	w = open()
	require.Equal(t, ledger.Deaths{Count: 1}, deaths(w, "bad"))
	w.Finished(input("bad")) // it was done all the same
	w = open()
	require.Equal(t, ledger.Deaths{}, deaths(w, "bad"))
}

// Kills from outside that meet the first moments of a unit, alone or not, are no sign against it, unless they
// never stop.
func TestKillsFromOutsideAreNoSign(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	in := ledger.Input{Source: "s", URL: "https://a.example/"}
	w := &Worker{cfg: Config{Job: "docs"}}
	for deaths, refused := range map[ledger.Deaths]bool{
		{Count: 1}: false, {Count: 2}: false, {Count: 3}: false, {Count: 4}: true, {Count: 1, Alone: true}: false, {Count: 2, Alone: true}: true,
	} {
		w.begun.deaths = map[string]ledger.Deaths{ledger.Unit("docs", in): deaths}
		_, _, err := w.Unit(t.Context(), in)
		require.Equal(t, refused, err != nil, "%+v", deaths)
	}
	b := &w.begun
	over := make(chan struct{})
	slot := b.note(w.journal(), "unit")
	local := func() string {
		text, err := os.ReadFile(b.file.Name())
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}
	require.Equal(t, "unit begun", local())
	b.sign(slot, "unit", over)
	require.Equal(t, "unit alone", local())
	close(over)
	b.clear(slot)
	b.sign(slot, "unit", over)
	require.Empty(t, local())
	b.close()
}
