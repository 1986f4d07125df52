package scratch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// makeIn makes this program a process that makes a folder there and is killed.
const makeIn = "SCRATCH_TEST_MAKE_IN"

func TestMain(m *testing.M) {
	if os.Getenv(makeIn) == "" {
		os.Exit(m.Run())
	}
	dir, _, err := Dir("run-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "left"), nil, 0o600)
	}
	if err == nil {
		var self *os.Process
		if self, err = os.FindProcess(os.Getpid()); err == nil {
			err = self.Kill()
		}
	}
	panic(err)
}

func names(t *testing.T) (names []string) {
	t.Helper()
	all, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// What a killed process left is removed by the next one, whatever its name; the folder of a living
// process stays, and so does what has no lock of this program. Records stay until they are old.
func TestSweep(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	require.NoError(t, os.MkdirAll(filepath.Join(tmp, "run-unlocked", "x"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(tmp, "other-1"), 0o700))
	begun := filepath.Join(tmp, unfinished+"run-1")
	require.NoError(t, os.Mkdir(begun, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(begun, lockName), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tmp, "other-1", ".in-use"), nil, 0o600))
	for name, line := range map[string]string{"said": "something", "blank": "   \n"} {
		require.NoError(t, os.Mkdir(filepath.Join(tmp, Records+name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(tmp, Records+name, lockName), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(tmp, Records+name, "process"), []byte(line), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(tmp, "beam-options-1"), nil, 0o600)) // the last Sweep removes it
	living, remove, err := Dir("run-")
	require.NoError(t, err)

	killed := exec.Command(os.Args[0])
	killed.Env = append(os.Environ(), makeIn+"="+tmp)
	out, err := killed.CombinedOutput()
	require.EqualError(t, err, "signal: killed", "%s", out)
	require.Len(t, names(t), 7)

	_, removeSecond, err := Dir("other-")
	require.NoError(t, err)
	require.NoError(t, removeSecond())
	require.ElementsMatch(t, []string{filepath.Base(living), filepath.Base(begun), "run-unlocked", "other-1", "beam-options-1", Records + "said"}, names(t))
	require.NoError(t, remove())
	require.ElementsMatch(t, []string{filepath.Base(begun), "run-unlocked", "other-1", "beam-options-1", Records + "said"}, names(t))
	Sweep(time.Now().Add(maxRecords + time.Hour))
	require.ElementsMatch(t, []string{"run-unlocked", "other-1"}, names(t))
}

// Records outlive the folder that is a process's own for temporary files.
func TestRecordsOutliveTheirProcess(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	own, remove, err := Dir("run-")
	require.NoError(t, err)
	t.Setenv("TMPDIR", own)
	inner, removeInner, err := Dir("browser-")
	require.NoError(t, err)
	require.Equal(t, own, filepath.Dir(inner))
	kept, removeKept, err := Dir(Records + "a-")
	require.NoError(t, err)
	require.Equal(t, tmp, filepath.Dir(kept))
	require.NoError(t, errors.Join(removeKept(), removeInner(), remove()))
}
