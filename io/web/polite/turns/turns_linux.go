package turns

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/newsfork/seed-engine/io/scratch"
)

const (
	owners  = 1024
	buckets = 4096
	places  = 9

	// beatEvery is how often a process says that it is at work, and staleAfter how long it
	// may say nothing before the others take its turns.
	beatEvery  = 500 * time.Millisecond
	staleAfter = 5 * time.Second
	// heldFor is how long a process has a turn at most since Take or Keep, longer than any
	// request takes: one whose run was paused with a request not yet sent keeps the others
	// waiting.
	heldFor = 5 * time.Minute
	// lockedFor is how long a bucket is locked at most, unless its process was killed or
	// stopped there: a lock takes less than a microsecond.
	lockedFor = time.Second
	// waitsFor is how long the next turn at a site is kept for a process that was to wait
	// for it, since the moment at which it is to ask again, and longestWait how far ahead
	// that moment may be.
	waitsFor    = 250 * time.Millisecond
	longestWait = 10 * time.Second
)

// up is the time since the machine started, without the time that it was suspended, in
// microseconds. All processes see the same, and nobody sets it as the clock is set.
var up = func() func() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // there is such a clock
	began := time.Now()
	return func() int64 { return at.Nano()/1000 + time.Since(began).Microseconds() }
}()

// table is what the file holds. Another version of it has another name, see version.
type table struct {
	owners  [owners]owner
	buckets [buckets]bucket
}

// owner is a process. The kernel keeps its byte of the file locked as long as it lives.
type owner struct {
	generation atomic.Uint32 // how many processes were this owner
	_          uint32
	beat       atomic.Int64 // when it was last at work, as by up
}

// bucket has the sites of one hash.
type bucket struct {
	locked atomic.Int64 // since when, as by up; 0: it is free
	sites  [places]site
}

// site is guarded by its bucket's lock.
type site struct {
	key                 uint64
	holder              uint64 // the process that has a request in flight: generation and number of the owner
	taken               int64  // when it took the turn, as by up
	waits               uint64 // until when, as by up, the next turn is another's, and the owner's number
	ended, next, paused int64  // in microseconds since 1970; 0 is unknown
}

const version = "-v2"

// File is the file as one process has it. It is safe for concurrent use.
type File struct {
	path string // with version
	mu   sync.RWMutex
	now  *mapping // what is at path, as far as is known
}

// mapping is a file in this process's memory.
type mapping struct {
	file   *os.File
	is     fs.FileInfo
	memory []byte
	*table
	me uint64 // as site.holder
}

// opened are the files that this process has open. They stay open until it ends.
var opened struct {
	sync.Mutex
	files map[string]*File
}

// Open opens the file at path, and makes it if there is none. A process has it once. Its
// errors are those of the file system, fs.ErrInvalid for a file that is not of this
// package, and one that says that too many processes have it.
func Open(path string) (*File, error) {
	opened.Lock()
	defer opened.Unlock()
	if f := opened.files[path]; f != nil {
		return f, nil
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if opened.files == nil {
		opened.files = map[string]*File{}
	}
	opened.files[path] = f
	go f.beat()
	return f, nil
}

func open(path string) (*File, error) {
	if is, err := os.Stat(path); err == nil && !is.Mode().IsRegular() || strings.HasSuffix(path, string(filepath.Separator)) {
		return nil, notOpened(path, fmt.Errorf("it is no file; name a file with --turns, or say --turns=off: %w", fs.ErrInvalid))
	}
	path += version
	if err := create(path); err != nil {
		return nil, notOpened(path, err)
	}
	m, err := openMapping(path)
	if err != nil {
		return nil, notOpened(path, err)
	}
	return &File{path: path, now: m}, nil
}

func openMapping(path string) (*mapping, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	m, err := use(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return m, nil
}

// create makes the file under another name first: no process sees a part of it. Its blocks
// are written, because a full disk would else end the first process that uses them.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	scratch.SweepOld(filepath.Dir(path), filepath.Base(path)+".new-", time.Now())
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(make([]byte, unsafe.Sizeof(table{})))
	if err = errors.Join(err, temp.Close()); err == nil {
		if err = os.Link(temp.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(temp.Name()))
}

// use maps the file and becomes one of its owners.
func use(file *os.File) (*mapping, error) {
	is, err := file.Stat()
	if err != nil {
		return nil, err
	}
	of, ok := is.Sys().(*syscall.Stat_t)
	switch {
	case !is.Mode().IsRegular() || is.Size() != int64(unsafe.Sizeof(table{})):
		return nil, fmt.Errorf("it is not one; remove it, or name another with --turns: %w", fs.ErrInvalid)
	case ok && int(of.Uid) != os.Geteuid():
		return nil, fmt.Errorf("it belongs to another user; name another with --turns: %w", fs.ErrPermission)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(is.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping it: %w", err)
	}
	m := &mapping{file: file, is: is, memory: memory, table: (*table)(unsafe.Pointer(unsafe.SliceData(memory)))}
	for i := range owners {
		byteOf := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1}
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &byteOf)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			continue
		case err != nil:
			return nil, errors.Join(fmt.Errorf("locking it: %w", err), unix.Munmap(memory))
		}
		m.owners[i].beat.Store(up())
		m.me = uint64(m.owners[i].generation.Add(1))<<32 | uint64(i)
		return m, nil
	}
	return nil, errors.Join(fmt.Errorf("%d processes have it; name another with --turns", owners), unix.Munmap(memory))
}

// beat says that this process is at work, until it ends.
func (f *File) beat() {
	for range time.Tick(beatEvery) {
		f.in(func(m *mapping) { m.owners[uint32(m.me)].beat.Store(up()) })
		f.follow()
	}
}

// follow takes the file that is now at the path, where somebody removed the one that was
// there and another process has made it again: else the two would know nothing of each
// other for as long as this process lives.
func (f *File) follow() {
	is, err := os.Stat(f.path)
	if err != nil || os.SameFile(is, f.now.is) {
		return
	}
	m, err := openMapping(f.path)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = errors.Join(unix.Munmap(f.now.memory), f.now.file.Close()) // nothing is lost with them
	f.now = m
}

// in does something in the file's memory. Where that has become impossible, it is not
// done and this process is as if alone: somebody cut the file short, its disk failed, or
// it is full and the file system writes each block at a new place.
func (f *File) in(do func(*mapping)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if _, is := fault.(interface{ Addr() uintptr }); fault != nil && !is {
			panic(fault)
		}
	}()
	do(f.now)
}

// held reports whether a site's turn is that of a process at work.
func (m *mapping) held(s *site) bool {
	i := uint32(s.holder)
	if s.holder == 0 || i >= owners || m.owners[i].generation.Load() != uint32(s.holder>>32) || up()-s.taken > heldFor.Microseconds() {
		return false
	}
	return m.works(i)
}

// works reports whether the process that is an owner lives and was not stopped.
func (m *mapping) works(i uint32) bool {
	if i == uint32(m.me) {
		return true
	}
	if up()-m.owners[i].beat.Load() > staleAfter.Microseconds() {
		return false
	}
	byteOf := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1}
	return unix.FcntlFlock(m.file.Fd(), unix.F_OFD_GETLK, &byteOf) != nil || byteOf.Type != unix.F_UNLCK
}

// promised reports whether the next turn at a site is another process's.
func (m *mapping) promised(s *site) bool {
	i, left := uint32(s.waits%owners), int64(s.waits/owners)-up()
	return i != uint32(m.me) && left > 0 && left <= (longestWait+waitsFor).Microseconds() && m.works(i)
}

// wait makes the next turn at a site this process's, unless it is another's. It asks for it
// after d.
func (m *mapping) wait(s *site, d time.Duration) {
	if d <= longestWait && !m.promised(s) {
		s.waits = uint64(up()+(d+waitsFor).Microseconds())*owners + uint64(uint32(m.me))
	}
}

// at does something with what the file has of a site, named by any string, under the lock
// of its bucket. It is not done where the file has no place for the site.
func (f *File) at(name string, do func(*mapping, *site)) {
	f.in(func(m *mapping) {
		s, free := m.find(name)
		defer free()
		if s != nil {
			do(m, s)
		}
	})
}

// Take takes the turn at a site, and returns what is known of it. ok is false when a
// request of this or another process is in flight, or when another one has waited for the
// turn; it is asked again after a while, and has the next turn then. Who has the turn calls
// Give.
func (f *File) Take(name string, now time.Time) (known Times, ok bool) {
	ok = true
	f.at(name, func(m *mapping, s *site) {
		if ok = !m.held(s) && !m.promised(s); !ok {
			m.wait(s, 0)
			return
		}
		s.waits = 0
		if s.holder != 0 {
			s.ended = now.UnixMicro() // its request may have been answered as late as now
		}
		s.holder, s.taken = m.me, up()
		known = s.times().back(now)
		s.set(known)
	})
	return known, ok
}

// Keep reports whether this process still has the turn that it took, and if so keeps it
// for as long as if it took it now.
func (f *File) Keep(name string) bool {
	kept := true // as in Take
	f.at(name, func(m *mapping, s *site) {
		if kept = s.holder == m.me; kept {
			s.taken = up()
		}
	})
	return kept
}

// Look returns what is known of a site.
func (f *File) Look(name string, now time.Time) (known Times) {
	f.at(name, func(_ *mapping, s *site) { known = s.times().back(now) })
	return known
}

// Tell makes times known that are later than the known ones.
func (f *File) Tell(name string, t Times) {
	f.at(name, func(_ *mapping, s *site) { s.set(s.times().join(t)) })
}

// Give gives a turn back, and tells what is known now. With again, over 0, this process had
// no use for it yet: it has the next one after that time, else one with a shorter gap would
// come before it each time.
func (f *File) Give(name string, t Times, again time.Duration) {
	f.at(name, func(m *mapping, s *site) {
		if s.holder == m.me { // else this process was stopped, and another one has the turn
			s.holder = 0
		}
		if again > 0 {
			m.wait(s, again)
		}
		s.set(s.times().join(t))
	})
}

// find locks a site's bucket until free is called. A site that is new takes the place of
// the one that may be asked first, nil if all are being asked.
func (m *mapping) find(name string) (s *site, free func()) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash.Hash never fails
	key := max(h.Sum64(), 1)
	b := &m.buckets[key%buckets]
	free = b.lock()
	for i := range b.sites {
		if b.sites[i].key == key {
			return &b.sites[i], free
		}
	}
	for i := range b.sites {
		if of := &b.sites[i]; (s == nil || of.until() < s.until()) && !m.held(of) {
			s = of
		}
	}
	if s != nil {
		*s = site{key: key}
	}
	return s, free
}

func (b *bucket) lock() (free func()) {
	for {
		now := up()
		since := b.locked.Load()
		if age := time.Duration(now-since) * time.Microsecond; since == 0 || age > lockedFor || age < -lockedFor {
			if b.locked.CompareAndSwap(since, now) {
				return func() { b.locked.CompareAndSwap(now, 0) }
			}
			continue
		}
		runtime.Gosched()
	}
}

func (s *site) until() int64 { return max(s.ended, s.next, s.paused) }

func (s *site) times() Times {
	at := func(micros int64) time.Time {
		if micros == 0 {
			return time.Time{}
		}
		return time.UnixMicro(micros)
	}
	return Times{at(s.ended), at(s.next), at(s.paused)}
}

func (s *site) set(t Times) {
	micros := func(at time.Time) int64 {
		if at.IsZero() {
			return 0
		}
		return at.Add(time.Microsecond - 1).UnixMicro() // rounded up: never too early
	}
	s.ended, s.next, s.paused = micros(t.Ended), micros(t.Next), micros(t.Paused)
}
