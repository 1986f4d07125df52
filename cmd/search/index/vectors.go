package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/newsfork/seed-engine/io/db"
)

// byVector are the ids of the chunks with the nearest vectors. It compares all of them, so
// it is exact.
func (x Index) byVector(ctx context.Context, q Query) ([]string, error) {
	if x.kept != nil {
		ids, ok, err := x.kept.nearest(ctx, x, q)
		if ok || err != nil {
			return ids, err
		}
	}
	var best ranking
	scan := func(r *sql.Rows) (n near, err error) {
		var packed sql.RawBytes
		if err = r.Scan(&n.id, &packed); err != nil {
			return n, err
		}
		if len(packed) != 4*len(q.Vector) {
			return n, x.otherLength()
		}
		n.dot = dotPacked(q.Vector, packed)
		return n, nil
	}
	for n, err := range db.Select(ctx, x.DB, scan, `SELECT v.id, v.vector FROM search_vectors v JOIN search_chunks c ON c.id = v.id WHERE v.model = $1 AND ($2 = '' OR c.provider = $2)`, x.Model, q.Provider) {
		if err != nil {
			return nil, err
		}
		best.add(n)
	}
	return best.ids(), nil
}

// ErrOtherLength says that a model makes vectors of another length than it made before.
var ErrOtherLength = errors.New("another model has this name now: its vectors have another length than those of the index, and `search embed` makes all of them again")

func (x Index) otherLength() error { return fmt.Errorf("%s: %w", x.Model, ErrOtherLength) }

// fits reports whether vectors of a length fit those that the model has made.
func (x Index) fits(ctx context.Context, tx *sql.Tx, length int) error {
	var was int
	err := tx.QueryRowContext(ctx, `SELECT length(vector) / 4 FROM search_vectors WHERE model = $1 LIMIT 1`, x.Model).Scan(&was)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil && was != length:
		return x.otherLength()
	}
	return err
}

// Forget removes the vectors of the model, so that all of them are made again.
func (x Index) Forget(ctx context.Context) error {
	return x.DB.Do(ctx, fmt.Sprintf("removing the vectors of %s from the search index", x.Model), func(tx *sql.Tx) error {
		for _, table := range []string{"search_vectors", "search_done"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE model = $1`, x.Model); err != nil {
				return err
			}
		}
		return changed(ctx, tx)
	})
}

// near is a chunk and the product of its vector and the question's.
type near struct {
	id  string
	dot float32
}

func order(a, b near) int { return cmp.Or(cmp.Compare(b.dot, a.dot), cmp.Compare(a.id, b.id)) }

// ranking are the nearest chunks, at most as many as there are candidates, the best first.
type ranking []near

func (r *ranking) add(n near) {
	if len(*r) == candidates && order(n, (*r)[candidates-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(*r, n, order)
	*r = slices.Insert(*r, at, n)
	*r = (*r)[:min(len(*r), candidates)]
}

func (r ranking) ids() []string {
	ids := make([]string, len(r))
	for i, n := range r {
		ids[i] = n.id
	}
	return ids
}

// pack writes a vector as it is stored: 32-bit floats, little endian.
func pack(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// dot is the product of two vectors of one length. Eight sums that do not wait for each
// other keep the processor busy.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return (s0 + s1) + (s2 + s3) + ((s4 + s5) + (s6 + s7))
}

// dotPacked is dot with a packed vector.
func dotPacked(v []float32, packed []byte) float32 {
	return dot(v, unpack(make([]float32, 0, len(v)), packed))
}

// unpack appends a packed vector.
func unpack(to []float32, packed []byte) []float32 {
	for ; len(packed) >= 4; packed = packed[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(packed)))
	}
	return to
}
