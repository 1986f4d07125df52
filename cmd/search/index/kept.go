package index

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/newsfork/seed-engine/io/db"
)

const (
	// maxKept bounds the memory of the vectors that Keep keeps: 100,000 of 1,536 numbers
	// are 614 MB.
	maxKept = 1 << 30
	// keptBatch is how many vectors one query reads.
	keptBatch = 500
)

// kept are the vectors in memory. They follow the database: a search first reads what has
// changed since the last one.
type kept struct {
	mu      sync.RWMutex
	version int64 // of the index, -1: none was read
	rows    []keptRow
	read    int  // vectors in the memory of rows, also those that were replaced or removed since
	over    bool // they need more memory than maxKept
}

// keptRow is a chunk with a vector.
type keptRow struct {
	id, input, provider string
	vector              []float32
}

// Keep returns an index that keeps the vectors in memory, if they take at most a gigabyte. It is
// for a process that answers many questions.
func (x Index) Keep() Index {
	x.kept = &kept{version: -1}
	return x
}

// nearest are the ids of the chunks with the nearest vectors; ok is false if the vectors are
// too many to keep.
func (k *kept) nearest(ctx context.Context, x Index, q Query) (ids []string, ok bool, err error) {
	if err := k.follow(ctx, x, len(q.Vector)); err != nil {
		return nil, false, fmt.Errorf("reading the vectors into memory: %w", err)
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	var best ranking
	for i := range k.rows {
		row := &k.rows[i]
		if len(row.vector) != len(q.Vector) {
			return nil, false, x.otherLength()
		}
		if q.Provider != "" && row.provider != q.Provider {
			continue
		}
		product := dot(q.Vector, row.vector)
		if len(best) < candidates || product >= best[candidates-1].dot {
			best.add(near{row.id, product})
		}
	}
	return best.ids(), !k.over, nil
}

// follow reads what has changed in the database.
func (k *kept) follow(ctx context.Context, x Index, length int) error {
	var version int64
	if err := x.DB.QueryRowContext(ctx, `SELECT n FROM search_version`).Scan(&version); err != nil {
		return err
	}
	k.mu.RLock()
	same := version == k.version
	k.mu.RUnlock()
	if same {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if version == k.version {
		return nil
	}
	if k.read > 2*len(k.rows) { // most of the memory is of vectors that are gone
		k.rows, k.read = nil, 0
	}
	before := map[string]keptRow{}
	for _, w := range k.rows {
		before[w.id] = w
	}
	var rows []keptRow
	missing := map[string]int{} // places in rows
	scan := func(r *sql.Rows) (w keptRow, err error) { return w, r.Scan(&w.id, &w.input, &w.provider) }
	for w, err := range db.Select(ctx, x.DB, scan, `SELECT v.id, v.input, c.provider FROM search_vectors v JOIN search_chunks c ON c.id = v.id WHERE v.model = $1 ORDER BY v.id`, x.Model) {
		if err != nil {
			return err
		}
		if was := before[w.id]; was.input == w.input {
			w.vector = was.vector
		} else {
			missing[w.id] = len(rows)
		}
		rows = append(rows, w)
	}
	if k.over = len(rows)*length*4 > maxKept; k.over {
		rows, missing = nil, nil
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(missing)), keptBatch) {
		block := make([]float32, 0, len(ids)*length) // one piece of memory is read faster than many
		if err := readVectors(ctx, x, ids, func(id, input string, vector []byte) {
			if w := &rows[missing[id]]; w.input == input { // else it has changed since; the next search reads it
				from := len(block)
				block = unpack(block, vector)
				w.vector = block[from:]
			}
		}); err != nil {
			return err
		}
	}
	k.rows = slices.DeleteFunc(rows, func(w keptRow) bool { return w.vector == nil })
	k.version, k.read = version, k.read+len(missing)
	return nil
}

// readVectors reads the vectors of some chunks.
func readVectors(ctx context.Context, x Index, ids []string, each func(id, input string, vector []byte)) error {
	args := []any{x.Model}
	var marks []string
	for _, id := range ids {
		args = append(args, id)
		marks = append(marks, fmt.Sprintf("$%d", len(args)))
	}
	type row struct {
		id, input string
		vector    sql.RawBytes
	}
	scan := func(r *sql.Rows) (w row, err error) { return w, r.Scan(&w.id, &w.input, &w.vector) }
	for w, err := range db.Select(ctx, x.DB, scan, `SELECT id, input, vector FROM search_vectors WHERE model = $1 AND id IN (`+strings.Join(marks, ", ")+`)`, args...) {
		if err != nil {
			return err
		}
		each(w.id, w.input, w.vector)
	}
	return nil
}
