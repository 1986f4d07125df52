// Package domaintable is the Delta table of the seed job's results: a part of it is a Parquet file with rows, a WARC file with their
// evidence, and a list of their domains. No promise: see docs/library.md.
package domaintable

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

const (
	// Root is where a store has the Delta table.
	Root = "tables/domains/"
	// staged is where the logs of forced runs are until their rows replace those of the table.
	staged = Root + "_staged/"
	// apart is where the other objects of a part are: other programs never remove what begins with _.
	apart     = "_evidence/"
	rowsFile  = ".parquet"
	warcFile  = ".warc.gz"
	namesFile = ".domains.json.gz"
	tag       = "part"
	maxObject = 1 << 30 // of a part, in bytes
)

// Part is a Parquet file of the table, a WARC file with the evidence of its rows, and a list of its domains.
type Part struct {
	ID       string           `json:"-"`                   // the name of its objects
	At       time.Time        `json:"-"`                   // of its commit
	N        int              `json:"lane"`                // the rows are of lane N of Of
	Of       int              `json:"of,omitempty"`        // 0: of any lanes
	RunID    string           `json:"run"`                 // empty: of several runs
	ForcedBy string           `json:"forced_by,omitempty"` // id of the forced run
	In       []hive.Partition `json:"in"`                  // of its rows
	Oldest   time.Time        `json:"oldest"`              // visit of its rows
	Newest   time.Time        `json:"newest"`
	Count    int64            `json:"count"` // of its rows
	Rows     Object           `json:"rows"`
	WARC     Object           `json:"warc"` // zero: the rows have no evidence
	Names    Object           `json:"names"`
}

// Object is what an object of a part must be.
type Object struct {
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// Done names the domains of a partition that a part has.
type Done struct {
	hive.Partition
	Names []string
}

// objects returns the objects of a part by their keys.
func (p Part) objects() map[string]Object {
	all := map[string]Object{p.Key(): p.Rows, Root + apart + p.ID + namesFile: p.Names}
	if p.WARC.Size > 0 {
		all[Root+p.Evidence()] = p.WARC
	}
	return all
}

// Key is the key of the Parquet file.
func (p Part) Key() string { return Root + p.ID + rowsFile }

// Evidence is the WARC file of its rows, relative to Root.
func (p Part) Evidence() string { return apart + p.ID + warcFile }

// IDOf returns the ID of the part to which an object under Root belongs; false for an object of a log.
func IDOf(key string) (string, bool) {
	id, _, _ := strings.Cut(path.Base(key), ".")
	return id, !strings.Contains(key, "/_delta_log/")
}

// Table is the table, or what a forced run stages.
type Table struct {
	root string
	log  *delta.Table
}

func root(forceID string) string {
	if forceID == "" {
		return Root
	}
	return staged + forceID + "/"
}

// Open opens the table, and creates it if there is none: what the forced run of an id stages, if there is one. warn, if set, gets what
// failed and stops no commit.
func Open(ctx context.Context, s store.Store, forceID string, warn func(error)) (*Table, error) {
	log, err := delta.Open(ctx, s, root(forceID), delta.SchemaOf[table.Row]())
	if err == nil {
		log.Warn = warn
	}
	return &Table{root(forceID), log}, err
}

// Tables opens the table and what forced runs stage, by the ids of these; "" for the table. It creates none.
func Tables(ctx context.Context, s store.Store) (map[string]*Table, error) {
	all := map[string]*Table{}
	for o, err := range s.List(ctx, Root) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", Root, err)
		}
		at, _, ok := strings.Cut(o.Key, "_delta_log/")
		id := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(at, Root), strings.TrimPrefix(staged, Root)), "/")
		if !ok || all[id] != nil {
			continue
		}
		log, err := delta.Existing(ctx, s, at)
		if err != nil {
			return nil, err
		}
		all[id] = &Table{at, log}
	}
	return all, nil
}

// All returns the parts that the table has now; none if there is no table.
func All(ctx context.Context, s store.Store) ([]Part, error) {
	log, err := delta.Existing(ctx, s, Root)
	if errors.Is(err, delta.ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return (&Table{Root, log}).Parts(ctx)
}

// AsOf returns the parts that the table had at a point: the number of a version, a time (RFC 3339), or the last change by a run. The
// error is an explore.RefusedError if there is no such version any more.
func AsOf(ctx context.Context, s store.Store, point string) ([]Part, error) {
	_, parts, err := asOf(ctx, s, point)
	return parts, err
}

// Between returns the parts that only the earlier and only the later of two points has.
func Between(ctx context.Context, s store.Store, earlier, later string) (was, is []Part, err error) {
	first, was, err := asOf(ctx, s, earlier)
	if err != nil {
		return nil, nil, err
	}
	second, is, err := asOf(ctx, s, later)
	if err == nil && first > second {
		err = explore.Refuse("%s is version %d of the table, and %s is version %d: write the earlier one first", earlier, first, later, second)
	}
	both := func(all, of []Part) []Part {
		return slices.DeleteFunc(slices.Clone(all), func(p Part) bool {
			return slices.ContainsFunc(of, func(o Part) bool { return o.ID == p.ID })
		})
	}
	return both(was, is), both(is, was), err
}

func asOf(ctx context.Context, s store.Store, point string) (version int64, parts []Part, err error) {
	log, err := delta.Existing(ctx, s, Root)
	if errors.Is(err, delta.ErrNoTable) {
		return 0, nil, ErrNoTable
	}
	if err != nil {
		return 0, nil, err
	}
	var then delta.Snapshot
	at, notTime := time.Parse(time.RFC3339, point)
	if number, notNumber := strconv.ParseInt(point, 10, 64); notNumber == nil {
		then, err = log.At(ctx, number)
	} else if notTime == nil {
		then, err = log.AsOf(ctx, at)
	} else if number, err = lastOf(ctx, log, point); err == nil {
		then, err = log.At(ctx, number)
	}
	if err == nil {
		err = log.Whole(ctx, then)
	}
	if errors.Is(err, delta.ErrVersion) || errors.Is(err, delta.ErrGone) {
		return 0, nil, explore.Refuse("%v. Name another version: rm removes what earlier ones had, and compact what is older than a week", err)
	}
	if err != nil {
		return 0, nil, err
	}
	parts, err = partsOf(then)
	return then.Version, parts, err
}

// lastOf returns the newest version that a run has changed.
func lastOf(ctx context.Context, log *delta.Table, runID string) (int64, error) {
	for v, err := range log.History(ctx) {
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(v.Changes, func(c delta.Note) bool { return c.Info["run"] == runID }) {
			return v.Number, nil
		}
	}
	return 0, explore.Refuse("%s is neither a version of the table, nor a time, nor a run that has changed the table as far back as its log goes: "+
		"write a number, a time such as 2026-01-28T12:00:00Z or 36h ago, or a run's id", strconv.Quote(untrusted.Line(runID, 80)))
}

// ErrNoTable refuses what only a table has.
var ErrNoTable = explore.Refuse("there is no table in this store: only --layout=table keeps earlier versions of results")

// Parts returns the parts that the table has now.
func (t *Table) Parts(ctx context.Context) ([]Part, error) {
	now, err := t.log.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return partsOf(now)
}

// Named calls each with the ids of the parts that a version of the last time keep names.
func (t *Table) Named(ctx context.Context, keep time.Duration, each func(id string)) error {
	files, err := t.log.Named(ctx, keep)
	for _, f := range files {
		each(strings.TrimSuffix(f.Path, rowsFile))
	}
	return err
}

// Trim removes what no version of the last time keep needs from the log.
func (t *Table) Trim(ctx context.Context, keep time.Duration) error { return t.log.Trim(ctx, keep) }

func partsOf(now delta.Snapshot) (all []Part, err error) {
	for _, f := range now.Files {
		p := Part{ID: strings.TrimSuffix(f.Path, rowsFile), At: f.Modified}
		if err := json.Unmarshal([]byte(f.Tags[tag]), &p); err != nil {
			return nil, fmt.Errorf("%s%s: its entry in the log has no tag %q of this program: "+
				"remove the file from the table with the program that added it: %w", Root, f.Path, tag, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// ErrDamaged says that an object of a part is not what was committed.
var ErrDamaged = errors.New("damaged")

// read reads an object of a part. Its error matches ErrDamaged if the object is not what was committed, or gone.
func read(ctx context.Context, s store.Store, key string, want Object) ([]byte, error) {
	b, err := store.ReadAll(ctx, s, key, min(want.Size, maxObject))
	if errors.Is(err, store.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w; if the table has just changed, try again, else restore it from a copy", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want.SHA256 {
		return nil, fmt.Errorf("reading %s: %w: its bytes are not those that were committed, by their SHA-256; "+
			"restore it from a copy, or `rm older-than` removes its part", key, ErrDamaged)
	}
	return b, nil
}

// ReadRows reads the rows of a part.
func (p Part) ReadRows(ctx context.Context, s store.Store) ([]table.Row, error) {
	b, err := read(ctx, s, p.Key(), p.Rows)
	if err != nil {
		return nil, err
	}
	rows, err := table.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", p.Key(), ErrDamaged, err)
	}
	return rows, nil
}

// ReadWARC reads the WARC file of a part; nil: it has none.
func (p Part) ReadWARC(ctx context.Context, s store.Store) ([]byte, error) {
	if p.WARC.Size == 0 {
		return nil, nil
	}
	return read(ctx, s, Root+p.Evidence(), p.WARC)
}

// ReadNames reads which domains a part has.
func (p Part) ReadNames(ctx context.Context, s store.Store) (done []Done, err error) {
	key := Root + apart + p.ID + namesFile
	b, err := read(ctx, s, key, p.Names)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxObject)).Decode(&done)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w: %w", key, ErrDamaged, err)
	}
	return done, nil
}

// Check returns the keys of the part's objects that are missing or of another size.
func (p Part) Check(ctx context.Context, s store.Store) (faulty []string, err error) {
	for key, want := range p.objects() {
		o, err := s.Head(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return nil, fmt.Errorf("looking at %s: %w", key, err)
		}
		if err != nil || o.Size != want.Size {
			faulty = append(faulty, key)
		}
	}
	return faulty, nil
}

// Write writes the objects of a new part. Only a commit makes its rows exist. p says whose rows they are.
func Write(ctx context.Context, s store.Store, p Part, rows []table.Row, records []byte) (Part, error) {
	p.ID, p.Count, p.In = rand.Text(), int64(len(rows)), nil // never that of an attempt whose end is not known
	by := map[hive.Partition][]string{}
	for i := range rows {
		r := &rows[i]
		if r.WARC = ""; len(r.Evidence) > 0 {
			r.WARC = p.Evidence()
		}
		by[r.Partition()] = append(by[r.Partition()], r.RegistrableDomain)
		if i == 0 || r.CollectedAt.Before(p.Oldest) {
			p.Oldest = r.CollectedAt.UTC()
		}
		if i == 0 || r.CollectedAt.After(p.Newest) {
			p.Newest = r.CollectedAt.UTC()
		}
	}
	var done []Done
	for in, names := range by {
		done, p.In = append(done, Done{in, names}), append(p.In, in)
	}
	var names bytes.Buffer
	z := gzip.NewWriter(&names)
	if err := errors.Join(json.NewEncoder(z).Encode(done), z.Close()); err != nil {
		return p, fmt.Errorf("writing the names of domains: %w", err)
	}
	parquet, err := table.Encode(rows)
	if err != nil {
		return p, err
	}
	p.Rows, p.WARC, p.Names = objectOf(parquet), objectOf(records), objectOf(names.Bytes())
	items := []store.Item{{Key: p.Key(), Body: parquet}, {Key: Root + apart + p.ID + namesFile, Body: names.Bytes()}}
	if p.WARC.Size > 0 {
		items = append(items, store.Item{Key: Root + p.Evidence(), Body: records})
	}
	return p, errors.Join(store.PutAll(ctx, s, items)...)
}

func objectOf(b []byte) Object {
	if len(b) == 0 {
		return Object{}
	}
	sum := sha256.Sum256(b)
	return Object{hex.EncodeToString(sum[:]), int64(len(b))}
}

// Writer commits the parts of a lane. Of several of one name only the last one that began can.
type Writer struct {
	Name string
	t    *Table
	w    *delta.Writer
}

// Begin begins to write, and returns the parts of the table.
func (t *Table) Begin(ctx context.Context, name string) (*Writer, []Part, error) {
	w, now, err := t.log.Begin(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	parts, err := partsOf(now)
	return &Writer{name, t, w}, parts, err
}

// Parts returns the parts that the table has now.
func (w *Writer) Parts(ctx context.Context) ([]Part, error) { return w.t.Parts(ctx) }

// Change is what a commit does.
type Change struct {
	Operation, RunID string
	Add, Remove      []Part
	Rewrite          bool // the rows stay the same
}

// Commit commits a change: readers see all of it or nothing. The error matches delta.ErrTakenOver if another process writes
// under this name now, and delta.ErrConflict if a part of Remove is not in the table any more: then plan the change again.
func (w *Writer) Commit(ctx context.Context, c Change) error {
	d := delta.Change{Operation: c.Operation, Info: map[string]string{"run": c.RunID}, Rewrite: c.Rewrite}
	for _, p := range c.Add {
		text, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("writing a commit: %w", err)
		}
		d.Add = append(d.Add, delta.File{Path: p.ID + rowsFile, Size: p.Rows.Size, Rows: p.Count, Tags: map[string]string{tag: string(text)}})
	}
	for _, p := range c.Remove {
		d.Remove = append(d.Remove, p.ID+rowsFile)
	}
	_, err := w.w.Commit(ctx, d)
	return err
}

// Back makes the table what it was before a run changed it, by one entry, and returns the version of then. It refuses to take back
// what came since.
func (t *Table) Back(ctx context.Context, runID string) (version int64, err error) {
	before, upTo, later := int64(-1), int64(math.MaxInt64), delta.Note{}
	for v, err := range t.log.History(ctx) {
		if err != nil {
			return 0, err
		}
		if v.Number > upTo { // it was taken back
			continue
		}
		by := delta.Note{}
		for _, c := range v.Changes {
			if c.Operation == "RESTORE" {
				if upTo, err = strconv.ParseInt(c.Info["version"], 10, 64); err != nil {
					return 0, fmt.Errorf("%sversion %d: %w: to which version it goes back", t.root, v.Number, delta.ErrDamaged)
				}
			} else if c.Info["run"] != "" {
				by = c
			}
		}
		switch run := by.Info["run"]; {
		case run == runID && later.Operation != "":
			return 0, explore.Refuse("run %s has changed the table since (%s): take that back first", later.Info["run"], later.Operation)
		case run == runID:
			before = v.Number - 1
		case run != "" && before >= 0:
			return t.restore(ctx, before)
		case run != "" && later.Operation == "":
			later = by
		}
	}
	if before < 0 {
		return 0, explore.Refuse("run %s has not changed the table; a forced run changes it at its end", runID)
	}
	return t.restore(ctx, before)
}

func (t *Table) restore(ctx context.Context, version int64) (int64, error) {
	_, err := t.log.Restore(ctx, version)
	return version, err
}

// Forget removes the log of what a forced run has staged; its parts stay.
func Forget(ctx context.Context, s store.Store, forceID string) error {
	keys, err := store.Keys(ctx, s, root(forceID)+"_delta_log/")
	if err != nil {
		return err
	}
	slices.Reverse(keys) // the newest first: what is left of a log is a log
	return store.Remove(ctx, s, keys...)
}
