// Package resident measures the memory of other processes. No promise: see docs/library.md.
package resident

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// every is how often a process is looked at. Its kernel keeps the peak, so only what it
// grows by in its last moments is missed.
const every = 20 * time.Millisecond

// Watch follows a process. The function that it returns gives the peak of its resident
// memory in bytes, and is called when the process has ended; 0 if the system does not
// tell. What the system says of a child that has ended (rusage) is no help: it is never
// less than the memory of the process that started the child.
func Watch(pid int) (peak func() int64) {
	most := now(pid)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				most = max(most, now(pid))
			}
		}
	}()
	return sync.OnceValue(func() int64 {
		close(end)
		<-ended
		return most
	})
}

// now returns the peak so far, 0 for a process that has ended.
func now(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ = strings.Cut(text, "kB")
	kB, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return kB << 10
}
