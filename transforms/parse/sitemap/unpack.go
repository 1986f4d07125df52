package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// magic is what a gzip member begins with (RFC 1952).
var magic = []byte{0x1f, 0x8b, 8}

// Unpack undoes gzip, known by its first bytes whatever the name or type said,
// all members of it, and keeps at most limit bytes. A body that is not gzip is
// returned as it is. Truncated says that there was more, or that the stream
// broke off or was damaged after out; padding behind the last member is no damage. The error is one
// of a body that looks like gzip and yields nothing.
func Unpack(body []byte, limit int64) (out []byte, unpacked, truncated bool, err error) {
	if !bytes.HasPrefix(body, magic) {
		return body, false, false, nil
	}
	in := bytes.NewReader(body)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, false, true, fmt.Errorf("reading the gzip header: %w", err)
	}
	var b bytes.Buffer
	for err == nil && int64(b.Len()) <= limit {
		z.Multistream(false)
		_, err = io.Copy(&b, io.LimitReader(z, limit+1-int64(b.Len())))
		if err != nil || !bytes.HasPrefix(body[len(body)-in.Len():], magic) {
			break
		}
		err = z.Reset(in)
	}
	switch {
	case int64(b.Len()) > limit:
		b.Truncate(int(limit))
		return b.Bytes(), true, true, nil
	case err == nil:
		return b.Bytes(), true, false, nil
	case b.Len() > 0, errors.Is(err, io.ErrUnexpectedEOF):
		return b.Bytes(), true, true, nil // what could be read is worth keeping
	}
	return nil, false, true, fmt.Errorf("unpacking gzip: %w", err)
}
