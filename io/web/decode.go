package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// acceptEncoding names what newDecoder reads.
const acceptEncoding = "gzip, deflate, br, zstd"

const (
	// maxCodings limits a chain like "gzip, gzip": longer ones are attacks.
	maxCodings = 3
	// maxReplay is how many bytes replay keeps. A decoder that read more without any
	// output cannot be undone.
	maxReplay = 64 << 10
)

// A codec is a pool of one format's decoders, which are large.
type codec struct {
	pool  sync.Pool
	fresh func(*bufio.Reader) (io.Reader, error)
	reset func(io.Reader, *bufio.Reader) error
	// mark reports whether the first bytes are this format's magic number; nil when
	// the format has none.
	mark func([]byte) bool
}

var (
	gzipCodec = &codec{
		fresh: func(r *bufio.Reader) (io.Reader, error) {
			z, err := gzip.NewReader(r)
			if err == nil {
				z.Multistream(false)
			}
			return z, err
		},
		reset: member,
		mark:  func(b []byte) bool { return len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b }, // RFC 1952
	}
	zlibCodec = &codec{
		fresh: func(r *bufio.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		reset: func(d io.Reader, r *bufio.Reader) error { return d.(zlib.Resetter).Reset(r, nil) },
		mark: func(b []byte) bool { // RFC 1950
			return len(b) >= 2 && b[0]&0x0f == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0
		},
	}
	flateCodec = &codec{
		fresh: func(r *bufio.Reader) (io.Reader, error) { return flate.NewReader(r), nil },
		reset: func(d io.Reader, r *bufio.Reader) error { return d.(flate.Resetter).Reset(r, nil) },
	}
	brotliCodec = &codec{
		fresh: func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		reset: func(d io.Reader, r *bufio.Reader) error { return d.(*brotli.Reader).Reset(r) },
	}
	zstdCodec = &codec{
		fresh: func(r *bufio.Reader) (io.Reader, error) {
			// 8 MiB is the largest window of HTTP (RFC 9659). Without concurrency
			// a decoder has no goroutines, so it needs no Close.
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		},
		reset: func(d io.Reader, r *bufio.Reader) error { return d.(*zstd.Decoder).Reset(r) },
		mark: func(b []byte) bool { // RFC 8878, a frame or a skippable frame
			return len(b) >= 4 && b[1] == 0xb5 && b[0] == 0x28 && b[2] == 0x2f && b[3] == 0xfd ||
				len(b) >= 4 && b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18
		},
	}
)

// member begins with a member of gzip. What follows it is looked at before it is read, see end.
func member(d io.Reader, r *bufio.Reader) error {
	z := d.(*gzip.Reader)
	err := z.Reset(r)
	z.Multistream(false)
	return err
}

// decoder decodes one Content-Encoding. If the header is wrong, it returns the
// bytes unchanged.
type decoder struct {
	codec  *codec
	dec    io.Reader // nil: src is passed on unchanged
	src    *bufio.Reader
	replay *replay // what was read before the first output; nil when the format is certain
	out    bool
	marked bool
}

// newDecoder decodes body by a Content-Encoding header (RFC 9110, 8.4). coded
// reports whether the header names a coding. Call free when done with the reader.
func newDecoder(body io.Reader, header []string) (r io.Reader, coded bool, free func()) {
	var names []string
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(header, ",")), ",") {
		name, _, _ = strings.Cut(name, ";") // parameters, as of Accept-Encoding
		if name = strings.Trim(name, ` \t"`); name != "" && name != "identity" {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > maxCodings {
		return body, false, func() {}
	}
	r = body
	var layers []*decoder
	for _, name := range slices.Backward(names) { // the last was applied last
		d := open(r, name)
		if d == nil {
			continue // not a coding: "utf-8", "none", …
		}
		layers = append(layers, d)
		r = d
	}
	return r, len(layers) > 0, func() {
		for _, d := range layers {
			d.free()
		}
	}
}

var sources = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

func open(body io.Reader, name string) *decoder {
	d := &decoder{}
	switch name {
	case "gzip", "x-gzip":
		d.codec = gzipCodec
	case "deflate":
		d.codec = zlibCodec
	case "br":
		d.codec = brotliCodec
	case "zstd":
		d.codec = zstdCodec
	default:
		return nil
	}
	d.src = sources.Get().(*bufio.Reader)
	d.src.Reset(body)
	return d
}

func (d *decoder) free() {
	if d.dec != nil {
		d.codec.pool.Put(d.dec)
		d.dec = nil
	}
	d.src.Reset(nil)
	sources.Put(d.src)
}

// start reads the first bytes and chooses the decoder.
func (d *decoder) start() error {
	head, err := d.src.Peek(512)
	if len(head) == 0 {
		return err // an empty body, whatever the header says
	}
	if d.codec == zlibCodec && !zlibCodec.mark(head) {
		d.codec = flateCodec // "deflate" means zlib, but many servers send raw deflate
	}
	if d.codec.mark != nil {
		if d.marked = d.codec.mark(head); !d.marked {
			return nil // not compressed
		}
	} else if isText(head) {
		return nil
	}
	src := d.src
	if !d.marked {
		d.replay = &replay{src: d.src}
		src = bufio.NewReaderSize(d.replay, 512)
	}
	if pooled, ok := d.codec.pool.Get().(io.Reader); ok {
		d.dec = pooled
		return d.codec.reset(pooled, src)
	}
	dec, err := d.codec.fresh(src)
	if err != nil {
		return err
	}
	d.dec = dec
	return nil
}

func (d *decoder) Read(p []byte) (int, error) {
	var n int
	var err error
	switch {
	case d.out && d.dec == nil:
		return d.src.Read(p)
	case d.out:
		n, err = d.dec.Read(p)
	default:
		if d.dec == nil {
			if err = d.start(); err != nil {
				d.out = true
				return 0, err
			}
			if d.dec == nil {
				d.out = true
				return d.src.Read(p)
			}
		}
		n, err = d.dec.Read(p)
		if n == 0 && err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && d.replay != nil && d.replay.err == nil && !d.replay.over {
			// It is not of this format: start again with the unchanged bytes.
			rest := io.MultiReader(bytes.NewReader(d.replay.kept), d.src)
			d.codec.pool.Put(d.dec)
			d.dec, d.replay = nil, nil
			again := bufio.NewReaderSize(rest, 4<<10)
			d.src, d.out = again, true
			return again.Read(p)
		}
		if n > 0 {
			d.out = true
			if d.replay != nil {
				d.replay.over, d.replay.kept = true, nil
			}
		}
	}
	return n, d.end(err)
}

// end takes an error for the end of the data where only padding is behind it, which every client
// ignores, and continues with a further member of gzip.
func (d *decoder) end(err error) error {
	switch {
	case err == io.EOF && d.codec == gzipCodec && d.dec != nil:
		if head, _ := d.src.Peek(2); !gzipCodec.mark(head) {
			return io.EOF
		}
		if err = member(d.dec, d.src); errors.Is(err, gzip.ErrHeader) {
			return io.EOF
		}
	case err != nil && d.codec == brotliCodec && d.out && err.Error() == "brotli: excessive input": // its error is not exported
		return io.EOF
	}
	return err
}

// replay keeps the bytes that a decoder read, until the decoder's first output shows
// that the format is right.
type replay struct {
	src  *bufio.Reader
	kept []byte
	over bool  // nothing is kept any more
	err  error // of src, except io.EOF
}

func (r *replay) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	if !r.over {
		if r.kept = append(r.kept, p[:n]...); len(r.kept) > maxReplay {
			r.over, r.kept = true, nil
		}
	}
	return n, err
}

// isText reports whether head is certainly plain text: eight bytes or more of
// UTF-8 without control characters. Of compressed data one in 2,000 looks like that
// in its first eight bytes, and practically none does in more.
func isText(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	for _, b := range head {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' && b != '\f' || b == 0x7f {
			return false
		}
	}
	for i := 0; i < utf8.UTFMax && len(head) > 0; i++ { // the last rune may be cut
		if utf8.Valid(head) {
			return true
		}
		head = head[:len(head)-1]
	}
	return false
}

// buffers are for reading bodies of unknown length.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// keepBuffer is the largest buffer that goes back to the pool.
const keepBuffer = 256 << 10

// readBody reads r to its end or to limit bytes; cut reports that there was more.
// With an error it also returns the bytes before it.
func readBody(r io.Reader, limit int64) (body []byte, cut bool, err error) {
	pooled := buffers.Get().(*[]byte)
	buf := (*pooled)[:0]
	for int64(len(buf)) <= limit { // one byte more, to see whether there is more
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
		free := min(int64(cap(buf)-len(buf)), limit+1-int64(len(buf)))
		var n int
		n, err = r.Read(buf[len(buf) : len(buf)+int(free)])
		buf = buf[:len(buf)+n]
		if err != nil {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	if int64(len(buf)) > limit {
		buf, cut, err = buf[:limit], true, nil
	} else if err != nil && int64(len(buf)) == limit && limit > 0 {
		cut, err = true, nil // limit bytes were read before the error
	}
	if cap(buf) > keepBuffer {
		return buf, cut, err // the caller owns this buffer; it does not go back to the pool
	}
	body = bytes.Clone(buf)
	*pooled = buf
	buffers.Put(pooled)
	return body, cut, err
}
