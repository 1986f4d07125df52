package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Unpack undoes gzip, known by its first bytes whatever the name or type said,
// all members of it, and keeps at most limit bytes. A body that is not gzip is
// returned as it is. Truncated says that there was more, or that the stream
// broke off or was damaged after out. The error is one of a body that looks like
// gzip and yields nothing.
func Unpack(body []byte, limit int64) (out []byte, unpacked, truncated bool, err error) {
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b, 8}) {
		return body, false, false, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false, true, fmt.Errorf("reading the gzip header: %w", err)
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(z, limit+1))
	if int64(b.Len()) > limit {
		b.Truncate(int(limit))
		return b.Bytes(), true, true, nil
	}
	switch {
	case err == nil:
		return b.Bytes(), true, false, nil
	case b.Len() > 0, errors.Is(err, io.ErrUnexpectedEOF):
		return b.Bytes(), true, true, nil // what could be read is worth keeping
	}
	return nil, false, true, fmt.Errorf("unpacking gzip: %w", err)
}
