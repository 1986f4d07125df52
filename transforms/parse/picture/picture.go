// Package picture recognises an image by its bytes, and reads its width and height from
// its header. It decodes no pixels. No promise: see docs/library.md.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
)

// Info is what an image's bytes say about it.
type Info struct {
	Type          string // the MIME type
	Width, Height int    // pixels
}

// Extension returns the ending of a file of this type.
func (i Info) Extension() string { return extensions[i.Type] }

var extensions = map[string]string{"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif"}

// errUnknown means that bytes are no JPEG, PNG, GIF, WebP or AVIF. An SVG is a document
// with scripts, so it is none of them.
var errUnknown = errors.New("it is no JPEG, PNG, GIF, WebP or AVIF")

// Read recognises an image. Its error is errUnknown, or says that the header is broken.
func Read(b []byte) (Info, error) {
	kind, size := recognise(b)
	if kind == "" {
		return Info{}, errUnknown
	}
	w, h, err := size(b)
	if err == nil && (w < 1 || h < 1) {
		err = errors.New("it has no width or no height")
	}
	if err != nil {
		return Info{}, fmt.Errorf("reading the header of %s: %w", kind, err)
	}
	return Info{Type: kind, Width: w, Height: h}, nil
}

// recognise returns the type that the first bytes say, and the reader of its size.
func recognise(b []byte) (kind string, size func([]byte) (w, h int, err error)) {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg", config(jpeg.DecodeConfig)
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png", config(png.DecodeConfig)
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif", config(gif.DecodeConfig)
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp", webp
	case len(b) >= 12 && string(b[4:8]) == "ftyp" && isAVIF(b):
		return "image/avif", avif
	}
	return "", nil
}

func config(decode func(io.Reader) (image.Config, error)) func([]byte) (w, h int, err error) {
	return func(b []byte) (int, int, error) {
		c, err := decode(bytes.NewReader(b))
		return c.Width, c.Height, err
	}
}

var errShort = errors.New("it ends early")

// webp reads the first chunk (RFC 9649, sections 2.5 to 2.7).
func webp(b []byte) (w, h int, err error) {
	if len(b) < 30 {
		return 0, 0, errShort
	}
	data := b[20:]
	switch string(b[12:16]) {
	case "VP8X":
		return 1 + int(uint24(data[4:])), 1 + int(uint24(data[7:])), nil
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[1:])
		if data[0] != 0x2f {
			return 0, 0, errors.New("it has no signature of a lossless image")
		}
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff), nil
	case "VP8 ":
		if !bytes.Equal(data[3:6], []byte{0x9d, 0x01, 0x2a}) { // RFC 6386, section 9.1
			return 0, 0, errors.New("it has no start code of a key frame")
		}
		return int(binary.LittleEndian.Uint16(data[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[8:]) & 0x3fff), nil
	}
	return 0, 0, errors.New("its first chunk is none of an image")
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// isAVIF reports whether the file type box (ISO/IEC 14496-12) names the brand of AVIF.
func isAVIF(b []byte) bool {
	kind, data, _, ok := box(b)
	if !ok || kind != "ftyp" || len(data) < 8 {
		return false
	}
	for brands := append(bytes.Clone(data[:4]), data[8:]...); len(brands) >= 4; brands = brands[4:] {
		if s := string(brands[:4]); s == "avif" || s == "avis" {
			return true
		}
	}
	return false
}

// box splits the first box off.
func box(b []byte) (kind string, data, rest []byte, ok bool) {
	if len(b) < 8 {
		return "", nil, nil, false
	}
	size, head := uint64(binary.BigEndian.Uint32(b)), uint64(8)
	switch {
	case size == 0:
		size = uint64(len(b))
	case size == 1 && len(b) >= 16:
		size, head = binary.BigEndian.Uint64(b[8:]), 16
	}
	if size < head || size > uint64(len(b)) {
		return "", nil, nil, false
	}
	return string(b[4:8]), b[head:size], b[size:], true
}

// avif finds the largest size among the image's properties (meta/iprp/ipco/ispe): a
// thumbnail has one of its own.
func avif(b []byte) (w, h int, err error) {
	within := b
	for _, name := range []string{"meta", "iprp", "ipco"} {
		if within = find(within, name); within == nil {
			return 0, 0, errShort
		}
		if name == "meta" { // a full box: version and flags
			if len(within) < 4 {
				return 0, 0, errShort
			}
			within = within[4:]
		}
	}
	for {
		kind, data, rest, ok := box(within)
		if !ok {
			return w, h, nil
		}
		if kind == "ispe" && len(data) >= 12 {
			x, y := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
			if x <= maxSide && y <= maxSide && uint64(x)*uint64(y) > uint64(w)*uint64(h) { //nolint:gosec // w and h are below maxSide
				w, h = int(x), int(y)
			}
		}
		within = rest
	}
}

// maxSide is the longest side that is believed.
const maxSide = 1 << 20

// find returns the content of the first box with a name; nil if there is none.
func find(b []byte, name string) []byte {
	for {
		kind, data, rest, ok := box(b)
		if !ok {
			return nil
		}
		if kind == name {
			return data
		}
		b = rest
	}
}
