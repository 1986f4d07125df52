package resident

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small program has a small peak, however large the process is that started it.
func TestWatch(t *testing.T) {
	large := make([]byte, 200<<20)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	cmd := exec.Command("cat") // until its input ends
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	peak := Watch(cmd.Process.Pid)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	require.Positive(t, peak())
	require.Less(t, peak(), int64(50<<20))
	require.EqualValues(t, 1, large[0])
	require.Greater(t, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, int64(150<<10), "rusage could be used again")
}
