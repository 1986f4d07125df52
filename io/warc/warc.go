// Package warc writes and reads WARC 1.1 files (ISO 28500:2017) in which each record
// is a gzip member of its own, so that one record can be read without those before it. No promise: see docs/library.md.
package warc

import (
	"bytes"
	"crypto/sha1" // the digest that WARC tools compare; what the program relies on is SHA-256
	"encoding/base32"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
)

const version = "WARC/1.1"

// The types of the records that this package writes.
const (
	typeInfo     = "warcinfo"
	TypeResponse = "response"
)

// Response is what a server answered. Body is decoded: it is without Transfer-Encoding
// and Content-Encoding.
type Response struct {
	URI       string // that the answer came from, after redirects
	At        time.Time
	Status    int
	Header    http.Header // as received, nil if it is not known
	Body      []byte
	Truncated bool        // the body was cut at a limit
	Fields    [][2]string // more named fields of the record
}

// coding are the header fields that describe a body before it was decoded. They are
// renamed as Common Crawl does, because with them a reader would decode the body again.
var coding = []string{"Content-Encoding", "Content-Length", "Transfer-Encoding"}

// AppendResponse appends a response record to dst.
func AppendResponse(dst []byte, r Response) ([]byte, error) {
	var block bytes.Buffer
	fmt.Fprintf(&block, "HTTP/1.1 %d %s\r\n", r.Status, http.StatusText(r.Status))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		written := name
		if slices.Contains(coding, http.CanonicalHeaderKey(name)) {
			written = "X-Crawl-" + name
		}
		for _, value := range r.Header[name] {
			field(&block, written, value)
		}
	}
	field(&block, "Content-Length", strconv.Itoa(len(r.Body)))
	block.WriteString("\r\n")
	block.Write(r.Body)
	fields := [][2]string{{"WARC-Target-URI", r.URI}, {"WARC-Payload-Digest", digest(r.Body)}}
	if r.Truncated {
		fields = append(fields, [2]string{"WARC-Truncated", "length"})
	}
	return appendRecord(dst, TypeResponse, r.At, "application/http;msgtype=response", append(fields, r.Fields...), block.Bytes())
}

// AppendInfo appends the record that says who wrote a file. A file begins with it.
func AppendInfo(dst []byte, at time.Time, filename string, about [][2]string) ([]byte, error) {
	var block bytes.Buffer
	for _, f := range about {
		field(&block, f[0], f[1])
	}
	return appendRecord(dst, typeInfo, at, "application/warc-fields", [][2]string{{"WARC-Filename", filename}}, block.Bytes())
}

var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func appendRecord(dst []byte, kind string, at time.Time, contentType string, fields [][2]string, block []byte) ([]byte, error) {
	var head bytes.Buffer
	head.WriteString(version + "\r\n")
	field(&head, "WARC-Type", kind)
	field(&head, "WARC-Record-ID", "<"+uuid.New().URN()+">")
	field(&head, "WARC-Date", at.UTC().Format("2006-01-02T15:04:05.000Z"))
	for _, f := range fields {
		field(&head, f[0], f[1])
	}
	field(&head, "WARC-Block-Digest", digest(block))
	field(&head, "Content-Type", contentType)
	field(&head, "Content-Length", strconv.Itoa(len(block)))
	head.WriteString("\r\n")

	out := bytes.NewBuffer(dst)
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(out)
	for _, part := range [][]byte{head.Bytes(), block, []byte("\r\n\r\n")} {
		if _, err := z.Write(part); err != nil {
			return dst, fmt.Errorf("writing a WARC record: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return dst, fmt.Errorf("writing a WARC record: %w", err)
	}
	return out.Bytes(), nil
}

// field writes one header field. A value of a stranger cannot begin another field.
func field(b *bytes.Buffer, name, value string) {
	value = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, value)
	b.WriteString(name + ": " + strings.TrimSpace(value) + "\r\n")
}

func digest(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}
