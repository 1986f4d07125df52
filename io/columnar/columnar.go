// Package columnar writes rows of a Go struct as a Parquet file and reads them, also from files whose bytes are not what they say.
// No promise: see docs/library.md.
package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Encode returns the Parquet file of rows, compressed by zstd unless an option says another codec.
func Encode[T any](rows []T, options ...parquet.WriterOption) ([]byte, error) {
	var b bytes.Buffer
	all := append([]parquet.WriterOption{parquet.Compression(&parquet.Zstd), parquet.CreatedBy("seed-engine", "", "")}, options...)
	w := parquet.NewGenericWriter[T](&b, all...)
	if _, err := w.Write(rows); err != nil {
		return nil, fmt.Errorf("writing Parquet: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing Parquet: %w", err)
	}
	return b.Bytes(), nil
}

// Decode returns the rows of a Parquet file that Encode wrote. Columns that T lacks are
// skipped; columns that the file lacks have zero values. A broken file of any content is an
// error, and never takes much more memory than its size.
func Decode[T any](b []byte) (rows []T, err error) {
	defer func() {
		if v := recover(); v != nil { // the library's way with some broken files
			rows, err = nil, fmt.Errorf("reading Parquet: %v", v)
		}
	}()
	if err := checkSizes(b); err != nil {
		return nil, fmt.Errorf("reading Parquet: %w", err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)) // all rows are read in their order
	if err != nil {
		return nil, fmt.Errorf("reading Parquet: %w", err)
	}
	r := parquet.NewGenericReader[T](f)
	defer func() { _ = r.Close() }() // only read
	page := make([]T, 256)
	for {
		n, err := r.Read(page)
		rows = append(rows, page[:n]...)
		clear(page)
		switch {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("reading Parquet: %w", err)
		case n == 0:
			return nil, fmt.Errorf("reading Parquet: %w", io.ErrNoProgress)
		}
	}
}

// checkSizes checks the sizes that a file says its parts have: the library allocates
// memory for them, up to gigabytes, before it reads them.
func checkSizes(b []byte) error {
	const magic, tail = "PAR1", 8 // the length and the magic number
	if len(b) < len(magic)+tail || string(b[len(b)-len(magic):]) != magic {
		return errors.New("it does not end as a Parquet file")
	}
	end := len(b) - tail
	n := binary.LittleEndian.Uint32(b[end:])
	if int64(n) > int64(end-len(magic)) {
		return fmt.Errorf("it has %d bytes and its footer %d", len(b), n)
	}
	var file format.FileMetaData
	if _, err := decode(b[end-int(n):end], &file); err != nil {
		return err
	}
	for _, group := range file.RowGroups {
		for _, column := range group.Columns {
			at, size := column.MetaData.DataPageOffset, column.MetaData.TotalCompressedSize
			if first := column.MetaData.DictionaryPageOffset; first > 0 {
				at = min(at, first)
			}
			if at < 0 || size < 0 || at > int64(len(b)) || size > int64(len(b))-at {
				return fmt.Errorf("it has %d bytes, and a column with %d at %d", len(b), size, at)
			}
			if err := checkPages(b[at : at+size]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPages checks the pages of a column.
func checkPages(b []byte) error {
	for len(b) > 0 {
		var header format.PageHeader
		n, err := decode(b, &header)
		if err != nil {
			return err
		}
		b = b[n:]
		if size := header.CompressedPageSize; size < 0 || int(size) > len(b) {
			return fmt.Errorf("a page has %d bytes, and its column %d more", size, len(b))
		}
		b = b[header.CompressedPageSize:]
	}
	return nil
}

// decode decodes one value of Thrift's compact protocol and returns its length.
func decode(b []byte, into any) (n int, err error) {
	var protocol thrift.CompactProtocol
	r := sized{protocol.NewReaderFromBytes(b), len(b)}
	err = thrift.NewDecoder(r).Decode(into)
	return r.BytesRead(), err
}

// sized reads lists that have no more items than there are bytes left: each item has one at
// least.
type sized struct {
	thrift.BytesReader
	size int
}

func (r sized) fits(items int32, err error) error {
	if left := r.size - r.BytesRead(); err == nil && int(items) > left {
		return fmt.Errorf("a list of %d in %d bytes", items, left)
	}
	return err
}

// ReadList implements thrift.Reader.
func (r sized) ReadList() (thrift.List, error) {
	l, err := r.BytesReader.ReadList()
	return l, r.fits(l.Size, err)
}

// ReadSet implements thrift.Reader.
func (r sized) ReadSet() (thrift.Set, error) {
	s, err := r.BytesReader.ReadSet()
	return s, r.fits(s.Size, err)
}

// ReadMap implements thrift.Reader.
func (r sized) ReadMap() (thrift.Map, error) {
	m, err := r.BytesReader.ReadMap()
	return m, r.fits(m.Size, err)
}

// Discard skips bytes. The library finds it by its name.
func (r sized) Discard(n int) (int, error) {
	return r.BytesReader.(interface{ Discard(int) (int, error) }).Discard(n)
}
