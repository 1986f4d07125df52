// Package delta keeps a table of Parquet files in a store, in the open format Delta (protocol: reader 1, writer 2).
//
// The table is what its log says: numbered entries, each created only if its number is free, and each naming files that come
// and files that go. There is no catalog. Files that no entry names mean nothing. A reader sees the files of one version.
//
// A writer has a name, such as that of a lane, and begins with an entry that counts the name's epoch up (Delta's txn action).
// An older writer of the same name finds the newer epoch before it can write
// its next entry, so it can never commit again. Writers of one process that commit at the same moment share an entry.
// No promise: see docs/library.md.
package delta

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	randv2 "math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

var (
	// ErrTakenOver means that another writer of the same name has begun. Stop: nothing that is committed from here on counts.
	ErrTakenOver = errors.New("another process has taken over")
	// ErrConflict means that a file that a change removes is not in the table any more. Nothing was committed. Take a new
	// snapshot, and plan the change again.
	ErrConflict = errors.New("another change has removed the file")
	// ErrDamaged means that a part of the log is not what this program can read. The message names its key.
	ErrDamaged = errors.New("not an entry of a Delta table that this program can read")
	// ErrNoTable means that there is no table.
	ErrNoTable = errors.New("there is no table")
	// ErrVersion means that a version is not there: not yet, or not any more.
	ErrVersion = errors.New("the log does not have this version")
)

// File is a file of a table.
type File struct {
	Path     string            // relative to the table's root: a letter or digit, then A-Z a-z 0-9 . _ = - and /
	Size     int64             // bytes
	Rows     int64             // how many
	Modified time.Time         // when it was written
	Tags     map[string]string // what its writer noted
}

// Snapshot is a version of a table. It is shared: only read it.
type Snapshot struct {
	Version int64
	At      time.Time // when it was committed, later than the version before
	Files   []File    // sorted by path
	Epochs  map[string]int64
}

// Table is a table of one process. Writers of a process share one, or their commits cannot share entries.
type Table struct {
	// Warn, if set, gets the error of a checkpoint that could not be written. Nothing is lost: readers read more entries until the next one.
	Warn func(error)

	log
	current atomic.Pointer[state]
	turn    chan struct{} // held by the one call that reads or writes the log
	read    time.Time     // when the newest entry was known to be the newest
	pace    time.Duration // how long a commit waits for others to share its entry
	mu      sync.Mutex
	queue   []*member // of the next entry
}

// member is what one call wants to have in an entry.
type member struct {
	plan    func(*state) ([]action, error) // returns what to write after a version; nothing: it is done
	note    Note
	ended   bool
	version int64
	err     error
}

// Open opens the table under root, which ends with a slash. It creates the table if there is none, and adds the columns of
// schema that the table lacks.
func Open(ctx context.Context, s store.Store, root string, schema Schema) (*Table, error) {
	t, err := open(ctx, s, root)
	if err != nil {
		return nil, err
	}
	_, err = t.submit(ctx, &member{note: Note{Operation: "CREATE TABLE"}, plan: func(st *state) ([]action, error) {
		if st.meta == nil {
			meta := metaData{ID: newID(), Format: provider{"parquet", map[string]string{}}, Schema: schema.text(),
				Partition: []string{}, Configuration: map[string]string{}, Created: time.Now().UnixMilli()}
			return []action{{Protocol: &protocol{1, 2}}, {MetaData: &meta}}, nil
		}
		merged, err := schema.with(st.meta.Schema)
		if err != nil {
			return nil, fmt.Errorf("opening the table %s: %w", root, err)
		}
		if merged.text() == st.meta.Schema {
			return nil, nil
		}
		meta := *st.meta
		meta.Schema = merged.text()
		return []action{{MetaData: &meta}}, nil
	}})
	return t, err
}

// Existing opens the table under root to read it. The error matches ErrNoTable if there is none.
func Existing(ctx context.Context, s store.Store, root string) (*Table, error) {
	t, err := open(ctx, s, root)
	if err == nil && t.current.Load().meta == nil {
		return nil, fmt.Errorf("opening %s: %w", root, ErrNoTable)
	}
	return t, err
}

func open(ctx context.Context, s store.Store, root string) (*Table, error) {
	t := &Table{log: log{s, root}, turn: make(chan struct{}, 1)}
	return t, t.reload(ctx)
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Snapshot returns the newest version. It reads the entries that came since the last call.
func (t *Table) Snapshot(ctx context.Context) (Snapshot, error) {
	if err := t.take(ctx); err != nil {
		return Snapshot{}, err
	}
	defer t.release()
	if err := t.refresh(ctx); err != nil {
		return Snapshot{}, err
	}
	return t.current.Load().snapshot(), nil
}

// At returns a version. The error matches ErrVersion if the log does not have it.
func (t *Table) At(ctx context.Context, version int64) (Snapshot, error) {
	st, err := t.load(ctx, version)
	if err != nil {
		return Snapshot{}, err
	}
	if st.version != version || version < 0 {
		return Snapshot{}, fmt.Errorf("reading version %d of %s: %w; its newest one is %d", version, t.root, ErrVersion, st.version)
	}
	return st.snapshot(), nil
}

func (t *Table) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the table %s: %w", t.root, context.Cause(ctx))
	}
}

func (t *Table) release() { <-t.turn }

// fresh is how long a table trusts that an entry after its newest one has not come and been removed. Trim keeps
// entries for longer than this.
const fresh = time.Hour

// stale reports whether the log was last read long ago, also by the clock on the wall: a process can be suspended.
func (t *Table) stale() bool { return time.Now().Round(0).Sub(t.read) > fresh }

// refresh reads the entries since the last time.
func (t *Table) refresh(ctx context.Context) error {
	if t.stale() {
		return t.reload(ctx)
	}
	return t.advance(t.follow(ctx, t.current.Load(), latest))
}

func (t *Table) reload(ctx context.Context) error { return t.advance(t.load(ctx, latest)) }

func (t *Table) advance(st *state, err error) error {
	if err != nil {
		return err
	}
	t.read = time.Now().Round(0)
	t.current.Store(st)
	return nil
}

// Writer commits to a table under its name.
type Writer struct {
	t     *Table
	app   string
	epoch int64
}

// Begin makes a writer of a name the only one of this name. The snapshot has all that the earlier ones ever committed.
func (t *Table) Begin(ctx context.Context, app string) (*Writer, Snapshot, error) {
	w := &Writer{t: t, app: app}
	_, err := t.submit(ctx, &member{note: Note{Operation: "BEGIN"}, plan: func(st *state) ([]action, error) {
		w.epoch = st.epochs[app] + 1
		return []action{{Txn: &txn{AppID: app, Version: w.epoch}}}, nil
	}})
	if err != nil {
		return nil, Snapshot{}, err
	}
	return w, t.current.Load().snapshot(), nil
}

// Change is what a commit changes.
type Change struct {
	Add    []File   // their objects exist. Each attempt to write one has a path of its own.
	Remove []string // paths of a snapshot of the writer's table
	// Rewrite says that the rows of the table stay the same: they are in other files.
	Rewrite   bool
	Operation string            // WRITE, OPTIMIZE, DELETE …
	Info      map[string]string // is kept with the version
}

// goodPath is the form of a path that has the same spelling in a URL.
var goodPath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._=/-]*$`)

// Commit commits a change, and returns a version that has it. The error matches ErrTakenOver or ErrConflict if nothing was
// committed. After another error the change may have been committed or may yet be: Commit the same change again. Its added
// paths tell whether the earlier attempt was successful.
func (w *Writer) Commit(ctx context.Context, c Change) (int64, error) {
	for _, f := range c.Add {
		if !goodPath.MatchString(f.Path) || !fs.ValidPath(f.Path) {
			return 0, fmt.Errorf("committing to %s: the path %q is none that begins with a letter or digit and then has A-Z a-z 0-9 . _ = - and /",
				w.t.root, f.Path)
		}
	}
	return w.t.submit(ctx, &member{note: Note{c.Operation, c.Info}, plan: func(st *state) ([]action, error) {
		if st.epochs[w.app] != w.epoch {
			return nil, fmt.Errorf("committing to %s as %s: %w", w.t.root, w.app, ErrTakenOver)
		}
		if len(c.Add) > 0 && !slices.ContainsFunc(c.Add, func(f File) bool { return !st.knows(f.Path) }) {
			return nil, nil // an earlier attempt was successful
		}
		actions, err := st.change(c)
		if err != nil {
			return nil, fmt.Errorf("committing to %s: %w", w.t.root, err)
		}
		return actions, nil
	}})
}

// knows reports whether a file is in the table, or was.
func (st *state) knows(path string) bool {
	_, is := st.files[path]
	_, was := st.removed[path]
	return is || was
}

// change returns the actions of a change.
func (st *state) change(c Change) (actions []action, err error) {
	for _, path := range c.Remove {
		f, ok := st.files[path]
		if !ok {
			return nil, fmt.Errorf("%s: %w", path, ErrConflict)
		}
		actions = append(actions, f.removed(st.at, !c.Rewrite))
	}
	for _, f := range c.Add {
		if f.Modified.IsZero() {
			f.Modified = time.UnixMilli(st.at)
		}
		actions = append(actions, f.added(!c.Rewrite))
	}
	return actions, nil
}

func (f File) added(dataChange bool) action {
	rows := fmt.Sprintf(`{"numRecords":%d}`, f.Rows) // no smallest and largest values: those of removed rows would stay in the log
	return action{Add: &added{Path: f.Path, Partition: map[string]string{}, Size: f.Size, Modified: f.Modified.UnixMilli(),
		DataChange: dataChange, Stats: rows, Tags: f.Tags}}
}

func (f File) removed(at int64, dataChange bool) action {
	return action{Remove: &removed{Path: f.Path, Deleted: at, DataChange: dataChange, Extended: true,
		Partition: map[string]string{}, Size: f.Size, Tags: f.Tags}}
}

// minPace and maxPace limit the wait for others to share an entry. It grows when other processes are faster: the more of
// them write, the more of their commits share an entry.
const (
	minPace = 50 * time.Millisecond
	maxPace = 5 * time.Second
)

// submit has a member written in an entry, together with all that wait for it.
func (t *Table) submit(ctx context.Context, m *member) (int64, error) {
	t.mu.Lock()
	t.queue = append(t.queue, m)
	t.mu.Unlock()
	if err := t.take(ctx); err != nil {
		return 0, err
	}
	defer t.release()
	if !m.ended { // nobody has written it: write all
		t.write(ctx, m)
	}
	return m.version, m.err
}

// write writes an entry for all that wait. After an error of this call alone the others stay in the queue.
func (t *Table) write(ctx context.Context, own *member) {
	err := t.gather(ctx)
	var batch []*member
	for first := true; err == nil; first = false {
		t.mu.Lock()
		batch, t.queue = append(batch, t.queue...), nil
		t.mu.Unlock()
		if first {
			t.pace -= t.pace / 8
		}
		err = t.try(ctx, batch)
		batch = slices.DeleteFunc(batch, func(m *member) bool { return m.ended })
		if len(batch) == 0 {
			return
		}
		t.pace = min(max(2*t.pace, minPace), maxPace) // another process was first
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	batch, t.queue = append(batch, t.queue...), nil
	if ctx.Err() != nil {
		t.queue = slices.DeleteFunc(slices.Clone(batch), func(m *member) bool { return m == own })
		batch = slices.DeleteFunc(batch, func(m *member) bool { return m != own })
	}
	for _, m := range batch {
		m.end(-1, err)
	}
}

// gather waits for others to share an entry, and reads what other processes have written meanwhile.
func (t *Table) gather(ctx context.Context) error {
	if t.pace < minPace/2 {
		return nil
	}
	timer := time.NewTimer(t.pace/2 + randv2.N(t.pace))
	defer timer.Stop()
	select {
	case <-timer.C:
		return t.refresh(ctx)
	case <-ctx.Done():
		return fmt.Errorf("committing to %s: %w", t.root, context.Cause(ctx))
	}
}

func (m *member) end(version int64, err error) { m.ended, m.version, m.err = true, version, err }

// try writes the entry after the newest one. If another process was first, it reads that entry, and the members wait for the
// next try.
func (t *Table) try(ctx context.Context, batch []*member) error {
	if t.stale() {
		if err := t.reload(ctx); err != nil {
			return err
		}
	}
	st := t.current.Load()
	next, planned, actions := st.plan(batch)
	if len(planned) == 0 {
		return nil
	}
	body, err := encode(actions)
	if err != nil {
		return err
	}
	key := t.entryKey(next.version)
	err = store.Retry(ctx, func() error { return t.s.PutIfAbsent(ctx, key, bytes.NewReader(body), store.PutOptions{}) })
	lost := errors.Is(err, store.ErrExist)
	if err != nil && !lost {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	if lost {
		there, err := t.follow(ctx, st, next.version)
		if err == nil && there.version == st.version {
			err = fmt.Errorf("creating %s: it is there and cannot be read; look at what is in its place", key)
		}
		if err != nil {
			return err
		}
		if there.id != next.id { // else the answer to an earlier attempt was lost
			return t.advance(t.follow(ctx, there, latest))
		}
	}
	if t.stale() { // the number may have been free because Trim has removed its entry: plan again from what is there now
		return t.reload(ctx)
	}
	for _, m := range planned {
		m.end(next.version, nil)
	}
	if err := t.advance(next, nil); err != nil {
		return err
	}
	if next.version > 0 && next.version%interval == 0 {
		if err := t.checkpoint(ctx, next); err != nil && t.Warn != nil {
			t.Warn(fmt.Errorf("writing the checkpoint of version %d: %w", next.version, err))
		}
	}
	return nil
}

// plan returns the entry of a batch, the state after it, and the members that it has. It ends the others.
func (st *state) plan(batch []*member) (next *state, planned []*member, actions []action) {
	next = st.clone()
	next.version, next.id, next.at = st.version+1, rand.Text(), max(time.Now().UnixMilli(), st.at+1)
	var notes []Note
	for _, m := range batch {
		own, err := m.plan(next)
		if err != nil || len(own) == 0 {
			m.end(st.version, err)
			continue
		}
		next.apply(own)
		planned = append(planned, m)
		actions = append(actions, slices.DeleteFunc(own, func(a action) bool { return a.Txn != nil })...)
		if !slices.ContainsFunc(notes, func(n Note) bool { return n.Operation == m.note.Operation && maps.Equal(n.Info, m.note.Info) }) {
			notes = append(notes, m.note)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(next.epochs)) {
		if epoch := next.epochs[app]; epoch != st.epochs[app] {
			actions = append(actions, action{Txn: &txn{AppID: app, Version: epoch, LastUpdated: next.at}})
		}
	}
	if len(planned) == 0 {
		return next, nil, nil
	}
	info := commitInfo{Timestamp: next.at, Operation: notes[0].Operation, Parameters: map[string]string{},
		Engine: "seed-engine", TxnID: next.id, Changes: notes}
	return next, planned, append([]action{{CommitInfo: &info}}, actions...)
}
