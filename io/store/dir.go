package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// reservedDir at the root of a directory store contains the sidecars.
	reservedDir = ".store"
	// tempPrefix begins the names of files that are being written.
	tempPrefix = ".store-tmp-"

	// The user's umask decides who may read the results, as for any program's
	// output.
	fileMode = 0o666
	dirMode  = 0o777
)

// dir is a directory as a store: a key is a path. Two keys of which one is a
// folder of the other ("a" and "a/b") cannot both exist, and the file system
// limits the length of a key's element, mostly to 255 bytes.
type dir struct {
	root string
	info fs.FileInfo // of the root at the time it was opened

	commits  groupCommit
	sidecars atomic.Bool // some object may have a sidecar

	// Tests replace these.
	syncFileSystem func(root string) error
	setXattr       func(f *os.File, name string, value []byte) error
}

func openDir(root string) (*dir, error) {
	if root == "" {
		return nil, errors.New("opening the store: its directory's name is empty")
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("opening the store: the directory must exist (create it with mkdir -p, or check its name): %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("opening the store: %s is a file, not a directory", root)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("opening the store: finding the directory: %w", err)
	}
	d := &dir{root: abs, info: info, syncFileSystem: syncFileSystem, setXattr: setXattr}
	_, err = os.Lstat(filepath.Join(abs, reservedDir))
	d.sidecars.Store(!hasXattrs(abs) || !errors.Is(err, fs.ErrNotExist))
	return d, nil
}

// ErrGone means that a directory store is no longer where it was opened.
var ErrGone = errors.New("the store's directory is not there any more: was it unmounted, moved or deleted? Put it back, or start the program again")

// checkRoot makes sure that the root is still the directory that was opened: a
// removed directory, or its empty mount point, is not an empty store.
func (d *dir) checkRoot() error {
	info, err := os.Stat(d.root)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, d.info):
		// Not %w of err: it would match ErrNotExist, an absent object.
		return fmt.Errorf("%s: %w", d.root, ErrGone)
	case err != nil:
		return fmt.Errorf("looking for the store's directory: %w", err)
	}
	return nil
}

// absentError returns err, or ErrGone where an object is absent because the whole
// store is.
func (d *dir) absentError(err error) error {
	if errors.Is(err, ErrNotExist) {
		if gone := d.checkRoot(); gone != nil {
			return gone
		}
	}
	return err
}

// path is the file of key, or ErrKey for a key that a directory cannot hold.
func (d *dir) path(key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if reserved(key, true) || strings.Contains(key, "/"+tempPrefix) {
		return "", fmt.Errorf("key %q: the directory store reserves the names %s and %s*: %w", key, reservedDir, tempPrefix, ErrKey)
	}
	p, err := filepath.Localize(key)
	if err != nil {
		return "", fmt.Errorf("key %q: it is not a valid file name on this system: %w", key, ErrKey)
	}
	return filepath.Join(d.root, p), nil
}

// reserved says whether a file name belongs to this driver and is no object.
func reserved(name string, atRoot bool) bool {
	return strings.HasPrefix(name, tempPrefix) || atRoot && (name == reservedDir || strings.HasPrefix(name, reservedDir+"/"))
}

func (d *dir) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		// The deepest folder of the prefix. A folder that no key can be in ("../")
		// has no objects and must not be read.
		folder := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if folder != "" {
			if _, err := d.path(strings.TrimSuffix(folder, "/")); err != nil {
				return
			}
		}
		if err := d.checkRoot(); err != nil {
			yield(Object{}, fmt.Errorf("listing %q: %w", prefix, err))
			return
		}
		d.walk(ctx, folder, prefix, yield)
	}
}

// entry is one name in a folder. The name of a subfolder ends with "/", so that
// names sort as the keys below them do: "a.json" before "a/b", as in a bucket.
type entry struct {
	name string
	info func() (fs.FileInfo, error)
}

// walk lists a folder ("" or ending with "/"), and says whether to continue.
func (d *dir) walk(ctx context.Context, folder, prefix string, yield func(Object, error) bool) bool {
	fail := func(err error) bool {
		yield(Object{}, fmt.Errorf("listing %q: %w", prefix, err))
		return false
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	var entries []entry
	err := Retry(ctx, func() (err error) {
		entries, err = d.entries(folder)
		return ofList(ctx, err)
	})
	if err != nil {
		return fail(err)
	}
	for _, e := range entries {
		key := folder + e.name
		isDir := strings.HasSuffix(key, "/")
		switch {
		case isDir && (strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key)):
			if !d.walk(ctx, key, prefix, yield) {
				return false
			}
		case !isDir && strings.HasPrefix(key, prefix):
			info, err := e.info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted meanwhile
			}
			if err != nil {
				return fail(err)
			}
			if !yield(object(key, info), nil) {
				return false
			}
		}
	}
	return true
}

// entries reads the names in a folder, sorted; none when it does not exist.
func (d *dir) entries(folder string) ([]entry, error) {
	at := filepath.Join(d.root, filepath.FromSlash(folder))
	f, err := os.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		if info, statErr := os.Stat(at); statErr == nil && !info.IsDir() {
			return nil, nil // the prefix has a file where a folder would be
		}
		return nil, err
	}
	entries := make([]entry, 0, len(files))
	for _, file := range files {
		name, mode, info := file.Name(), file.Type(), file.Info
		if reserved(name, folder == "") {
			continue
		}
		if mode&fs.ModeSymlink != 0 { // links are followed
			target, err := os.Stat(filepath.Join(at, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil { // also ELOOP, of a link to a folder above itself
				return nil, err
			}
			mode, info = target.Mode(), func() (fs.FileInfo, error) { return target, nil }
		}
		switch {
		case mode.IsDir():
			entries = append(entries, entry{name + "/", nil})
		case mode.IsRegular():
			entries = append(entries, entry{name, info})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// object describes a file. Each Put creates a new file, so the inode
// distinguishes two versions that were written within one tick of the clock.
func object(key string, info fs.FileInfo) Object {
	etag := strconv.FormatInt(info.Size(), 16) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 16) + "-" + strconv.FormatUint(inode(info), 16)
	return Object{Key: key, Size: info.Size(), ModTime: info.ModTime(), ETag: etag}
}

func (d *dir) Head(ctx context.Context, key string) (Object, error) {
	path, err := d.path(key)
	if err != nil {
		return Object{}, err
	}
	if err := ctx.Err(); err != nil {
		return Object{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Object{}, d.absentError(fileError("describing", key, err))
	}
	if !info.Mode().IsRegular() {
		return Object{}, fmt.Errorf("describing %q: %w", key, ErrNotExist)
	}
	o := object(key, info)
	a, err := d.readAttributes(path, key)
	if err != nil {
		return Object{}, fmt.Errorf("describing %q: %w", key, err)
	}
	o.ContentType, o.Metadata = a.ContentType, a.Metadata
	if o.ContentType == "" {
		o.ContentType = defaultContentType(key)
	}
	return o, nil
}

func (d *dir) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	path, err := d.path(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, d.absentError(fileError("opening", key, err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %q: %w", key, err), f.Close())
	}
	return f, nil
}

func (d *dir) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return d.put(ctx, key, body, o, false)
}

func (d *dir) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return d.put(ctx, key, body, o, true)
}

// put writes a temporary file in the object's folder, so on the same file system,
// and renames it. The data is synced first, so that after a power cut no object
// is incomplete. The folder is not synced (see Sync): after a power cut the object
// can be absent, and its work is done again. An empty object has no data to sync.
func (d *dir) put(ctx context.Context, key string, body io.Reader, o PutOptions, ifAbsent bool) error {
	if err := d.checkRoot(); err != nil {
		return fmt.Errorf("writing %q: %w", key, err)
	}
	if ifAbsent { // avoids writing the file in vain; the link of publish decides
		if path, err := d.path(key); err != nil {
			return err
		} else if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("writing %q: %w", key, ErrExist)
		}
	}
	t, err := d.createTemp(ctx, key, body, o)
	if err != nil {
		return err
	}
	if t.size > 0 {
		err = t.file.Sync()
	}
	return d.publish(ctx, t, err, ifAbsent)
}

// temp is the temporary file of an object that has its content and not its name yet.
type temp struct {
	key     string
	path    string // of the object
	file    *os.File
	size    int64
	sidecar attributes // what the file itself cannot store
}

// createTemp writes body to a new temporary file in the folder of key, and creates
// that folder when it is absent. After a failure it leaves no file.
func (d *dir) createTemp(ctx context.Context, key string, body io.Reader, o PutOptions) (temp, error) {
	path, err := d.path(key)
	if err != nil {
		return temp{}, err
	}
	if o, err = o.withDefaults(key); err != nil {
		return temp{}, err
	}
	folder := filepath.Dir(path)
	name := filepath.Join(folder, tempPrefix+strconv.FormatUint(rand.Uint64(), 36))
	open := func() (*os.File, error) { return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode) }
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(folder, dirMode); err != nil {
			return temp{}, fileError("writing", key, err)
		}
		f, err = open()
	}
	if err != nil {
		return temp{}, fileError("writing", key, err)
	}
	buffer := copyBuffers.Get().(*[copySize]byte)
	size, err := io.CopyBuffer(struct{ io.Writer }{f}, cancellable{ctx, body}, buffer[:]) // File.ReadFrom makes a buffer for each copy
	copyBuffers.Put(buffer)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return temp{}, fileError("writing", key, errors.Join(err, f.Close(), os.Remove(name)))
	}
	return temp{key, path, f, size, d.setAttributes(f, attributesOf(key, o))}, nil
}

// publish gives a temporary file the name of its object. Where synced, the result
// of the file's sync, is an error, it removes the file.
func (d *dir) publish(ctx context.Context, t temp, synced error, ifAbsent bool) error {
	err := errors.Join(synced, t.file.Close())
	if err == nil {
		err = checkAllowed(ctx)
	}
	if err == nil && ifAbsent {
		// Link fails where the name is taken; a rename would replace it.
		if err = errors.Join(os.Link(t.file.Name(), t.path), os.Remove(t.file.Name())); err == nil {
			err = d.setSidecar(t.key, t.sidecar)
		}
		return fileError("writing", t.key, err)
	}
	// The sidecar is written first: no reader sees new content with the old type.
	if err == nil {
		err = d.setSidecar(t.key, t.sidecar)
	}
	if err == nil {
		err = checkAllowed(ctx) // again: a process may be suspended at any point before the rename
	}
	if err == nil {
		err = rename(t.file.Name(), t.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(t.file.Name()))
	}
	return fileError("writing", t.key, err)
}

const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// cancellable ends a copy when ctx is done.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (d *dir) Delete(ctx context.Context, key string) error {
	path, err := d.path(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.checkRoot(); err != nil {
		return fmt.Errorf("deleting %q: %w", key, err)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil // a folder is no object, but os.Remove would remove an empty one
	}
	err = fileError("deleting", key, os.Remove(path))
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	if err := d.setSidecar(key, attributes{}); err != nil {
		return fmt.Errorf("deleting %q: %w", key, err)
	}
	return nil
}

func (d *dir) Close() error { return nil }

// fileError adds the key to err. A file where the key has a folder is reported as
// an absent object.
func fileError(doing, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case isNotDir(err) && doing != "writing":
		err = ErrNotExist
	}
	return fmt.Errorf("%s %q: %w", doing, key, err)
}

// SweepTemp removes the temporary files that killed writers left in a directory
// store: those last written before the given time (an hour ago: a live writer's
// file is younger). It walks the whole store, past what it may not read, and
// returns how many it removed, with the first error; other stores have none.
func SweepTemp(ctx context.Context, s Store, before time.Time) (int, error) {
	own, dry := s.(dryRun) // nothing is removed, but counted
	if dry {
		s = own.Store
	}
	d, ok := bare(s).(*dir)
	if !ok {
		return 0, nil
	}
	removed := 0
	var first error
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil && info.ModTime().Before(before) {
				if !dry {
					err = os.Remove(path)
				}
				if err == nil {
					removed++
				}
			}
		}
		if first == nil && !errors.Is(err, fs.ErrNotExist) { // else another sweep, or the writer itself, removed it first
			first = err
		}
		return nil
	})
	if err = cmp.Or(err, first); err != nil {
		return removed, fmt.Errorf("sweeping temporary files: %w", err)
	}
	return removed, nil
}
