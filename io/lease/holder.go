package lease

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Holder identifies the process that has a lease, so exactly that another process
// on the same machine can see that it has ended.
type Holder struct {
	Host         string `json:"host"`
	PID          int    `json:"pid"`
	BootID       string `json:"boot_id,omitempty"`       // of the running kernel; empty where there is no /proc
	ProcessStart uint64 `json:"process_start,omitempty"` // clock ticks after boot, proc_pid_stat(5) field 22
	PIDNamespace string `json:"pid_namespace,omitempty"` // the PID means something only inside it
	RunID        string `json:"run_id,omitempty"`        // set by the caller
	Job          string `json:"job,omitempty"`           // set by the caller
}

// CurrentHolder describes this process; the caller sets RunID and Job. Without
// /proc the process cannot be identified, and then its leases only end by release or
// expiry.
func CurrentHolder() Holder { return holderAt("/proc") }

func holderAt(proc string) Holder {
	h := Holder{PID: os.Getpid()}
	// Without the host's name a message says less and a take-over is slower.
	h.Host, _ = os.Hostname()
	start, _, err := processStat(proc, strconv.Itoa(h.PID))
	if err != nil {
		return h
	}
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return h
	}
	ns, err := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	if err != nil {
		return h
	}
	h.ProcessStart, h.BootID, h.PIDNamespace = start, strings.TrimSpace(string(boot)), ns
	return h
}

// processStat reads start time and state letter of a process. The command name
// in field 2 may contain anything, so fields are counted from its closing bracket.
func processStat(proc, pid string) (start uint64, state string, err error) {
	b, err := os.ReadFile(filepath.Join(proc, pid, "stat"))
	if err != nil {
		return 0, "", err
	}
	return parseStat(string(b))
}

func parseStat(line string) (start uint64, state string, err error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return 0, "", fmt.Errorf("reading a process's stat: %d fields after the name, want 20 or more", len(fields))
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return start, fields[0], err
}

// dead reports whether the process of h has certainly ended: it is of the same
// machine, boot and pid namespace as self, and there is no such process any more. In
// all other cases it returns false, and the lease has to expire.
func (h Holder) dead(self Holder, proc string) bool {
	if self.BootID == "" || self.PIDNamespace == "" ||
		h.Host != self.Host || h.BootID != self.BootID || h.PIDNamespace != self.PIDNamespace || h.PID <= 0 {
		return false
	}
	start, state, err := processStat(proc, strconv.Itoa(h.PID))
	switch {
	case err == nil:
		// A zombie has ended; its parent has not waited for it yet.
		return start != h.ProcessStart || state == "Z" || state == "X"
	case errors.Is(err, os.ErrNotExist):
		// With the mount option hidepid, /proc does not show other users' processes.
		return gone(h.PID)
	default:
		return false
	}
}

func (h Holder) String() string {
	s := fmt.Sprintf("host %s, pid %d", h.Host, h.PID)
	if h.RunID != "" {
		s = "run " + h.RunID + " (" + s + ")"
	}
	return s
}

// gone reports whether the system says that there is no process pid.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	_ = p.Release() // it only frees a descriptor
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}
