//go:build e2e

package e2etest

import (
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// versions returns the objects of a store, except those under runs/, with their versions.
func versions(t *testing.T, url string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range rig.Open(t, url).List(t.Context(), "") {
		require.NoError(t, err)
		if !strings.HasPrefix(o.Key, "runs/") {
			all[o.Key] = o.ETag
		}
	}
	return all
}

// A process that is suspended for longer than its lease lasts finds, when it wakes
// up, that another run took it over: it sends nothing more and writes nothing more.
func TestSuspendedPastItsLease(t *testing.T) {
	b := generate(90, steadyKinds)
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 20 * time.Millisecond})
	dir := rig.Directory(t, b.files)
	first := start(t, w, dir, "--lease-ttl=2s", "--concurrency=16")
	rig.Eventually(t, "the first run's requests", time.Minute, func() bool { return len(w.Requests()) >= 60 || first.Ended() })
	require.NoError(t, first.Cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2500 * time.Millisecond) // the lease of a suspended process expires
	run(t, w, dir)
	complete, requests := versions(t, dir), len(w.Requests())
	require.NoError(t, first.Cmd.Process.Signal(syscall.SIGCONT))
	if code := first.Wait(t, 20*time.Second); code != 1 || !strings.Contains(first.Output(t), "lease_lost") {
		t.Errorf("the suspended run: exit code %d, want 1 and lease_lost\n%s", code, rig.Tail(first.Output(t)))
	}
	if n := len(w.Requests()) - requests; n != 0 {
		t.Errorf("the suspended run sent %d requests when it woke up, first %s%s", n, w.Requests()[requests].Host, w.Requests()[requests].Path)
	}
	after := versions(t, dir)
	for key, etag := range after {
		assert.Equal(t, etag, complete[key], "%s was written when the suspended run woke up", key)
	}
	assert.Len(t, after, len(complete), "%d objects, %d before the suspended run woke up", len(after), len(complete))
}

// A suspended process continues when no other run took over its lease.
func TestSuspendedAlone(t *testing.T) {
	b := generate(60, steadyKinds)
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 10 * time.Millisecond})
	dir := rig.Directory(t, b.files)
	c := start(t, w, dir, "--lease-ttl=1s", "--concurrency=16")
	rig.Eventually(t, "some requests", time.Minute, func() bool { return len(w.Requests()) >= 40 || c.Ended() })
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		require.NoError(t, c.Cmd.Process.Signal(s))
		time.Sleep(1500 * time.Millisecond)
	}
	if code := c.Wait(t, time.Minute); code != 0 || !strings.Contains(c.Output(t), "lease_renewed") {
		t.Errorf("exit code %d, want 0 and lease_renewed\n%s", code, rig.Tail(c.Output(t)))
	}
	rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
}

// A run waits for a store that does not answer for longer than the lease lasts. It
// sends no request meanwhile, continues when the store answers again, and loses
// nothing.
func TestStoreAnswersLate(t *testing.T) {
	s3 := buckettest.StartVersity(t)
	proxy := startStallingProxy(t, strings.TrimPrefix(s3.Endpoint, "http://"))
	b := generate(60, steadyKinds)
	url := "s3://" + s3.Bucket + "/late?endpoint=http://" + proxy.addr + "&region=us-east-1"
	reference := "s3://" + s3.Bucket + "/reference?endpoint=" + s3.Endpoint + "&region=us-east-1"
	rig.Put(t, url, b.files)
	rig.Put(t, reference, b.files)
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 10 * time.Millisecond})
	run(t, w, reference)
	w.ResetLog()
	c := start(t, w, url, "--lease-ttl=2s", "--concurrency=16")
	rig.Eventually(t, "some requests", time.Minute, func() bool { return len(w.Requests()) >= 40 || c.Ended() })
	proxy.stall()
	time.Sleep(3 * time.Second) // past the lease
	before := len(w.Requests())
	time.Sleep(3 * time.Second)
	assert.EqualValues(t, 0, len(w.Requests())-before)
	proxy.release()
	if code := c.Wait(t, time.Minute); code != 0 || !strings.Contains(c.Output(t), "lease_unsure") || !strings.Contains(c.Output(t), "lease_renewed") {
		t.Errorf("exit code %d, want 0, lease_unsure and lease_renewed\n%s", code, rig.Tail(c.Output(t)))
	}
	rig.Same(t, rig.Objects(t, url), rig.Objects(t, reference))
}

// stallingProxy is a TCP proxy to a server that can delay everything.
type stallingProxy struct {
	addr string
	mu   sync.RWMutex
}

func (l *stallingProxy) stall()   { l.mu.Lock() }
func (l *stallingProxy) release() { l.mu.Unlock() }

func startStallingProxy(t *testing.T, to string) *stallingProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l := &stallingProxy{addr: listener.Addr().String()}
	forward := func(to, from net.Conn) {
		defer func() { _ = to.Close() }()
		_, _ = io.Copy(writer{l, to}, from) // ends with either side
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go forward(out, in)
			go forward(in, out)
		}
	}()
	return l
}

type writer struct {
	proxy *stallingProxy
	conn  net.Conn
}

func (w writer) Write(p []byte) (int, error) {
	w.proxy.mu.RLock()
	defer w.proxy.mu.RUnlock()
	return w.conn.Write(p)
}
