// Package store is the bucket: the one place where raw files are read and
// results, markers and the state of a run are kept. A directory has a driver
// of our own; S3, R2, GCS and memory share one adapter over gocloud.dev/blob.
// All of them pass the suite in storetest.
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
	// ErrNotExist is what Head and Open report for an absent key.
	ErrNotExist = fs.ErrNotExist
	// ErrExist is what PutIfAbsent reports for a key that is taken.
	ErrExist = fs.ErrExist
	// ErrKey is reported for a key that not every store can hold as it is: see
	// Store. It is a mistake in the program or in the data, never worth a retry.
	ErrKey = errors.New("not a key that every store can hold")
)

// pageSize is how many objects a listing asks for at once: the most that S3
// and GCS give.
const pageSize = 1000

// Object is what a store knows of an object.
type Object struct {
	Key  string
	Size int64 // bytes
	// ETag changes whenever the content does, and is the same in List and in
	// Head. It is opaque, without quotes: no two stores make it alike.
	ETag    string
	ModTime time.Time
	// ContentType and Metadata are filled by Head only. The keys of Metadata
	// are in lower case.
	ContentType string
	Metadata    map[string]string
}

// PutOptions is what is kept beside the content of an object.
type PutOptions struct {
	// ContentType is a MIME type. Empty means what the key's extension says:
	// .json, .xml, .txt, .success (text/plain), else application/octet-stream.
	ContentType string
	// Metadata keys are written in lower case.
	Metadata map[string]string
}

// Store is a bucket, or the part of it under a prefix. Keys are UTF-8 paths
// without a leading slash, of at most 1024 bytes, without control characters
// and without empty, "." or ".." elements; any other key is ErrKey. All else
// ("=", "?", "#", "%", "+", spaces, Unicode) comes back as it went in.
//
// A method makes one attempt; wrap it in Retry for more. Only the pages of List
// are asked for again by List itself, because a caller cannot. All methods may
// be called from several goroutines.
type Store interface {
	// List gives the objects whose key begins with prefix, in the byte order
	// of the key. It holds a page of a cloud store, and of a directory the names
	// in each folder on its way. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Head describes one object, or reports ErrNotExist.
	Head(ctx context.Context, key string) (Object, error)
	// Open reads one object, or reports ErrNotExist. A failure while reading
	// can be Retryable too.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Put writes an object, over the one that was there. Readers see the old
	// content or the new one, never a part. When body or ctx fails nothing changes.
	Put(ctx context.Context, key string, body io.Reader, o PutOptions) error
	// PutIfAbsent is Put for a key that is free, else ErrExist: of several that
	// race one wins. Tried again after a lost answer it can report ErrExist for
	// its own object.
	PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error
	// Delete removes an object. That it is not there is no error.
	Delete(ctx context.Context, key string) error
	// Close releases connections. A memory store lives as long as the process.
	Close() error
}

// Open opens the store that rawURL names:
//
//	path/to/dir, file:///dir              a directory
//	s3://bucket[/prefix][?endpoint=URL&region=NAME]
//	r2://bucket[/prefix]                  R2_ACCOUNT_ID or R2_ENDPOINT
//	gs://bucket[/prefix]                  STORAGE_EMULATOR_HOST is honoured
//	mem://name                            shared by all who use the name in this process
//
// Credentials are never in the URL: S3 and R2 take them as every AWS tool does
// (AWS_ACCESS_KEY_ID, AWS_PROFILE …), GCS from the application default
// credentials. A directory or bucket that is not there is an error: it is not
// made, so that a misspelt name cannot pass for an empty store.
func Open(ctx context.Context, rawURL string) (Store, error) {
	scheme, _, isURL := strings.Cut(rawURL, "://")
	if !isURL {
		return openDir(rawURL)
	}
	u, err := url.Parse(rawURL)
	if err != nil { // the URL may hold a secret: neither it nor url.Error is repeated
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
		return nil, errors.Join(fmt.Errorf("opening %s://%s: the bucket must exist and these credentials must be allowed to list it; create it, or check its name, the region and the credentials in the environment: %w", u.Scheme, u.Host, err), c.Close())
	}
	return c, nil
}

// checkKey holds the rule that Store states.
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
		why = "it holds a control character"
	case key == "." || key == ".." || strings.HasPrefix(key, "/") || strings.HasPrefix(key, "../") || path.Clean(key) != key:
		why = `it has an empty, "." or ".." element`
	default:
		return nil
	}
	return fmt.Errorf("key %q: %s: %w", key, why, ErrKey)
}

// contentTypes is what an extension says of an object, in the words that the
// design uses for the objects it stores.
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

// normal fills in what an option left open, so that all drivers store the same.
func (o PutOptions) normal(key string) (PutOptions, error) {
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
