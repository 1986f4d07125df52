//go:build e2e

package e2etest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// shortage takes something away from the runs of several jobs, and gives it back.
type shortage struct {
	places     map[string]rig.Left // by job; what is missing is made in a folder
	start      func(t *testing.T, cmd *exec.Cmd) *rig.Child
	early      bool // it is missing when the runs begin
	take, give func(t *testing.T, runs map[string]*rig.Child)
}

// crawl is a simulated web with the sites of all jobs, which holds the later requests of each back.
type crawl struct {
	w    rig.Web
	jobs map[string]rig.Job
	s3   buckettest.S3
	gate chan struct{}

	mu   sync.Mutex
	seen map[string]int // requests by job
}

// free is how many requests of a job are not held back.
const free = 5

func newCrawl(t *testing.T, s3 buckettest.S3) *crawl {
	c := &crawl{s3: s3, w: rig.StartWeb(t, webtest.Options{Seed: 7}), gate: make(chan struct{}), seen: map[string]int{}}
	from := func(job string) rig.Web {
		w := c.w
		w.Before = func(h http.Handler) http.Handler { return c.held(job, h) }
		return w
	}
	for i := range 6 {
		name := fmt.Sprintf("gated-%d.com", i)
		c.w.Handle("www."+name, http.NotFoundHandler())
		c.w.Handle(name, c.held("seed", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			// What follows needs a name and a connection.
			http.Redirect(rw, r, "https://www."+name+r.URL.Path, http.StatusMovedPermanently)
		})))
	}
	c.jobs = map[string]rig.Job{"seed": {Args: []string{"--host-delay=5ms"}}, "catalog": rig.Catalog(from("catalog")),
		"docs": rig.Docs(t, from("docs")), "news": rig.News(t, from("news"))}
	return c
}

func (c *crawl) held(job string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.seen[job]++
		late := c.seen[job] > free
		c.mu.Unlock()
		if late {
			select {
			case <-c.gate:
			case <-r.Context().Done():
				return
			}
		}
		h.ServeHTTP(rw, r)
	})
}

// midway reports whether requests of all these jobs are held back.
func (c *crawl) midway(jobs []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(jobs, func(job string) bool { return c.seen[job] <= free })
}

// limited leaves processes no more of something than they have.
func limited(resource int, take, give uint64) func(*testing.T, *crawl, []string) shortage {
	may := func(n uint64) func(*testing.T, map[string]*rig.Child) {
		return func(t *testing.T, runs map[string]*rig.Child) {
			for job, run := range runs {
				err := unix.Prlimit(run.Cmd.Process.Pid, resource, &unix.Rlimit{Cur: n, Max: give}, nil)
				assert.True(t, err == nil || run.Ended(), "%v %v", job, err)
			}
		}
	}
	return func(*testing.T, *crawl, []string) shortage { return shortage{take: may(take), give: may(give)} }
}

// lackStore puts a proxy before the S3 server, which cuts connections off.
func lackStore(t *testing.T, c *crawl, jobs []string) shortage {
	target, err := url.Parse(c.s3.Endpoint)
	require.NoError(t, err)
	var away atomic.Bool
	proxy := signedProxy(target)
	front := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			reset(rw)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	set := func(to bool) func(*testing.T, map[string]*rig.Child) {
		return func(*testing.T, map[string]*rig.Child) { away.Store(to) }
	}
	s := shortage{take: set(true), give: set(false), places: map[string]rig.Left{}}
	row := t.Name()[strings.LastIndexByte(t.Name(), '/'):]
	for _, job := range jobs {
		s.places[job] = rig.Left{Store: "s3://" + c.s3.Bucket + row + "/" + job + "?region=us-east-1&endpoint=" + front}
	}
	return s
}

// lackDisk has the stores and the databases on a small disk, and fills it.
func lackDisk(t *testing.T, _ *crawl, jobs []string) shortage {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=32m"); err != nil {
		rig.Missing(t, err)
	}
	t.Cleanup(func() {
		assert.NoError(t, unix.Unmount(disk, unix.MNT_DETACH))
	})
	filler := filepath.Join(disk, "filler")
	s := shortage{places: map[string]rig.Left{}, give: func(*testing.T, map[string]*rig.Child) { _ = os.Remove(filler) }}
	s.take = func(t *testing.T, _ map[string]*rig.Child) {
		f, err := os.Create(filler)
		if err != nil {
			t.Error(err)
			return
		}
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		_ = f.Close() // the disk is full, as it should
	}
	for _, job := range jobs {
		s.places[job] = rig.Left{Store: filepath.Join(disk, job), DSN: "sqlite://" + filepath.Join(disk, job+".db")}
	}
	return s
}

// lackDatabase stops PostgreSQL, and starts it.
func lackDatabase(t *testing.T, _ *crawl, jobs []string) shortage {
	dsn, control := dbtest.Controlled(t)
	does := func(verb string) func(*testing.T, map[string]*rig.Child) {
		return func(*testing.T, map[string]*rig.Child) { control(verb, "fast") }
	}
	s := shortage{take: does("stop"), give: does("start"), places: map[string]rig.Left{}}
	for _, job := range jobs {
		s.places[job] = rig.Left{DSN: dsn}
	}
	return s
}

// lackFile removes the SQLite files.
func lackFile(t *testing.T, _ *crawl, jobs []string) shortage {
	dir := t.TempDir()
	s := shortage{places: map[string]rig.Left{}, give: func(*testing.T, map[string]*rig.Child) {}}
	s.take = func(t *testing.T, _ map[string]*rig.Child) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			if err == nil {
				err = os.Remove(f)
			}
		}
		assert.True(t, err == nil && len(files) >= len(jobs), "%d files removed, %v", len(files), err)
	}
	for _, job := range jobs {
		s.places[job] = rig.Left{DSN: "sqlite://" + filepath.Join(dir, job+".db")}
	}
	return s
}

// resolver is the address of the name server in a network of its own, which has all of 8.0.0.0/8.
var resolver = [4]byte{8, 8, 8, 8}

// lackNames runs the program in a network of its own, in which all addresses are the simulated
// web's, and stops the name server there.
func lackNames(t *testing.T, c *crawl, jobs []string) shortage {
	names, err := c.w.DNS()
	require.NoError(t, err)
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(conf, []byte("nameserver 8.8.8.8\nsearch rig.example\n"), 0o644))
	inside, failed := make(chan func()), make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread is in another network
		failed <- ownNetwork(conf)
		for do := range inside {
			do()
		}
	}()
	if err := <-failed; err != nil {
		rig.Missing(t, err)
	}
	t.Cleanup(func() { close(inside) })
	within := func(do func()) {
		done := make(chan struct{})
		inside <- func() { defer close(done); do() }
		<-done
	}
	var server net.PacketConn
	give := func(t *testing.T, _ map[string]*rig.Child) {
		within(func() { server, err = net.ListenPacket("udp4", "8.8.8.8:53") })
		require.NoError(t, err)
		go serveNames(server, names)
	}
	give(t, nil)
	for _, port := range []string{":80", ":443"} {
		var l net.Listener
		within(func() { l, err = net.Listen("tcp4", port) })
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go forward(l, c.w.Addr())
	}
	early := !slices.Contains(jobs, "seed")
	if early {
		_ = server.Close()
	}
	return shortage{give: give, early: early, take: func(*testing.T, map[string]*rig.Child) { _ = server.Close() },
		start: func(t *testing.T, cmd *exec.Cmd) (run *rig.Child) {
			cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "--connect-to=") })
			if slices.Contains(cmd.Args, "--job=catalog") {
				cmd.Args = append(cmd.Args, "--contact=https://rig.example/")
			}
			within(func() { run = rig.Start(t, cmd) })
			return run
		}}
}

// ownNetwork puts this thread into a network and a mount namespace of its own.
func ownNetwork(conf string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount(conf, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := lo.SetInet4Addr(resolver[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, lo); err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// serveNames answers with the simulated web's names, each at an address of its own.
func serveNames(in net.PacketConn, names string) {
	for {
		query := make([]byte, 512)
		n, from, err := in.ReadFrom(query)
		if err != nil {
			return
		}
		go func() {
			out, err := net.Dial("udp", names)
			if err != nil {
				return
			}
			defer func() { _ = out.Close() }()
			_ = out.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := out.Write(query[:n]); err != nil {
				return
			}
			reply := make([]byte, 4096)
			m, err := out.Read(reply)
			if err != nil {
				return
			}
			own := crc32.ChecksumIEEE(query[12:n]) // the question
			at := []byte{resolver[0], byte(own >> 16), byte(own >> 8), byte(own)}
			_, _ = in.WriteTo(bytes.ReplaceAll(reply[:m], []byte{127, 0, 0, 1}, at), from) // datagrams may be lost
		}()
	}
}

func forward(l net.Listener, to string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = in.Close() }()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(out, in)
				_ = out.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(in, out)
			_ = out.Close()
		}()
	}
}

var (
	failed  = []int{1}
	done    = []int{0}
	allJobs = []string{"seed", "docs", "catalog", "news"}
	withDB  = allJobs[1:]
)

// shortages is what a run may lack, and the word for it.
var shortages = []struct {
	name, word string
	jobs       []string
	lack       func(*testing.T, *crawl, []string) shortage
	codes      []int // of a run that never gets it back
	back       bool  // it may come back
}{
	{"descriptors", "ulimit -n", allJobs, limited(unix.RLIMIT_NOFILE, 4, 4096), failed, true},
	{"store", "the store", allJobs, lackStore, failed, true},
	{"disk", "disk", allJobs, lackDisk, failed, true},
	{"database", "the database cannot be reached", withDB, lackDatabase, failed, true},
	{"names", "resolver", allJobs[:1], lackNames, failed, true},
	// Later they know the addresses of their few hosts.
	{"names at first", "resolver", withDB, lackNames, failed, true},
	// A run that needs no more ends; Go exits with 2, also where a thread gets no stack.
	{"memory", "memory|pthread_create failed", allJobs, limited(unix.RLIMIT_AS, 1<<20, unix.RLIM_INFINITY), []int{0, 2}, false},
	{"database file", "database", withDB, lackFile, failed, false},
}

// What our side lacks in mid-run is no fact about a site. Returned within a minute, the run
// ends as one that lacked nothing. Otherwise it fails with that word, and the next one does the rest.
func TestShortage(t *testing.T) {
	t.Parallel()
	c := newCrawl(t, buckettest.StartVersity(t))
	close(c.gate)
	clean := shortage{}
	want := clean.of(t, t.TempDir(), allJobs)
	var clears sync.WaitGroup
	for job, run := range clean.begin(t, c, want) {
		clears.Go(func() { wantCode(t, job, run, done, "") })
	}
	clears.Wait()
	var all sync.WaitGroup
	few := make(chan struct{}, 2) // the others wait for a minute, and need no processor meanwhile
	for _, row := range shortages {
		all.Go(func() {
			t.Run(row.name+" for good", func(t *testing.T) { lack(t, newCrawl(t, c.s3), row.lack, row.jobs, 0, row.codes, row.word, want) })
		})
	}
	for _, row := range shortages {
		if row.back {
			all.Go(func() {
				few <- struct{}{}
				defer func() { <-few }()
				t.Run(row.name, func(t *testing.T) {
					lack(t, newCrawl(t, c.s3), row.lack, row.jobs, 6*time.Second, done, row.word, want)
				})
			})
		}
	}
	all.Wait()
}

// of returns where the runs of jobs are.
func (s shortage) of(t *testing.T, dir string, jobs []string) map[string]rig.Left {
	all := map[string]rig.Left{}
	for _, job := range jobs {
		at := s.places[job]
		if at.Store == "" {
			at.Store = filepath.Join(dir, job)
		}
		if at.DSN == "" {
			at.DSN = "sqlite://" + filepath.Join(dir, job+".db")
		}
		if !strings.Contains(at.Store, "://") {
			require.NoError(t, os.Mkdir(at.Store, 0o755))
		}
		if job == "seed" {
			rig.Put(t, at.Store, gated().files)
			at.DSN = ""
		}
		all[job] = at
	}
	return all
}

func (s shortage) begin(t *testing.T, c *crawl, at map[string]rig.Left) map[string]*rig.Child {
	begin, runs := s.start, map[string]*rig.Child{}
	if begin == nil {
		begin = func(t *testing.T, cmd *exec.Cmd) *rig.Child { return rig.Start(t, cmd) }
	}
	for job, left := range at {
		runs[job] = begin(t, c.jobs[job].Command(c.w, left, "--turns=off"))
	}
	return runs
}

func says(output, word string) bool { return regexp.MustCompile(word).MatchString(output) }

func wantCode(t *testing.T, job string, run *rig.Child, codes []int, word string) {
	t.Helper()
	got := run.Wait(t, 3*time.Minute)
	if !slices.Contains(codes, got) || (got > 0 || len(codes) == 1) && !says(run.Output(t), word) {
		out := run.Output(t)
		t.Errorf("%s: exit code %d, want %v and %q\n%s\n[…]\n%s", job, got, codes, word, out[:min(len(out), 3000)], rig.Tail(out))
	}
}

func lack(t *testing.T, c *crawl, lacking func(*testing.T, *crawl, []string) shortage, jobs []string,
	lasts time.Duration, codes []int, word string, want map[string]rig.Left) {
	s := lacking(t, c, jobs)
	at := s.of(t, t.TempDir(), jobs)
	runs := s.begin(t, c, at)
	t.Cleanup(func() {
		for job, run := range runs {
			if t.Failed() {
				t.Log(job, rig.Tail(run.Output(t)))
			}
		}
	})
	rig.Eventually(t, "all runs in their midst", 2*time.Minute, func() bool {
		if !s.early {
			return c.midway(jobs)
		}
		waits := 0
		for run := range maps.Values(runs) {
			if says(run.Output(t), word) {
				waits++
			}
		}
		return waits == len(runs)
	})
	s.take(t, runs)
	close(c.gate)
	if lasts > 0 {
		time.Sleep(lasts) // real processes lack something
		s.give(t, runs)
	}
	said := ""
	for job, run := range runs {
		if lasts > 0 { // some of the jobs may have lacked nothing
			wantCode(t, job, run, codes, "")
			said += run.Output(t)
			continue
		}
		wantCode(t, job, run, codes, word)
	}
	assert.True(t, lasts <= 0 || says(said, word), "no run says %q", word)
	if lasts == 0 {
		s.give(t, nil)
		for job, run := range s.begin(t, c, at) {
			wantCode(t, job, run, done, "")
		}
	}
	for job, left := range at {
		if job == "seed" {
			rig.Same(t, rig.Objects(t, left.Store), rig.Objects(t, want[job].Store))
			continue
		}
		j := c.jobs[job]
		if lasts > 0 {
			j.Same(t, left, want[job])
		} else {
			j.SameRows(t, left, want[job], j.Queries)
		}
		if got, want := deadLetters(t, job, left), deadLetters(t, job, want[job]); !slices.Equal(got, want) {
			t.Errorf("%s: dead letters %q, want %q", job, got, want)
		}
	}
}

func deadLetters(t *testing.T, job string, left rig.Left) (all []string) {
	for d, err := range ledger.ListDeadLetters(t.Context(), rig.Open(t, left.Store), job, "") {
		require.NoError(t, err)
		all = append(all, d.Kind+" "+d.Input.URL)
	}
	return all
}
