// Package rawfile reads research files (raw_NNNN.json): one object with meta
// and records, in any order, one record at a time. Memory does not grow with
// the file, only with its longest record.
//
// Beyond the schema it accepts the following, because such files exist: a byte order
// mark, unknown fields, duplicate keys (the last one wins, except that records
// may be there only once: the first was already visited), invalid UTF-8 (replaced
// by U+FFFD), null for an optional field (as if absent). No promise: see docs/library.md.
package rawfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What is wrong with a file, for errors.Is. A second attempt returns the same error.
// An error of the reader itself is none of these, and may be temporary.
var (
	ErrTruncated = errors.New("the file is empty or ends in the middle")
	ErrBadJSON   = errors.New("the file is not valid JSON")
	ErrNoRecords = errors.New("the file has no records array")
)

// What is wrong with a record, in Record.Err.
var (
	errNotObject = errors.New("the record is not an object")
	errNoURL     = errors.New("the record has no raw_url")
)

// Error says where a file stopped being readable.
type Error struct {
	Kind   error // ErrTruncated, ErrBadJSON or ErrNoRecords
	Offset int64 // in bytes from the file's beginning
	Err    error // the decoder's error, nil for ErrNoRecords
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v (byte %d)", e.Kind, e.Offset)
	}
	why := strings.TrimPrefix(e.Err.Error(), "jsontext: ")
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(e.Err, &syntax) { // its text has an offset too, counted without the byte order mark
		why = strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
		if syntax.JSONPointer != "" {
			why += fmt.Sprintf(" within %q", string(syntax.JSONPointer))
		}
	}
	return fmt.Sprintf("%v (byte %d): %s", e.Kind, e.Offset, why)
}

// mistaken returns an error that names the format of a file that is not UTF-8 text,
// by its first bytes, and says what to do; nil if they show no such format.
func mistaken(head []byte) error {
	for _, m := range []struct{ begins, is string }{
		{"\xff\xfe", "it is UTF-16: save it as UTF-8"},
		{"\xfe\xff", "it is UTF-16: save it as UTF-8"},
		{"{\x00", "it is UTF-16: save it as UTF-8"},
		{"\x00{", "it is UTF-16: save it as UTF-8"},
		{"\x1f\x8b", "it is compressed by gzip: unpack it"},
		{"PK\x03", "it is a ZIP archive: unpack it"},
	} {
		if bytes.HasPrefix(head, []byte(m.begins)) {
			return errors.New(m.is)
		}
	}
	return nil
}

// Unwrap returns both the kind and the cause, for errors.Is.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Meta is what the file says about itself, which its path may contradict, and the
// number of records that it really has.
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
	// Says has what kept names, as members of a JSON object: invalid values are left out, and
	// so is all that would make it longer than MaxSays.
	Says     string
	Problems []string // optional fields that were invalid and ignored, by name
	Err      error    // errNotObject or errNoURL: a bad record; reading continues
}

// kept are the optional fields of a record that Record.Says has, in its order.
var kept = []string{"discovery_method", "confidence", "content_hints", "liveness_status"}

// SaysDead is in the Says of a record whose liveness_status is dead.
const SaysDead = `"liveness_status":"dead"`

// MaxSays is how long Record.Says may be, in bytes.
const MaxSays = 4 << 10

// Read calls visit for each record of r in order. The strings of a Record
// share one allocation: clone those that are kept for long. It returns an *Error
// when the file is broken, after visiting the records before the break; a wrapped
// error of r when reading failed; and the error of visit, unchanged, when visit
// failed.
func Read(r io.Reader, visit func(Record) error) (Meta, error) {
	src := &source{r: r}
	in := bufio.NewReaderSize(src, 64<<10)
	var bom int64
	head, _ := in.Peek(3) // the error is returned again below
	if err := mistaken(head); err != nil {
		return Meta{}, &Error{Kind: ErrBadJSON, Err: err}
	}
	if bytes.Equal(head, []byte("\ufeff")) {
		bom = 3
		if _, err := in.Discard(3); err != nil {
			return Meta{}, fmt.Errorf("reading the raw file: %w", err)
		}
	}
	f := &file{in: in, visit: visit}
	f.decode(in, bom)
	err := f.read()
	offset := f.from + f.dec.InputOffset()
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		offset = f.from + syntax.ByteOffset
	}
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
	return f.meta, &Error{Kind: ErrBadJSON, Offset: offset, Err: err}
}

// source keeps the reader's own error, so that it is never mistaken for a
// fault of the file, and returns it again.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

type file struct {
	in      io.Reader
	dec     *jsontext.Decoder
	from    int64 // where the decoder's input begins in the file
	visit   func(Record) error
	stopped bool // by visit
	meta    Meta
	scratch []byte // of unquote
	texts   []byte // of record
}

// decode lets the decoder read r, which begins at an offset in the file.
func (f *file) decode(r io.Reader, from int64) {
	f.dec = jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	f.from = from
}

func (f *file) read() error {
	if kind := f.dec.PeekKind(); kind != '{' {
		if _, err := f.dec.ReadToken(); err != nil {
			return err
		}
		return ErrNoRecords // the file is an array or a scalar
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

// object calls member for each name of the next object; member reads or skips the
// value. name is valid until then.
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
	f.meta = Meta{Records: f.meta.Records} // the last meta wins
	if f.dec.PeekKind() != '{' {
		return f.dec.SkipValue()
	}
	return f.object(func(name []byte) (err error) {
		switch string(name) {
		case "country":
			f.meta.Country, err = f.text()
		case "category":
			f.meta.Category, err = f.text()
		case "dataset_id":
			f.meta.DatasetID, err = f.text()
		case "record_count":
			f.meta.RecordCount, f.meta.HasCount, err = f.count()
		default:
			err = f.dec.SkipValue()
		}
		return err
	})
}

// text reads a string; any other value counts as absent.
func (f *file) text() (string, error) {
	if f.dec.PeekKind() != '"' {
		return "", f.dec.SkipValue()
	}
	value, err := f.dec.ReadValue()
	if err != nil {
		return "", err
	}
	return string(f.unquote(value)), nil
}

// count reads a whole number of 0 or more; any other value counts as absent.
func (f *file) count() (n int64, ok bool, err error) {
	if f.dec.PeekKind() != '0' {
		return 0, false, f.dec.SkipValue()
	}
	value, err := f.dec.ReadValue()
	if err != nil {
		return 0, false, err
	}
	x, rangeErr := strconv.ParseFloat(string(value), 64)
	if rangeErr != nil || x < 0 || x > 1<<53 || x != math.Trunc(x) {
		return 0, false, nil
	}
	return int64(x), true, nil
}

// readRecords reads the array of records. The scanner reads it, at twice the
// decoder's speed, up to its end or to what is wrong with it. From there on the decoder reads.
func (f *file) readRecords() error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	w := window{r: f.in, s: f.dec.UnreadBuffer()}
	from := f.from + f.dec.InputOffset()
	for {
		c := scanner{s: w.s}
		more, ok := c.next(']', f.meta.Records == 0)
		var record Record
		if ok && more {
			record, ok = f.readRecord(&c)
		}
		if !ok && c.cut && w.grow() {
			continue
		}
		if !ok || !more {
			break
		}
		w.s = w.s[c.at:]
		from += int64(c.at)
		record.Index = int(f.meta.Records)
		f.meta.Records++
		if err := f.visit(record); err != nil {
			f.stopped = true
			return err
		}
	}
	return f.endRecords(w.s, from)
}

// endRecords lets the decoder read the rest of the array of records, which begins with rest at
// an offset in the file: its end, or a record with a mistake, which the decoder describes.
func (f *file) endRecords(rest []byte, from int64) error {
	before, tokens := `{"records":[`, 3
	if f.meta.Records > 0 {
		before, tokens = before+`""`, tokens+1 // in place of the records before
	}
	f.decode(io.MultiReader(bytes.NewReader(append([]byte(before), rest...)), f.in), from-int64(len(before)))
	for range tokens {
		if _, err := f.dec.ReadToken(); err != nil {
			return err
		}
	}
	if f.dec.PeekKind() == ']' {
		_, err := f.dec.ReadToken()
		return err
	}
	if _, err := f.dec.ReadValue(); err != nil {
		return f.numbered(err)
	}
	return io.ErrUnexpectedEOF // a number at the end of the file, which may have had more digits
}

// numbered corrects the record's number in an error of endRecords.
func (f *file) numbered(err error) error {
	syntax := (*jsontext.SyntacticError)(nil)
	if !errors.As(err, &syntax) || f.meta.Records == 0 {
		return err
	}
	number, field, _ := strings.Cut(strings.TrimPrefix(string(syntax.JSONPointer), "/records/"), "/")
	if n, numErr := strconv.ParseInt(number, 10, 64); numErr == nil {
		syntax.JSONPointer = jsontext.Pointer(fmt.Sprintf("/records/%d", n+f.meta.Records-1))
		if field != "" {
			syntax.JSONPointer += jsontext.Pointer("/" + field)
		}
	}
	return err
}

// optional lists the fields that may be invalid in a valid record, in the order in
// which the research service writes them.
var optional = [...]string{"normalized_domain", "domain_id", "source_type", "discovery_method", "confidence", "content_hints", "liveness_status"}

// readRecord reads the next element of records.
func (f *file) readRecord(c *scanner) (record Record, ok bool) {
	if c.peek() != '{' {
		_, ok := c.value(0)
		return Record{Err: errNotObject}, ok
	}
	var texts [3]part             // raw_url, normalized_domain, domain_id
	var says [len(optional)]part  // by field
	var wrong [len(optional)]bool // by field, because a later duplicate can be valid
	c.at++
	for first := true; ; first = false {
		more, ok := c.next('}', first)
		if !ok {
			return Record{}, false
		}
		if !more {
			break
		}
		quoted, p, ok := c.member(1)
		if !ok {
			return Record{}, false
		}
		name := f.contents(quoted)
		kind := p.s[0]
		var field int
		var valid bool
		switch string(name) {
		case "raw_url":
			texts[0] = p
			continue
		case "normalized_domain":
			texts[1] = p
			field, valid = 0, kind == '"'
		case "domain_id":
			texts[2] = p
			field, valid = 1, kind == '"'
		case "source_type":
			field = 2
			switch string(f.contents(p)) {
			case "gov", "edu", "org", "com", "other":
				valid = true
			}
		case "discovery_method":
			field = 3
			switch string(f.contents(p)) {
			case "manual", "google_search", "crtsh":
				valid = true
			}
		case "confidence":
			n, numErr := strconv.ParseFloat(string(p.s), 64) // in valid JSON it accepts only numbers
			field, valid = 4, numErr == nil && 0 <= n && n <= 1
		case "content_hints":
			field, valid = 5, onlyTexts(p.s)
		case "liveness_status":
			field = 6
			switch string(f.contents(p)) {
			case "alive", "unstable", "blocked", "dead":
				valid = true
			}
		default:
			continue
		}
		wrong[field] = !valid && kind != 'n' // null means an absent field
		if says[field] = p; !valid {
			says[field] = part{}
		}
	}
	record = f.record(texts, says)
	if record.RawURL == "" {
		record.Err = errNoURL
	}
	for field, bad := range wrong {
		if bad {
			record.Problems = append(record.Problems, optional[field])
		}
	}
	return record, true
}

// record makes a Record whose strings share one allocation.
func (f *file) record(texts [3]part, says [len(optional)]part) Record {
	f.texts = f.texts[:0]
	var end [3]int
	for i, p := range texts {
		f.texts = append(f.texts, f.contents(p)...)
		end[i] = len(f.texts)
	}
	for field, p := range says {
		name := optional[field]
		if len(p.s) == 0 || !slices.Contains(kept, name) || len(f.texts)-end[2]+len(name)+len(p.s)+4 > MaxSays {
			continue
		}
		if len(f.texts) > end[2] {
			f.texts = append(f.texts, ',')
		}
		f.texts = append(append(append(append(f.texts, '"'), name...), '"', ':'), p.s...)
	}
	all := string(f.texts)
	return Record{RawURL: all[:end[0]], NormalizedDomain: all[end[0]:end[1]], DomainID: all[end[1]:end[2]], Says: all[end[2]:]}
}

// onlyTexts reports whether a valid value is an array of strings only.
func onlyTexts(value []byte) bool {
	if value[0] != '[' {
		return false
	}
	c := scanner{s: value, at: 1}
	for first := true; ; first = false {
		if more, _ := c.next(']', first); !more {
			return true
		}
		if p, _ := c.value(0); p.s[0] != '"' {
			return false
		}
	}
}

// contents returns a string's text, valid until the next call; nil for another value.
func (f *file) contents(p part) []byte {
	switch {
	case p.plain:
		return p.s[1 : len(p.s)-1]
	case len(p.s) > 0 && p.s[0] == '"':
		return f.unquote(p.s)
	}
	return nil
}

// unquote decodes a string that the decoder accepted. The only error that
// AppendUnquote can still return is invalid UTF-8, which it has replaced.
func (f *file) unquote(quoted []byte) []byte {
	f.scratch, _ = jsontext.AppendUnquote(f.scratch[:0], quoted)
	return f.scratch
}
