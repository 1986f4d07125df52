package rows

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
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
	columns := Columns(reflect.TypeFor[T]())
	switch f {
	case Parquet:
		out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("seed-engine", "", ""), parquet.KeyValueMetadata("export", name))
		return &parquetWriter[T]{out: out, columns: columns}, nil
	case JSONL:
		return &jsonWriter[T]{out: bufio.NewWriter(w), columns: columns}, nil
	case CSV:
		out := &csvWriter[T]{out: csv.NewWriter(w), columns: columns, cells: make([]string, len(columns))}
		for i, c := range columns {
			out.cells[i] = c.Name
		}
		return out, out.out.Write(out.cells)
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

type jsonWriter[T any] struct {
	out     *bufio.Writer
	columns []Column
	line    bytes.Buffer
}

func (w *jsonWriter[T]) Write(row T) error {
	w.line.Reset()
	e := json.NewEncoder(&w.line)
	e.SetEscapeHTML(false)
	v := reflect.ValueOf(&row).Elem()
	for i, c := range w.columns {
		sign := byte(',')
		if i == 0 {
			sign = '{'
		}
		w.line.WriteByte(sign)
		w.line.WriteString(`"` + c.Name + `":`)
		if err := e.Encode(c.value(v)); err != nil {
			return fmt.Errorf("writing column %s: %w", c.Name, err)
		}
		w.line.Truncate(w.line.Len() - 1) // the encoder's line end
	}
	w.line.WriteString("}\n")
	_, err := w.out.Write(w.line.Bytes())
	return err
}

func (w *jsonWriter[T]) Close() error { return w.out.Flush() }

type csvWriter[T any] struct {
	out     *csv.Writer
	columns []Column
	cells   []string
}

func (w *csvWriter[T]) Write(row T) error {
	v := reflect.ValueOf(&row).Elem()
	for i, c := range w.columns {
		cell, err := cell(c.value(v))
		if err != nil {
			return fmt.Errorf("writing column %s: %w", c.Name, err)
		}
		w.cells[i] = cell
	}
	return w.out.Write(w.cells)
}

func (w *csvWriter[T]) Close() error {
	w.out.Flush()
	return w.out.Error()
}

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

// Records writes records, which all have the same columns, as CSV or JSON lines.
type Records struct {
	csv   *csv.Writer
	lines *bufio.Writer
	begun bool
}

// NewRecords returns a writer of records.
func NewRecords(f Format, w io.Writer) *Records {
	if f == CSV {
		return &Records{csv: csv.NewWriter(w)}
	}
	return &Records{lines: bufio.NewWriter(w)}
}

// Write writes a record.
func (w *Records) Write(r explore.Record) error {
	if w.csv == nil {
		text, err := encode(r)
		if err == nil {
			_, err = w.lines.WriteString(text + "\n")
		}
		return err
	}
	var names, cells []string
	for _, c := range r {
		text, err := cell(c.Value)
		if err != nil {
			return fmt.Errorf("writing column %s: %w", c.Name, err)
		}
		names, cells = append(names, c.Name), append(cells, text)
	}
	if !w.begun {
		w.begun = true
		if err := w.csv.Write(names); err != nil {
			return err
		}
	}
	return w.csv.Write(cells)
}

// Close writes what is not written yet.
func (w *Records) Close() error {
	if w.csv == nil {
		return w.lines.Flush()
	}
	w.csv.Flush()
	return w.csv.Error()
}
