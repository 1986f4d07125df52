// Package sockets finds the sockets of a process that other machines can reach. No promise: see docs/library.md.
package sockets

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Socket is a socket that receives data from anybody: a TCP socket that listens,
// or a UDP socket that is not connected.
type Socket struct {
	Net  string // tcp, tcp6, udp or udp6
	Addr netip.AddrPort
}

// String returns the socket's network and address.
func (s Socket) String() string { return s.Net + " " + s.Addr.String() }

// Open reports whether other machines can reach the socket.
func (s Socket) Open() bool { return !s.Addr.Addr().Unmap().IsLoopback() }

// Of returns the sockets of a process and of its descendants, from Linux's /proc.
// A process that ends meanwhile counts as one without sockets.
func Of(pid int) ([]Socket, error) {
	tree, err := descendants(pid)
	if err != nil {
		return nil, err
	}
	var out []Socket
	for _, pid := range tree {
		owned, err := inodes(pid)
		if err != nil {
			return nil, err
		}
		for network, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
			found, err := table(filepath.Join("/proc", strconv.Itoa(pid), "net", network), network, state, owned)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// gone reports whether an error means that the process has ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) }

func descendants(pid int) ([]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there is no /proc to read sockets from")
	}
	parents := map[int]int{}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the program's name before it may have any characters
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		child, _ := strconv.Atoi(strings.Split(name, "/")[2])
		parents[child], _ = strconv.Atoi(fields[1])
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		for child, parent := range parents {
			if parent == tree[i] && !slices.Contains(tree, child) {
				tree = append(tree, child)
			}
		}
	}
	return tree, nil
}

func inodes(pid int) (map[string]bool, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	open, err := os.ReadDir(dir)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the sockets of process %d: %w", pid, err)
	}
	out := map[string]bool{}
	for _, e := range open {
		to, _ := os.Readlink(filepath.Join(dir, e.Name())) // "" once it is closed
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out, nil
}

// table reads the sockets in one state from a table of the kernel.
func table(name, network, state string, owned map[string]bool) ([]Socket, error) {
	f, err := os.Open(name)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	var out []Socket
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != state || !owned[fields[9]] {
			continue
		}
		at, err := address(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, Socket{network, at})
	}
	if err := lines.Err(); err != nil && !strings.Contains(err.Error(), "no such process") {
		return nil, err
	}
	return out, nil
}

// address parses the kernel's form of an address: words in the machine's byte
// order in hexadecimal, a colon, the port.
func address(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for w := 0; w+4 <= len(b); w += 4 {
		binary.BigEndian.PutUint32(b[w:], binary.NativeEndian.Uint32(b[w:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}
