package rows

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/newsfork/seed-engine/io/explore"
)

// Format is a format of files with rows.
type Format string

// The formats.
const (
	Parquet Format = "parquet"
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
)

// Formats are all formats; the name of each is the ending of its files, too.
var Formats = []Format{Parquet, JSONL, CSV}

// writer writes rows to a file. Without Close the file is not whole.
type writer[T any] interface {
	Write(row T) error
	Close() error
}

// newWriter returns a writer of rows to w. name says in a Parquet file which rows it has.
func newWriter[T any](f Format, w io.Writer, name string) (writer[T], error) {
	columns := columns(reflect.TypeFor[T]())
	switch f {
	case Parquet:
		out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("seed-engine", "", ""), parquet.KeyValueMetadata("export", name))
		return &parquetWriter[T]{out: out, columns: columns}, nil
	case JSONL, CSV:
		out := recordWriter[T]{NewRecords(f, w), columns}
		var names []string
		for _, c := range columns {
			names = append(names, c.Name)
		}
		return out, out.head(names)
	}
	return nil, fmt.Errorf("%s is no format of rows", f)
}

// A row group of a Parquet file is in memory until it has one of these.
const (
	groupRows  = 100_000
	groupBytes = 16 << 20 // of texts
)

type parquetWriter[T any] struct {
	out     *parquet.GenericWriter[T]
	columns []Column
	pending []T
	rows    int
	bytes   int
}

func (w *parquetWriter[T]) Write(row T) error {
	w.pending = append(w.pending, row)
	v := reflect.ValueOf(&row).Elem()
	for _, c := range w.columns {
		switch x := c.value(v).(type) {
		case string:
			w.bytes += len(x)
		case JSON:
			w.bytes += len(x)
		case []string:
			for _, s := range x {
				w.bytes += len(s)
			}
		}
	}
	if len(w.pending) < 256 && w.bytes < groupBytes {
		return nil
	}
	return w.flush(false)
}

// flush writes the pending rows, and ends the row group if it is large enough or last.
func (w *parquetWriter[T]) flush(last bool) error {
	if _, err := w.out.Write(w.pending); err != nil {
		return fmt.Errorf("writing Parquet: %w", err)
	}
	w.rows += len(w.pending)
	clear(w.pending)
	w.pending = w.pending[:0]
	if last || w.rows >= groupRows || w.bytes >= groupBytes {
		w.rows, w.bytes = 0, 0
		if err := w.out.Flush(); err != nil {
			return fmt.Errorf("writing Parquet: %w", err)
		}
	}
	return nil
}

func (w *parquetWriter[T]) Close() error {
	if err := w.flush(true); err != nil {
		return err
	}
	if err := w.out.Close(); err != nil {
		return fmt.Errorf("writing Parquet: %w", err)
	}
	return nil
}

// recordWriter writes rows as records.
type recordWriter[T any] struct {
	*records
	columns []Column
}

func (w recordWriter[T]) Write(row T) error { return w.records.Write(record(w.columns, &row)) }

func cell(value any) (string, error) {
	switch x := value.(type) {
	case nil:
		return "", nil
	case string:
		return guarded(x), nil
	case time.Time:
		return x.Format(time.RFC3339Nano), nil
	case JSON, []string:
		text, err := encode(x)
		return guarded(text), err
	default:
		return fmt.Sprint(x), nil
	}
}

// encode returns a value as JSON.
func encode(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// guarded returns a text as a spreadsheet may open it. Most of the text comes from
// strangers, and a spreadsheet runs a cell that begins with one of these signs as a
// formula. An apostrophe in front makes it a text. One that is there gets another, so
// the text is restored by removing one apostrophe.
func guarded(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); s != "" && strings.ContainsRune("=+-@'\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

// Write writes all rows to w, and returns how many there were.
func Write[T any](f Format, to io.Writer, name string, all iter.Seq2[T, error]) (n int64, err error) {
	w, err := newWriter[T](f, to, name)
	if err != nil {
		return 0, err
	}
	for row, rowErr := range all {
		if rowErr != nil {
			return n, rowErr
		}
		if err := w.Write(row); err != nil {
			return n, err
		}
		n++
	}
	return n, w.Close()
}

// records writes records, which all have the same columns, as CSV or JSON lines.
type records struct {
	csv   *csv.Writer
	lines *bufio.Writer
	line  bytes.Buffer
	json  *json.Encoder // to line
	begun bool
}

// NewRecords returns a writer of records.
func NewRecords(f Format, w io.Writer) *records {
	if f == CSV {
		return &records{csv: csv.NewWriter(w)}
	}
	out := &records{lines: bufio.NewWriter(w)}
	out.json = json.NewEncoder(&out.line)
	out.json.SetEscapeHTML(false)
	return out
}

// head writes the first line of CSV, once.
func (w *records) head(names []string) error {
	if w.csv == nil || w.begun {
		return nil
	}
	w.begun = true
	return w.csv.Write(names)
}

// Write writes a record.
func (w *records) Write(r explore.Record) error {
	names, cells := make([]string, len(r)), make([]string, len(r))
	w.line.Reset()
	for i, c := range r {
		var err error
		if names[i] = c.Name; w.csv != nil {
			cells[i], err = cell(c.Value)
		} else {
			sign := byte(',')
			if i == 0 {
				sign = '{'
			}
			w.line.WriteByte(sign)
			err = errors.Join(w.member(c.Name, ':'), w.member(c.Value))
		}
		if err != nil {
			return fmt.Errorf("writing column %s: %w", c.Name, err)
		}
	}
	if w.csv == nil {
		w.line.WriteString("}\n")
		_, err := w.lines.Write(w.line.Bytes())
		return err
	}
	return errors.Join(w.head(names), w.csv.Write(cells))
}

// member writes a value to the line, and what follows it in place of the encoder's line end.
func (w *records) member(value any, then ...byte) error {
	if err := w.json.Encode(value); err != nil {
		return err
	}
	w.line.Truncate(w.line.Len() - 1)
	w.line.Write(then)
	return nil
}

// Close writes what is not written yet.
func (w *records) Close() error {
	if w.csv == nil {
		return w.lines.Flush()
	}
	w.csv.Flush()
	return w.csv.Error()
}
