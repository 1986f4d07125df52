package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/columnar"
	"github.com/newsfork/seed-engine/io/store"
)

// Retention is how long a table remembers a removed file.
const Retention = 7 * 24 * time.Hour

const (
	maxEntry      = 64 << 20          // bytes of the largest entry that is read
	maxCheckpoint = 256 << 20         // and of the largest checkpoint
	reads         = 16                // entries that are read at the same time
	latest        = math.MaxInt64 / 2 // as the version up to which to read: all
)

// action is a line of an entry and a row of a checkpoint: one of its fields is set.
type action struct {
	CommitInfo *commitInfo `json:"commitInfo,omitempty" parquet:"-"`
	Txn        *txn        `json:"txn,omitempty" parquet:"txn,optional"`
	Add        *added      `json:"add,omitempty" parquet:"add,optional"`
	Remove     *removed    `json:"remove,omitempty" parquet:"remove,optional"`
	MetaData   *metaData   `json:"metaData,omitempty" parquet:"metaData,optional"`
	Protocol   *protocol   `json:"protocol,omitempty" parquet:"protocol,optional"`
}

// Times are in milliseconds since 1970.
type commitInfo struct {
	Timestamp  int64             `json:"timestamp"`
	Operation  string            `json:"operation"`
	Parameters map[string]string `json:"operationParameters"`
	Engine     string            `json:"engineInfo"`
	TxnID      string            `json:"txnId"`
	Changes    []Note            `json:"changes,omitempty"`
}

// Note says what a change of a version is.
type Note struct {
	Operation string            `json:"operation"`
	Info      map[string]string `json:"info,omitempty"`
}

type txn struct {
	AppID       string `json:"appId" parquet:"appId"`
	Version     int64  `json:"version" parquet:"version"`
	LastUpdated int64  `json:"lastUpdated" parquet:"lastUpdated,optional"`
}

type added struct {
	Path       string            `json:"path" parquet:"path"`
	Partition  map[string]string `json:"partitionValues" parquet:"partitionValues"`
	Size       int64             `json:"size" parquet:"size"`
	Modified   int64             `json:"modificationTime" parquet:"modificationTime"`
	DataChange bool              `json:"dataChange" parquet:"dataChange"`
	Stats      string            `json:"stats,omitempty" parquet:"stats,optional"`
	Tags       map[string]string `json:"tags,omitempty" parquet:"tags,optional"`
}

type removed struct {
	Path       string            `json:"path" parquet:"path"`
	Deleted    int64             `json:"deletionTimestamp" parquet:"deletionTimestamp,optional"`
	DataChange bool              `json:"dataChange" parquet:"dataChange"`
	Extended   bool              `json:"extendedFileMetadata" parquet:"extendedFileMetadata,optional"`
	Partition  map[string]string `json:"partitionValues,omitempty" parquet:"partitionValues,optional"`
	Size       int64             `json:"size,omitempty" parquet:"size,optional"`
	Tags       map[string]string `json:"tags,omitempty" parquet:"tags,optional"`
}

type provider struct {
	Provider string            `json:"provider" parquet:"provider"`
	Options  map[string]string `json:"options" parquet:"options"`
}

type metaData struct {
	ID            string            `json:"id" parquet:"id"`
	Format        provider          `json:"format" parquet:"format"`
	Schema        string            `json:"schemaString" parquet:"schemaString"`
	Partition     []string          `json:"partitionColumns" parquet:"partitionColumns,list"`
	Configuration map[string]string `json:"configuration" parquet:"configuration"`
	Created       int64             `json:"createdTime" parquet:"createdTime,optional"`
}

type protocol struct {
	Reader int32 `json:"minReaderVersion" parquet:"minReaderVersion"`
	Writer int32 `json:"minWriterVersion" parquet:"minWriterVersion"`
}

// state is a version of a table. It does not change after its version is published.
type state struct {
	version  int64 // -1: no table
	at       int64
	id       string // of the newest entry
	meta     *metaData
	protocol *protocol
	epochs   map[string]int64 // of the writers
	files    map[string]File
	removed  map[string]tombstone
	snapshot func() Snapshot
}

// tombstone is a file that was removed at a time.
type tombstone struct {
	File
	at int64
}

func empty() *state {
	return (&state{version: -1, epochs: map[string]int64{}, files: map[string]File{}, removed: map[string]tombstone{}}).clone()
}

func (st *state) clone() *state {
	next := *st
	next.epochs, next.files, next.removed = maps.Clone(st.epochs), maps.Clone(st.files), maps.Clone(st.removed)
	maps.DeleteFunc(next.removed, func(_ string, f tombstone) bool { return st.at-f.at >= Retention.Milliseconds() })
	next.snapshot = sync.OnceValue(func() Snapshot {
		s := Snapshot{Version: next.version, At: time.UnixMilli(next.at).UTC(), Files: make([]File, 0, len(next.files)), Epochs: next.epochs}
		for _, path := range slices.Sorted(maps.Keys(next.files)) {
			s.Files = append(s.Files, next.files[path])
		}
		return s
	})
	return &next
}

// apply makes st what it is after some actions.
func (st *state) apply(actions []action) {
	for _, a := range actions {
		switch {
		case a.CommitInfo != nil:
			st.at, st.id = a.CommitInfo.Timestamp, a.CommitInfo.TxnID
		case a.Txn != nil:
			st.epochs[a.Txn.AppID] = a.Txn.Version
		case a.Add != nil:
			var n struct{ NumRecords int64 }
			_ = json.Unmarshal([]byte(a.Add.Stats), &n) // another writer may give none
			st.files[a.Add.Path] = File{Path: a.Add.Path, Size: a.Add.Size, Rows: n.NumRecords,
				Modified: time.UnixMilli(a.Add.Modified).UTC(), Tags: a.Add.Tags}
			delete(st.removed, a.Add.Path)
		case a.Remove != nil:
			st.removed[a.Remove.Path] = tombstone{File{Path: a.Remove.Path, Size: a.Remove.Size, Tags: a.Remove.Tags}, a.Remove.Deleted}
			delete(st.files, a.Remove.Path)
		case a.MetaData != nil:
			st.meta = a.MetaData
		case a.Protocol != nil:
			st.protocol = a.Protocol
		}
	}
}

// check checks actions that come from a bucket, and decodes their paths.
func check(actions []action) error {
	for _, a := range actions {
		var path *string
		switch {
		case a.Add != nil:
			path = &a.Add.Path
		case a.Remove != nil:
			path = &a.Remove.Path
		case a.Txn != nil && (a.Txn.Version < 0 || a.Txn.Version == math.MaxInt64):
			return fmt.Errorf("%w: a writer's epoch is %d", ErrDamaged, a.Txn.Version)
		case a.Protocol != nil && (a.Protocol.Reader > 1 || a.Protocol.Writer > 2):
			return fmt.Errorf("%w: it requires reader version %d and writer version %d of Delta, and this program has 1 and 2; "+
				"another program has upgraded the table: use that one", ErrDamaged, a.Protocol.Reader, a.Protocol.Writer)
		}
		if path == nil {
			continue
		}
		name, err := url.PathUnescape(*path)
		if err != nil || !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("%w: it names the file %q, which is not a path within the table", ErrDamaged, *path)
		}
		*path = name
	}
	return nil
}

// encode returns an entry.
func encode(actions []action) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	for _, a := range actions {
		if err := lines.Encode(a); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// decodeEntry returns the actions of an entry. Kinds of actions that are not known change nothing for a reader of protocol 1.
func decodeEntry(b []byte) (actions []action, err error) {
	for line := range bytes.Lines(b) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var a action
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("%w: a line is no action: %w", ErrDamaged, err)
		}
		actions = append(actions, a)
	}
	return actions, check(actions)
}

func decodeCheckpoint(b []byte) ([]action, error) {
	actions, err := columnar.Decode[action](b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return actions, check(actions)
}

// log is where the entries of a table are.
type log struct {
	s    store.Store
	root string
}

func (l log) entryKey(version int64) string {
	return fmt.Sprintf("%s_delta_log/%020d.json", l.root, version)
}

func (l log) checkpointKey(version int64) string {
	return fmt.Sprintf("%s_delta_log/%020d.checkpoint.parquet", l.root, version)
}

func (l log) hintKey() string { return l.root + "_delta_log/_last_checkpoint" }

// entry returns the actions of a version, none if there is no such entry.
func (l log) entry(ctx context.Context, version int64) ([]action, error) {
	actions, err := read(ctx, l.s, l.entryKey(version), maxEntry, decodeEntry)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err == nil && len(actions) == 0 {
		err = fmt.Errorf("reading %s: %w: it is empty", l.entryKey(version), ErrDamaged)
	}
	return actions, err
}

func read(ctx context.Context, s store.Store, key string, limit int64, decode func([]byte) ([]action, error)) ([]action, error) {
	b, err := store.ReadAll(ctx, s, key, limit)
	if err != nil {
		return nil, err
	}
	actions, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return actions, nil
}

// follow returns what st is after the entries that came since, up to a version. It reads more and more entries at the same time.
func (l log) follow(ctx context.Context, st *state, upTo int64) (*state, error) {
	next := st
	for window := 1; next.version < upTo; window = min(2*window, reads) {
		entries := make([][]action, min(int64(window), upTo-next.version))
		group, within := errgroup.WithContext(ctx)
		for i := range entries {
			group.Go(func() (err error) {
				entries[i], err = l.entry(within, next.version+1+int64(i))
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return st, err
		}
		for _, actions := range entries {
			if actions == nil {
				return next, nil
			}
			if next == st {
				next = st.clone()
			}
			next.apply(actions)
			next.version++
		}
	}
	return next, nil
}

type hint struct {
	Version int64 `json:"version"`
	Size    int   `json:"size"` // actions
}

// hinted returns the version of the last checkpoint that _last_checkpoint names, -1 for none.
func (l log) hinted(ctx context.Context) (int64, error) {
	h := hint{Version: -1}
	err := store.ReadJSON(ctx, l.s, l.hintKey(), 1<<16, &h)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return -1, nil
	case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
		return -1, fmt.Errorf("%w: %w; remove it: it only says where the newest checkpoint is", ErrDamaged, err)
	}
	return h.Version, err
}

// load reads a table as of a version from its newest checkpoint up to there; a version -1 means that there is no table.
func (l log) load(ctx context.Context, upTo int64) (*state, error) {
	if upTo == latest {
		version, err := l.hinted(ctx)
		if err != nil {
			return nil, err
		}
		if version >= 0 {
			st, err := l.from(ctx, version, upTo)
			if !errors.Is(err, store.ErrNotExist) {
				return st, err
			} // the checkpoint was lost
		}
	}
	entries, checkpoints, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, version := range slices.Backward(checkpoints) {
		if version <= upTo {
			return l.from(ctx, version, upTo)
		}
	}
	if len(entries) > 0 && entries[0] > 0 {
		return nil, fmt.Errorf("reading %s: %w: its first entry is %d, and no checkpoint from there on exists for version %d; "+
			"restore the folder from a copy, or move the whole table away", l.root+"_delta_log/", ErrVersion, entries[0], upTo)
	}
	return l.follow(ctx, empty(), upTo)
}

// from reads a table from a checkpoint on. The entry of the checkpoint's version says when it was.
func (l log) from(ctx context.Context, version, upTo int64) (*state, error) {
	actions, err := read(ctx, l.s, l.checkpointKey(version), maxCheckpoint, decodeCheckpoint)
	if err != nil {
		return nil, err
	}
	st := empty()
	st.apply(actions)
	st.version = version - 1
	if st, err = l.follow(ctx, st, upTo); err == nil && st.version < version {
		err = fmt.Errorf("reading %s: %w: it is missing, although its checkpoint is there; restore it from a copy",
			l.entryKey(version), ErrDamaged)
	}
	return st, err
}

// list returns the versions of a log's entries and of its checkpoints in one part, in their order.
func (l log) list(ctx context.Context) (entries, checkpoints []int64, err error) {
	keys, err := store.Keys(ctx, l.s, l.root+"_delta_log/")
	for _, key := range keys {
		digits, ending, _ := strings.Cut(strings.TrimPrefix(key, l.root+"_delta_log/"), ".")
		version, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err != nil || len(digits) != 20:
		case ending == "json":
			entries = append(entries, version)
		case ending == "checkpoint.parquet":
			checkpoints = append(checkpoints, version)
		}
	}
	return entries, checkpoints, err
}
