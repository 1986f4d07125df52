// Package store is the bucket: raw files are read from it; results, markers and
// the state of runs are written to it. A directory has a driver of its own; S3,
// R2, GCS and memory share one adapter over gocloud.dev/blob. All of them pass
// the conformance suite in storetest.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	// ErrNotExist is the error of Head and Open for an absent key.
	ErrNotExist = fs.ErrNotExist
	// ErrExist is the error of PutIfAbsent for a key that exists.
	ErrExist = fs.ErrExist
	// ErrKey is the error for a key that not every store can hold unchanged: see
	// Store. It is a mistake in the program or in the data; a retry cannot help.
	ErrKey = errors.New("not a key that every store can hold")
)

// pageSize is how many objects one page of a listing has: the maximum of S3 and
// GCS.
const pageSize = 1000

// Object describes an object.
type Object struct {
	Key  string
	Size int64 // bytes
	// ETag changes whenever the content changes, and is the same in List and in
	// Head. It is opaque, without quotes; each kind of store has its own form.
	ETag    string
	ModTime time.Time
	// ContentType and Metadata are filled by Head only. The keys of Metadata
	// are in lower case.
	ContentType string
	Metadata    map[string]string
}

// PutOptions is what is stored with an object besides its content.
type PutOptions struct {
	// ContentType is a MIME type. Empty means the one of the key's extension:
	// .json, .xml, .txt, .success (text/plain), else application/octet-stream.
	ContentType string
	// Metadata keys are written in lower case.
	Metadata map[string]string
}

// Store is a bucket, or the part of it under a prefix. Keys are UTF-8 paths
// without a leading slash, of at most 1024 bytes, without control characters
// and without empty, "." or ".." elements; any other key is refused with ErrKey.
// All other characters ("=", "?", "#", "%", "+", spaces, Unicode) are kept as
// they are.
//
// A method makes one attempt; wrap it in Retry for more. Only List retries by
// itself, page by page, because its caller cannot. All methods may be called from
// several goroutines.
type Store interface {
	// List yields the objects whose key begins with prefix, in the byte order of
	// the keys. In memory it has one page of a bucket, or the names of the folders
	// on the path to the current one. It ends after an error.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Head describes one object, or reports ErrNotExist.
	Head(ctx context.Context, key string) (Object, error)
	// Open opens one object for reading, or reports ErrNotExist. Errors of its
	// reader can be Retryable too.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Put writes an object and replaces an existing one. Readers see the old
	// content or the new, never a part of it. When body or ctx fails, nothing changes.
	Put(ctx context.Context, key string, body io.Reader, o PutOptions) error
	// PutIfAbsent writes an object whose key does not exist, else it reports
	// ErrExist: of several concurrent callers one succeeds. A retry after a response
	// that did not arrive can report ErrExist for the caller's own object.
	PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error
	// Delete removes an object. An absent one is no error.
	Delete(ctx context.Context, key string) error
	// Close releases connections. The content of a memory store stays until the
	// process ends.
	Close() error
}

// Open opens the store that rawURL names:
//
//	path/to/dir, file:///dir              a directory
//	s3://bucket[/prefix][?endpoint=URL&region=NAME]
//	r2://bucket[/prefix]                  R2_ACCOUNT_ID or R2_ENDPOINT
//	gs://bucket[/prefix]                  STORAGE_EMULATOR_HOST is honoured
//	mem://name                            shared by all users of the name in this process
//
// Credentials are never in the URL: S3 and R2 take them as every AWS tool does
// (AWS_ACCESS_KEY_ID, AWS_PROFILE …), GCS from the application default
// credentials. An absent directory or bucket is an error: Open does not create
// it, so that a misspelt name is not mistaken for an empty store.
func Open(ctx context.Context, rawURL string) (Store, error) {
	scheme, _, isURL := strings.Cut(rawURL, "://")
	if !isURL {
		return openDir(rawURL)
	}
	u, err := url.Parse(rawURL)
	if err != nil { // the URL may contain a secret: neither it nor url.Error is quoted
		return nil, fmt.Errorf("opening the store: its %s:// URL cannot be parsed", scheme)
	}
	if u.User != nil {
		return nil, fmt.Errorf("opening %s://%s: a store URL must not hold credentials; set them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS)", u.Scheme, u.Host)
	}
	for name := range u.Query() {
		if u.Scheme != "s3" || (name != "endpoint" && name != "region") {
			return nil, fmt.Errorf("opening %s://%s: the query parameter %q is unknown; s3:// takes endpoint and region, other stores none", u.Scheme, u.Host, name)
		}
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("opening %s://%s: write a '#' in a store URL as %%23", u.Scheme, u.Host)
	}
	if u.Scheme == "file" {
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("opening file://%s: a directory of another host cannot be opened; write file:///path with three slashes", u.Host)
		}
		return openDir(u.Path)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("opening %s://: the bucket's name is missing, as in %s://bucket", u.Scheme, u.Scheme)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, fmt.Errorf("opening %s://%s: the prefix: %w", u.Scheme, u.Host, err)
		}
		prefix += "/"
	}
	c, err := openCloud(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("opening %s://%s: %w", u.Scheme, u.Host, err)
	}
	c.prefix = prefix
	if _, _, err := c.page(ctx, "", nil, 1); err != nil {
		if text := c.bucket.Advise(err); text != "" {
			return nil, errors.Join(fmt.Errorf("opening %s://%s: %w", u.Scheme, u.Host, &refusal{text, err}), c.Close())
		}
		return nil, errors.Join(fmt.Errorf("opening %s://%s: the bucket must exist and these credentials must be allowed to list it; create it, or check its name, the region and the credentials in the environment: %w", u.Scheme, u.Host, err), c.Close())
	}
	return c, nil
}

// checkKey checks the rules for keys that Store states.
func checkKey(key string) error {
	var why string
	switch {
	case key == "":
		why = "it is empty"
	case len(key) > 1024: // the limit of S3, R2 and GCS
		why = "it is longer than 1024 bytes"
	case !utf8.ValidString(key):
		why = "it is not UTF-8"
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		why = "it contains a control character"
	case key == "." || key == ".." || strings.HasPrefix(key, "/") || strings.HasPrefix(key, "../") || path.Clean(key) != key:
		why = `it has an empty, "." or ".." element`
	default:
		return nil
	}
	return fmt.Errorf("key %q: %s: %w", key, why, ErrKey)
}

// contentTypes is the content type by extension.
var contentTypes = map[string]string{
	".json":    "application/json",
	".txt":     "text/plain",
	".xml":     "application/xml",
	".success": "text/plain",
}

func defaultContentType(key string) string {
	if t, ok := contentTypes[path.Ext(key)]; ok {
		return t
	}
	return "application/octet-stream"
}

// withDefaults fills in what the caller left empty, so that all drivers store the
// same.
func (o PutOptions) withDefaults(key string) (PutOptions, error) {
	if o.ContentType == "" {
		o.ContentType = defaultContentType(key)
	}
	var md map[string]string
	for k, v := range o.Metadata {
		if k == "" {
			return o, fmt.Errorf("key %q: a metadata key is empty", key)
		}
		if md == nil {
			md = make(map[string]string, len(o.Metadata))
		}
		md[strings.ToLower(k)] = v
	}
	o.Metadata = md
	return o, nil
}
