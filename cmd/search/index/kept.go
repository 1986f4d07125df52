package index

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/newsfork/seed-engine/io/db"
)

const (
	// maxKept bounds the memory of the vectors that Keep keeps: 100,000 of 1,536 numbers
	// are 614 MB.
	maxKept = 1 << 30
	// keptBlock is how many vectors are in one piece of memory, and keptBatch how many one
	// query reads.
	keptBlock = 1024
	keptBatch = 500
)

// kept are the vectors in memory. They follow the database: a search first reads what has
// changed since the last one.
type kept struct {
	mu      sync.RWMutex
	version int64 // of the index, -1: none was read
	length  int   // of a vector
	rows    []keptRow
	at      map[string]int // places in rows, by id
	blocks  [][]float32    // the vectors of rows, one after another
	over    bool           // they need more memory than maxKept
}

// keptRow is a chunk with a vector.
type keptRow struct{ id, input, provider string }

// Keep returns an index that keeps the vectors in memory, if they are bytes and take at most
// a gigabyte. It is for a process that answers many questions.
func (x Index) Keep() Index {
	x.kept = &kept{version: -1, at: map[string]int{}}
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
	if k.over {
		return nil, false, nil
	}
	if len(k.rows) > 0 && k.length != len(q.Vector) {
		return nil, false, x.otherLength()
	}
	var best ranking
	for i := range k.rows {
		if q.Provider != "" && k.rows[i].provider != q.Provider {
			continue
		}
		product := dot(q.Vector, k.vector(i))
		if len(best) < candidates || product >= best[candidates-1].dot {
			best.add(near{k.rows[i].id, product})
		}
	}
	return best.ids(), true, nil
}

func (k *kept) vector(i int) []float32 {
	from := i % keptBlock * k.length
	return k.blocks[i/keptBlock][from : from+k.length]
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
	now := map[string]keptRow{}
	scan := func(r *sql.Rows) (w keptRow, err error) { return w, r.Scan(&w.id, &w.input, &w.provider) }
	for w, err := range db.Select(ctx, x.DB, scan, `SELECT v.id, v.input, c.provider FROM search_vectors v JOIN search_chunks c ON c.id = v.id WHERE v.model = $1`, x.Model) {
		if err != nil {
			return err
		}
		now[w.id] = w
	}
	if k.over = len(now)*length*4 > maxKept; k.over {
		k.clear()
		k.version = version
		return nil
	}
	for i := len(k.rows) - 1; i >= 0; i-- {
		if now[k.rows[i].id] != k.rows[i] {
			k.remove(i)
		}
	}
	var missing []keptRow
	for id, w := range now {
		if _, has := k.at[id]; !has {
			missing = append(missing, w)
		}
	}
	slices.SortFunc(missing, func(a, b keptRow) int { return cmp.Compare(a.id, b.id) })
	for some := range slices.Chunk(missing, keptBatch) {
		if err := k.read(ctx, x, some); err != nil {
			return err
		}
	}
	k.version = version
	return nil
}

func (k *kept) clear() {
	k.rows, k.blocks, k.length = nil, nil, 0
	clear(k.at)
}

// remove puts the last vector in the place of one.
func (k *kept) remove(i int) {
	last := len(k.rows) - 1
	delete(k.at, k.rows[i].id)
	if i != last {
		copy(k.vector(i), k.vector(last))
		k.rows[i] = k.rows[last]
		k.at[k.rows[i].id] = i
	}
	k.rows = k.rows[:last]
	block := last / keptBlock
	k.blocks[block] = k.blocks[block][:last%keptBlock*k.length]
	if len(k.blocks[block]) == 0 {
		k.blocks = k.blocks[:block]
	}
	if last == 0 {
		k.clear()
	}
}

// read reads the vectors of some chunks, which it has sorted by id, into memory.
func (k *kept) read(ctx context.Context, x Index, some []keptRow) error {
	args := []any{x.Model}
	var marks []string
	for _, w := range some {
		args = append(args, w.id)
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
		i, found := slices.BinarySearchFunc(some, w.id, func(a keptRow, id string) int { return cmp.Compare(a.id, id) })
		if !found || some[i].input != w.input {
			continue // it has changed since; the next search reads it
		}
		if len(k.rows) == 0 {
			k.length = len(w.vector) / 4
		}
		if len(w.vector) != 4*k.length {
			return x.otherLength()
		}
		if len(k.rows)%keptBlock == 0 {
			k.blocks = append(k.blocks, make([]float32, 0, keptBlock*k.length))
		}
		last := len(k.blocks) - 1
		k.blocks[last] = unpack(k.blocks[last], w.vector)
		k.at[w.id] = len(k.rows)
		k.rows = append(k.rows, some[i])
	}
	return nil
}
