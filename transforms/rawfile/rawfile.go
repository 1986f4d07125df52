// Package rawfile reads research files (raw_NNNN.json): one object with meta
// and records, in any order, one record at a time. Memory does not grow with
// the file, only with its longest single value.
//
// What it accepts beyond the schema, because such files exist: a byte order
// mark, unknown fields, duplicate keys (the last one wins, except that records
// may stand only once: the first was already visited), invalid UTF-8 (replaced
// by U+FFFD), null for an optional field (as if absent).
package rawfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// What is wrong with a file, for errors.Is. None of them passes on a second
// try; an error of the reader itself is none of these and may.
var (
	ErrTruncated = errors.New("the file is empty or ends in the middle")
	ErrBadJSON   = errors.New("the file is not valid JSON")
	ErrNoRecords = errors.New("the file has no records array")
)

// What is wrong with a record, in Record.Err.
var (
	ErrNotObject = errors.New("the record is not an object")
	ErrNoURL     = errors.New("the record has no raw_url")
)

// Error says where a file stopped being readable.
type Error struct {
	Kind   error // ErrTruncated, ErrBadJSON or ErrNoRecords
	Offset int64 // in bytes from the file's beginning
	Err    error // the decoder's words, nil for ErrNoRecords
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v (byte %d)", e.Kind, e.Offset)
	}
	return fmt.Sprintf("%v (byte %d): %v", e.Kind, e.Offset, e.Err)
}

// Unwrap gives both the kind and the cause to errors.Is.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Meta is what the file says about itself, which its path may contradict, and
// the number of records that were really there.
type Meta struct {
	Country, Category, DatasetID string
	RecordCount                  int64 // meta.record_count, when HasCount
	HasCount                     bool
	Records                      int64 // counted, bad ones included
}

// Record is one element of records.
type Record struct {
	Index                              int // in the array, from 0
	RawURL, NormalizedDomain, DomainID string
	Problems                           []string // optional fields that were invalid and ignored, by name
	Err                                error    // ErrNotObject or ErrNoURL: a bad record, the file goes on
}

// Read calls visit for each record of r in order. The strings of a Record are
// its own and may be kept. It returns an *Error when the file is broken, after
// visiting the records before the break; a wrapped error of r when reading
// failed; visit's error, unchanged, when that stopped it.
func Read(r io.Reader, visit func(Record) error) (Meta, error) {
	src := &source{r: r}
	in := bufio.NewReaderSize(src, 64<<10)
	var bom int64
	if head, _ := in.Peek(3); bytes.Equal(head, []byte("\ufeff")) { // an error comes again below
		bom = 3
		if _, err := in.Discard(3); err != nil {
			return Meta{}, fmt.Errorf("reading the raw file: %w", err)
		}
	}
	f := &file{
		dec:   jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		visit: visit,
	}
	err := f.read()
	offset := bom + f.dec.InputOffset()
	switch {
	case err == nil:
		return f.meta, nil
	case f.stopped:
		return f.meta, err
	case src.err != nil:
		return f.meta, fmt.Errorf("reading the raw file after byte %d: %w", offset, src.err)
	case errors.Is(err, ErrNoRecords):
		return f.meta, &Error{Kind: ErrNoRecords, Offset: offset}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return f.meta, &Error{Kind: ErrTruncated, Offset: offset, Err: err}
	}
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		offset = bom + syntax.ByteOffset
	}
	return f.meta, &Error{Kind: ErrBadJSON, Offset: offset, Err: err}
}

// source remembers the reader's own failure, so that it is never taken for a
// fault of the file.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

type file struct {
	dec     *jsontext.Decoder
	visit   func(Record) error
	stopped bool // by visit
	meta    Meta
	scratch []byte
}

func (f *file) read() error {
	if kind := f.dec.PeekKind(); kind != '{' {
		if _, err := f.dec.ReadToken(); err != nil {
			return err
		}
		return ErrNoRecords // an array or a scalar at the top
	}
	found := false
	err := f.object(func(name []byte) error {
		switch string(name) {
		case "meta":
			return f.readMeta()
		case "records":
			if f.dec.PeekKind() != '[' {
				return f.dec.SkipValue()
			}
			if found {
				return errors.New("a second records array: write one, the first was already read")
			}
			found = true
			return f.readRecords()
		}
		return f.dec.SkipValue()
	})
	if err != nil {
		return err
	}
	switch _, err := f.dec.ReadToken(); {
	case err == nil:
		return errors.New("there is more after the end of the object")
	case err != io.EOF:
		return err
	case !found:
		return ErrNoRecords
	}
	return nil
}

// object calls member for each name of the object that comes next; member
// reads or skips the value. name is valid until then.
func (f *file) object(member func(name []byte) error) error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	for f.dec.PeekKind() != '}' {
		quoted, err := f.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := member(f.unquote(quoted)); err != nil {
			return err
		}
	}
	_, err := f.dec.ReadToken()
	return err
}

func (f *file) readMeta() error {
	records := f.meta.Records
	f.meta = Meta{Records: records} // the last meta wins
	if f.dec.PeekKind() != '{' {
		return f.dec.SkipValue()
	}
	return f.object(func(name []byte) (err error) {
		switch string(name) {
		case "country":
			f.meta.Country, _, err = f.text()
		case "category":
			f.meta.Category, _, err = f.text()
		case "dataset_id":
			f.meta.DatasetID, _, err = f.text()
		case "record_count":
			var n float64
			n, f.meta.HasCount, err = f.number()
			f.meta.HasCount = f.meta.HasCount && n >= 0 && n <= 1<<53 && n == math.Trunc(n)
			if f.meta.RecordCount = 0; f.meta.HasCount {
				f.meta.RecordCount = int64(n)
			}
		default:
			err = f.dec.SkipValue()
		}
		return err
	})
}

func (f *file) readRecords() error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	for f.dec.PeekKind() != ']' {
		record, err := f.readRecord()
		if err != nil {
			return err
		}
		record.Index = int(f.meta.Records)
		f.meta.Records++
		if err := f.visit(record); err != nil {
			f.stopped = true
			return err
		}
	}
	_, err := f.dec.ReadToken()
	return err
}

// optional lists the fields that may be wrong without spoiling a record, in
// the order of EnhancedResearchRecord (design, 4.1.1).
var optional = [...]string{"normalized_domain", "domain_id", "source_type", "discovery_method", "confidence", "content_hints", "liveness_status"}

func (f *file) readRecord() (Record, error) {
	var record Record
	if f.dec.PeekKind() != '{' {
		record.Err = ErrNotObject
		return record, f.dec.SkipValue()
	}
	var wrong [len(optional)]bool // by field, so that a later duplicate can mend it
	anyWrong := false
	err := f.object(func(name []byte) (err error) {
		field, valid := 0, true
		switch string(name) {
		case "raw_url":
			record.RawURL, _, err = f.text()
			return err
		case "normalized_domain":
			record.NormalizedDomain, valid, err = f.text()
		case "domain_id":
			field = 1
			record.DomainID, valid, err = f.text()
		case "source_type":
			field = 2
			valid, err = f.oneOf("gov", "edu", "org", "com", "other")
		case "discovery_method":
			field = 3
			valid, err = f.oneOf("manual", "google_search", "crtsh")
		case "confidence":
			field = 4
			var n float64
			n, valid, err = f.number()
			valid = valid && 0 <= n && n <= 1
		case "content_hints":
			field = 5
			valid, err = f.texts()
		case "liveness_status":
			field = 6
			valid, err = f.oneOf("alive", "unstable", "blocked", "dead")
		default:
			return f.dec.SkipValue()
		}
		wrong[field] = !valid
		anyWrong = anyWrong || !valid
		return err
	})
	if record.RawURL == "" {
		record.Err = ErrNoURL
	}
	if anyWrong {
		for field, bad := range wrong {
			if bad {
				record.Problems = append(record.Problems, optional[field])
			}
		}
	}
	return record, err
}

// value reads the next value when it is of the kind asked for. Another kind is
// skipped; ok is then true only for null, which stands for an absent field.
func (f *file) value(kind jsontext.Kind) (value jsontext.Value, ok bool, err error) {
	switch next := f.dec.PeekKind(); next {
	case kind:
		value, err = f.dec.ReadValue()
		return value, true, err
	default:
		return nil, next == 'n', f.dec.SkipValue()
	}
}

func (f *file) text() (s string, valid bool, err error) {
	value, valid, err := f.value('"')
	if value == nil || err != nil {
		return "", valid, err
	}
	return string(f.unquote(value)), true, nil
}

func (f *file) oneOf(values ...string) (valid bool, err error) {
	value, valid, err := f.value('"')
	if value == nil || err != nil {
		return valid, err
	}
	return slices.Contains(values, string(f.unquote(value))), nil
}

func (f *file) number() (n float64, valid bool, err error) {
	value, valid, err := f.value('0')
	if value == nil || err != nil {
		return 0, valid, err
	}
	n, rangeErr := strconv.ParseFloat(string(value), 64)
	return n, rangeErr == nil, nil
}

// texts reads an array and reports whether it holds nothing but strings.
func (f *file) texts() (valid bool, err error) {
	if kind := f.dec.PeekKind(); kind != '[' {
		return kind == 'n', f.dec.SkipValue()
	}
	if _, err := f.dec.ReadToken(); err != nil {
		return false, err
	}
	valid = true
	for f.dec.PeekKind() != ']' {
		valid = valid && f.dec.PeekKind() == '"'
		if err := f.dec.SkipValue(); err != nil {
			return false, err
		}
	}
	_, err = f.dec.ReadToken()
	return valid, err
}

// unquote returns the contents of a string that the decoder let pass, valid
// until the next call. What AppendUnquote could still say of it is that its
// UTF-8 is invalid, and that is replaced.
func (f *file) unquote(quoted jsontext.Value) []byte {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 && ascii(inside) {
		return inside
	}
	f.scratch, _ = jsontext.AppendUnquote(f.scratch[:0], quoted)
	return f.scratch
}

// ascii takes eight bytes at a time: it sees every string of the file.
func ascii(s []byte) bool {
	for ; len(s) >= 8; s = s[8:] {
		if binary.LittleEndian.Uint64(s)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range s {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
