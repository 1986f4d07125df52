package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Limits of a record that is read.
const (
	maxHead  = 1 << 20
	maxBlock = 64 << 20
)

// record is one record of a file.
type record struct {
	Type   string
	Header textproto.MIMEHeader // its named fields
	Block  []byte
}

// Records yields the records of a file in their order. It ends after an error.
func Records(r io.Reader) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		in := bufio.NewReader(r)
		for {
			if _, err := in.Peek(1); err == io.EOF {
				return
			}
			rec, err := read(in)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Read reads a record from its gzip member.
func Read(member []byte) (record, error) { return read(bufio.NewReader(bytes.NewReader(member))) }

// read reads one gzip member, and nothing of the next one.
func read(in *bufio.Reader) (record, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return record{}, fmt.Errorf("reading a WARC record: %w", err)
	}
	z.Multistream(false)
	rec, err := parse(z)
	if err != nil {
		return record{}, fmt.Errorf("reading a WARC record: %w", err)
	}
	return rec, nil
}

func parse(r io.Reader) (record, error) {
	limited := &io.LimitedReader{R: r, N: maxHead}
	text := textproto.NewReader(bufio.NewReader(limited))
	first, err := text.ReadLine()
	if err != nil {
		return record{}, noEOF(err)
	}
	if first != version && first != "WARC/1.0" {
		return record{}, fmt.Errorf("it begins with %.20q, not with %s", first, version)
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return record{}, noEOF(err)
	}
	size, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 || size > maxBlock {
		return record{}, fmt.Errorf("its Content-Length is %.20q, want 0 to %d", header.Get("Content-Length"), maxBlock)
	}
	const end = "\r\n\r\n"
	limited.N = max(size+int64(len(end))+1-int64(text.R.Buffered()), 0)
	var rest bytes.Buffer // grows with what is there, not with what Content-Length says
	if _, err := rest.ReadFrom(text.R); err != nil {
		return record{}, err
	}
	block, ok := strings.CutSuffix(rest.String(), end)
	if !ok || int64(len(block)) != size {
		return record{}, fmt.Errorf("its block is not the %d bytes of its Content-Length", size)
	}
	rec := record{Type: header.Get("Warc-Type"), Header: header, Block: []byte(block)}
	if err := check("block", header.Get("Warc-Block-Digest"), rec.Block); err != nil {
		return record{}, err
	}
	return rec, nil
}

// Body returns the body of a response record.
func (r record) Body() ([]byte, error) {
	if r.Type != TypeResponse {
		return nil, fmt.Errorf("reading a WARC record: one of type %.20q has no response", r.Type)
	}
	head, body, ok := bytes.Cut(r.Block, []byte("\r\n\r\n"))
	if !ok || !bytes.HasPrefix(head, []byte("HTTP/")) {
		return nil, errors.New("reading a WARC record: its block is no HTTP response")
	}
	if err := check("payload", r.Header.Get("Warc-Payload-Digest"), body); err != nil {
		return nil, fmt.Errorf("reading a WARC record: %w", err)
	}
	return body, nil
}

// check compares bytes with the digest in a record, if it is of the kind that this
// package writes.
func check(what, want string, b []byte) error {
	if strings.HasPrefix(want, "sha1:") && want != digest(b) {
		return fmt.Errorf("the digest of its %s is %s, and it says %.60q", what, digest(b), want)
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Beginning returns the first bytes of the body of a response record, at most limit, and
// whether they are all of it. Unlike Read it needs memory for these alone, and so cannot
// compare the record's digests.
func Beginning(member io.Reader, limit int64) (body []byte, whole bool, err error) {
	z, err := gzip.NewReader(bufio.NewReader(member))
	if err != nil {
		return nil, false, fmt.Errorf("reading a WARC record: %w", err)
	}
	heads := &io.LimitedReader{R: z, N: 2 * maxHead}
	in := bufio.NewReader(heads)
	text := textproto.NewReader(in)
	var size, head int64
	if _, err = text.ReadLine(); err == nil {
		var named textproto.MIMEHeader
		if named, err = text.ReadMIMEHeader(); err == nil {
			size, err = strconv.ParseInt(named.Get("Content-Length"), 10, 64)
		}
	}
	for line := ""; err == nil && line != "\r\n"; head += int64(len(line)) {
		line, err = in.ReadString('\n')
	}
	if err == nil && head > size {
		err = errors.New("its block is no HTTP response")
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a WARC record: %w", noEOF(err))
	}
	heads.N = limit + 1
	body, err = io.ReadAll(io.LimitReader(in, min(size-head, limit)))
	if err == nil && int64(len(body)) < min(size-head, limit) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a WARC record: %w", err)
	}
	return body, size-head <= limit, nil
}
