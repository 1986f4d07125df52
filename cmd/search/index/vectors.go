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
	"strconv"

	"github.com/newsfork/seed-engine/io/db"
)

// place is where the vectors are.
type place struct {
	table  string
	tables []string // all that may have vectors
	insert string   // id, model, input, value
	length string   // of a vector, in SQL
	value  func([]float32) any
	// nearest finds ids by value, model, provider and limit; "" where the database cannot
	// compare vectors.
	nearest string
}

// plain is the table of vectors as bytes: 32-bit floats, little endian.
const plain = "search_vectors"

// vectors says where the vectors of the index are: in pgvector's type, or as bytes.
func (x Index) vectors(ctx context.Context) (place, error) {
	e, err := pgvector(ctx, x.DB)
	if err != nil || e.ready {
		return e.place(), err
	}
	tables, err := vectorTables(ctx, x.DB)
	return place{table: plain, tables: tables, insert: insertInto(plain, "$4"), length: "length(vector) / 4", value: func(v []float32) any { return pack(v) }}, err
}

func (e extension) place() place {
	vector := "CAST($%d::text AS " + e.schema + ".vector)"
	return place{table: typed, tables: []string{plain, typed}, insert: insertInto(typed, fmt.Sprintf(vector, 4)), length: e.schema + ".vector_dims(vector)", value: func(v []float32) any { return text(v) },
		// The operator is the negative product.
		nearest: `SELECT v.id FROM ` + typed + ` v WHERE v.model = $2 AND ($3 = '' OR EXISTS (SELECT 1 FROM search_chunks c WHERE c.id = v.id AND c.provider = $3))
			ORDER BY v.vector OPERATOR(` + e.schema + `.<#>) ` + fmt.Sprintf(vector, 1) + `, v.id COLLATE "C" LIMIT $4`}
}

// vectorTables are the tables of vectors in a database.
func vectorTables(ctx context.Context, d *db.DB) ([]string, error) {
	if d.Dialect == db.Postgres {
		there, err := d.HasTable(ctx, typed)
		if err != nil {
			return nil, err
		}
		if there {
			return []string{plain, typed}, nil
		}
	}
	return []string{plain}, nil
}

func insertInto(table, value string) string {
	return `INSERT INTO ` + table + ` (id, model, input, vector) VALUES ($1, $2, $3, ` + value + `)
		ON CONFLICT (id, model) DO UPDATE SET input = excluded.input, vector = excluded.vector`
}

// byVector are the ids of the chunks with the nearest vectors. It compares all of them, so
// it is exact.
func (x Index) byVector(ctx context.Context, q Query) ([]string, error) {
	in, err := x.vectors(ctx)
	if err != nil {
		return nil, err
	}
	if in.nearest != "" {
		ids, err := db.Texts(ctx, x.DB, in.nearest, text(q.Vector), x.Model, q.Provider, candidates)
		if isDimensions(err) {
			err = x.otherLength()
		}
		return ids, err
	}
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
func (x Index) fits(ctx context.Context, tx *sql.Tx, in place, length int) error {
	var was int
	err := tx.QueryRowContext(ctx, `SELECT `+in.length+` FROM `+in.table+` WHERE model = $1 LIMIT 1`, x.Model).Scan(&was)
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
	tables, err := vectorTables(ctx, x.DB)
	if err != nil {
		return err
	}
	err = x.DB.Tx(ctx, func(tx *sql.Tx) error {
		for _, table := range append(tables, "search_done") {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE model = $1`, x.Model); err != nil {
				return err
			}
		}
		return changed(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("removing the vectors of %s from the search index: %w", x.Model, err)
	}
	return nil
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

func pack(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// text is a vector as pgvector reads it.
func text(v []float32) string {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
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
