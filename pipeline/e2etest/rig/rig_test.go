//go:build e2e

package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A test process that is killed runs no cleanup; its children's children end all the same.
func TestChildrenEndWithTheTestProcess(t *testing.T) {
	const inner = "RIG_TEST_INNER"
	if os.Getenv(inner) != "" {
		c := Start(t, exec.Command("sh", "-c", "sleep 1000 & echo $!; wait"))
		Eventually(t, "the child's child", time.Minute, func() bool { return strings.HasSuffix(c.Output(t), "\n") })
		fmt.Println("PID", c.Cmd.Process.Pid, strings.TrimSpace(c.Output(t)))
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildrenEndWithTheTestProcess$")
	cmd.Env = append(os.Environ(), inner+"=1")
	c := Start(t, cmd)
	var child, grandchild int
	Eventually(t, "the inner test", time.Minute, func() bool {
		_, found, _ := strings.Cut(c.Output(t), "PID ")
		n, err := fmt.Sscanf(found, "%d %d\n", &child, &grandchild)
		return c.Ended() || err == nil && n == 2
	})
	if grandchild == 0 {
		t.Fatalf("the inner test ended:\n%s", c.Output(t))
	}
	c.Kill(t)
	for _, pid := range []int{child, grandchild} {
		Eventually(t, "the end of a process that the killed test left", 10*time.Second, func() bool { return ended(pid) })
	}
}

// ended reports whether a process has ended; nobody may have waited for it.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
