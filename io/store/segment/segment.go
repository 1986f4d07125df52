// Package segment keeps results in few large objects instead of several small ones
// for each result.
//
// A lane has a folder with a log: numbered entries, each created only if its number is
// free. Its writer first appends a begin. Then it writes the files of a segment, and
// appends a commit that names them with their SHA-256. Only the commit makes a segment
// exist; files that no commit names are swept by the next writer.
//
// A writer that has lost its lane cannot commit: the next one has appended a begin, so
// its number is not free any more, or its entry is not the newest one. A begin names the
// commits that are valid so far, so the begins before it are swept. No promise: see docs/library.md.
package segment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
)

// ErrTakenOver means that another process writes to this lane now.
var ErrTakenOver = errors.New("another process has taken the lane over")

// Commit is an entry of a log. It makes a segment exist.
type Commit struct {
	Key string `json:"-"`

	Begin    bool      `json:"begin,omitempty"` // it only says that Writer writes from here on
	Keeps    []string  `json:"keeps,omitzero"`  // of a begin: the first files of the older commits, and only these stay valid
	Writer   string    `json:"writer"`
	RunID    string    `json:"run_id"`
	At       time.Time `json:"at"`
	ForcedBy string    `json:"forced_by,omitempty"` // id of the forced run
	Files    []File    `json:"files,omitempty"`
	Done     []Done    `json:"done,omitempty"`
	Replaces []string  `json:"replaces,omitempty"` // keys of the commits whose results this one has
}

// File is an object of a segment.
type File struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Count  int64  `json:"count"` // of its records or rows
}

// Done names the results of one partition in a segment.
type Done struct {
	Country  string   `json:"country"`
	Category string   `json:"category"`
	Date     string   `json:"date"`
	Names    []string `json:"names"`
}

// File returns the file of a commit whose key has this ending.
func (c Commit) File(ending string) (File, bool) {
	i := slices.IndexFunc(c.Files, func(f File) bool { return strings.HasSuffix(f.Key, ending) })
	if i < 0 {
		return File{}, false
	}
	return c.Files[i], true
}

// maxEntry is the size of the largest entry, and maxFile that of the largest file of a
// segment, that is read.
const (
	maxEntry = 64 << 20
	maxFile  = 1 << 30
)

// ErrDamaged says that a file is not what was committed.
var ErrDamaged = errors.New("damaged")

// Read reads a file of a commit, and compares its SHA-256. Its error is ErrDamaged where
// they differ.
func Read(ctx context.Context, s store.Store, f File) ([]byte, error) {
	b, err := store.ReadAll(ctx, s, f.Key, min(f.Size, maxFile))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("reading %s: %w: its bytes are not those that were committed, by their SHA-256; restore it from a copy, or remove its commit, so that its domains are visited again", f.Key, ErrDamaged)
	}
	return b, nil
}

// Lane returns the folder of lane n of of under root.
func Lane(root string, n, of int) string { return fmt.Sprintf("%slane-%05d-of-%05d/", root, n, of) }

// parseKey returns the folder of a key, and the number of an entry, -1 for another object.
func parseKey(key string) (dir string, number int64) {
	dir, name := path.Split(key)
	digits, ok := strings.CutSuffix(name, ".json")
	if n, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && len(digits) == 8 {
		return dir, n
	}
	return dir, -1
}

// shared reports whether lane n of of and the lane of a folder under root can have a
// host in common. (A lane is a hash modulo the number of lanes.) Of another kind of
// folder that is not known.
func shared(root, dir string, n, of int) bool {
	m, om, ok := parseLane(root, dir)
	if !ok {
		return true
	}
	a, b := of, om
	for b != 0 {
		a, b = b, a%b
	}
	return n%a == m%a
}

// parseLane reads what Lane made.
func parseLane(root, dir string) (n, of int, ok bool) {
	_, err := fmt.Sscanf(strings.TrimPrefix(dir, root), "lane-%05d-of-%05d/", &n, &of)
	return n, of, err == nil && of > 0
}

// folder is what a lane's folder has.
type folder struct {
	entries map[int64]Commit // by number
	others  []string         // keys of other objects
}

// valid returns the commits in their order, and the keys of entries that mean nothing:
// begins before the newest one, commits of a process that had lost its lane, and those
// that another commit replaces.
func (f folder) valid() (commits []Commit, void []string) {
	numbers := slices.Sorted(maps.Keys(f.entries))
	last, keeps := int64(-1), map[string]bool{}
	for _, n := range numbers {
		if c := f.entries[n]; c.Begin && c.Keeps != nil {
			last = n
		}
	}
	for _, key := range f.entries[last].Keeps {
		keeps[key] = true
	}
	writer, replaced := "", map[string]bool{}
	for _, n := range numbers {
		c := f.entries[n]
		switch {
		case c.Begin:
			writer = c.Writer
			if n < last {
				void = append(void, c.Key)
			}
		case n > last && c.Writer == writer, n < last && keeps[c.Files[0].Key]:
			commits = append(commits, c)
			for _, key := range c.Replaces {
				replaced[key] = true
			}
		default:
			void = append(void, c.Key)
		}
	}
	commits = slices.DeleteFunc(commits, func(c Commit) bool {
		if replaced[c.Key] {
			void = append(void, c.Key)
		}
		return replaced[c.Key]
	})
	return commits, void
}

// maxTries is how often an entry is tried to be created under the next number.
const maxTries = 100

// reads is how many entries are read at the same time.
const reads = 16

// list returns the keys of the objects under prefix, by folder.
func list(ctx context.Context, s store.Store, prefix string) (map[string][]string, error) {
	folders := map[string][]string{}
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		dir, _ := parseKey(o.Key)
		folders[dir] = append(folders[dir], o.Key)
	}
	return folders, nil
}

// read reads the entries of a folder that has these keys, with the names of results that
// keep wants; nil: all.
func read(ctx context.Context, s store.Store, keys []string, keep func(string) bool) (folder, error) {
	f := folder{entries: map[int64]Commit{}}
	var mu sync.Mutex
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(reads)
	for _, key := range keys {
		_, number := parseKey(key)
		if number < 0 {
			f.others = append(f.others, key)
			continue
		}
		group.Go(func() error {
			c, err := readEntry(within, s, key)
			if errors.Is(err, store.ErrNotExist) {
				return nil // swept since the listing
			}
			if err == nil {
				for i := range c.Done {
					if keep != nil {
						c.Done[i].Names = chosen(c.Done[i].Names, keep)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				f.entries[number] = c
			}
			return err
		})
	}
	return f, group.Wait()
}

// chosen returns the names that keep wants, in memory of their own.
func chosen(names []string, keep func(string) bool) (some []string) {
	for _, name := range names {
		if keep(name) {
			some = append(some, strings.Clone(name))
		}
	}
	return some
}

func readEntry(ctx context.Context, s store.Store, key string) (Commit, error) {
	b, err := store.ReadAll(ctx, s, key, maxEntry)
	if err != nil {
		return Commit{}, err
	}
	c, err := decode(b)
	if err != nil {
		return Commit{}, fmt.Errorf("reading %s: %w", key, err)
	}
	c.Key = key
	return c, nil
}

var errEntry = errors.New("it is no commit of packed results; move it out of the store")

func decode(b []byte) (c Commit, err error) {
	if err := json.Unmarshal(b, &c); err != nil {
		return Commit{}, fmt.Errorf("%w: %w", errEntry, err)
	}
	if c.Writer == "" || !c.Begin && len(c.Files) == 0 {
		return Commit{}, errEntry
	}
	return c, nil
}

// Log is a lane's log, for its one writer.
type Log struct {
	s     store.Store
	dir   string
	next  int64
	begin Commit
}

// Open is Index.Open for a folder by itself.
func Open(ctx context.Context, s store.Store, dir, runID string, each func(Commit)) (*Log, error) {
	l := &Log{s: s, dir: dir, begin: Commit{Begin: true, Writer: rand.Text(), RunID: runID, At: time.Now().UTC()}}
	listed, err := list(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	f, err := read(ctx, s, listed[dir], nil)
	if err != nil {
		return nil, err
	}
	for number := range f.entries {
		l.next = max(l.next, number+1)
	}
	opened := false
	for try := 0; !opened; try++ {
		number := l.next
		l.begin.Keeps = []string{}
		before, _ := f.valid()
		for _, c := range before {
			l.begin.Keeps = append(l.begin.Keeps, c.Files[0].Key)
		}
		c, err := l.append(ctx, l.begin)
		if err == nil {
			f.entries[number], opened = c, true
			continue
		}
		if !errors.Is(err, ErrTakenOver) || try == maxTries {
			return nil, err
		}
		other, err := readEntry(ctx, s, l.key(number)) // of a process that is a moment ahead
		if errors.Is(err, store.ErrNotExist) {
			continue // and that another one has swept
		}
		if err != nil {
			return nil, err
		}
		f.entries[number] = other
		l.next = number + 1
	}
	commits, void := f.valid()
	for _, c := range commits {
		each(c)
	}
	if err := store.Remove(ctx, s, left(commits, append(void, f.others...))...); err != nil {
		return l, fmt.Errorf("sweeping packed results without a commit: %w", err)
	}
	return l, nil
}

// left returns those of keys that no commit names.
func left(commits []Commit, keys []string) []string {
	named := map[string]bool{}
	for _, c := range commits {
		for _, f := range c.Files {
			named[f.Key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return named[key] })
}

// Folder is the folder of the log.
func (l *Log) Folder() string { return l.dir }

func (l *Log) key(number int64) string { return fmt.Sprintf("%s%08d.json", l.dir, number) }

// append creates the next entry.
func (l *Log) append(ctx context.Context, c Commit) (Commit, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return Commit{}, fmt.Errorf("writing a commit: %w", err)
	}
	if int64(len(body)) > maxEntry {
		return Commit{}, fmt.Errorf("writing a commit: it has %d bytes, want at most %d", len(body), maxEntry)
	}
	for range maxTries {
		key := l.key(l.next)
		err := store.Create(ctx, l.s, key, body, store.PutOptions{})
		if err == nil {
			l.next++
			c.Key = key
			return c, l.newest(ctx, c.Key)
		}
		if !errors.Is(err, store.ErrExist) {
			return Commit{}, err
		}
		there, readErr := readEntry(ctx, l.s, key)
		switch {
		case errors.Is(readErr, store.ErrNotExist):
			continue // swept since
		case readErr != nil:
			return Commit{}, errors.Join(err, readErr)
		case there.Writer != l.begin.Writer:
			return Commit{}, fmt.Errorf("creating %s: %w: run %s", key, ErrTakenOver, there.RunID)
		}
		l.next++ // an earlier attempt of ours that seemed to fail
	}
	return Commit{}, fmt.Errorf("creating %s: it is there and cannot be read; look at what is in its place", l.key(l.next))
}

// newest checks that an entry is the log's newest one. Replaced commits are removed, so
// a number that is free may be an old one.
func (l *Log) newest(ctx context.Context, key string) error {
	for o, err := range l.s.List(ctx, l.dir) {
		if err != nil {
			return fmt.Errorf("listing %s: %w", l.dir, err)
		}
		if _, number := parseKey(o.Key); number >= l.next {
			return fmt.Errorf("%s is newer than %s: %w", o.Key, key, ErrTakenOver)
		}
	}
	return nil
}

// Part is a file of a segment before it is written.
type Part struct {
	Ending string // of its name, such as .parquet
	Body   []byte
	Count  int64
}

// Commit writes the parts of a segment and then the commit c, which needs only what
// says more about it. The error matches ErrTakenOver if another process writes to the
// lane now. After any other error the segment may be committed again.
func (l *Log) Commit(ctx context.Context, c Commit, parts ...Part) (Commit, error) {
	c.Writer, c.RunID, c.At = l.begin.Writer, l.begin.RunID, time.Now().UTC()
	var items []store.Item
	name := fmt.Sprintf("%s%08d-%s", l.dir, l.next, rand.Text()) // never that of an attempt whose end is not known
	for _, p := range parts {
		sum := sha256.Sum256(p.Body)
		f := File{Key: name + p.Ending, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(p.Body)), Count: p.Count}
		c.Files = append(c.Files, f)
		items = append(items, store.Item{Key: f.Key, Body: p.Body})
	}
	if err := errors.Join(store.PutAll(ctx, l.s, items)...); err != nil {
		return Commit{}, err
	}
	return l.append(ctx, c)
}

// Remove removes a commit whose results are in others, its entry first: a commit whose
// files are gone could not be read.
func (l *Log) Remove(ctx context.Context, c Commit) error {
	if err := store.Remove(ctx, l.s, c.Key); err != nil {
		return err
	}
	for _, f := range c.Files {
		if err := store.Remove(ctx, l.s, f.Key); err != nil {
			return err
		}
	}
	return nil
}
