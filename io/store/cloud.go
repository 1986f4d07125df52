package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/newsfork/seed-engine/io/fault"
)

// cloud is a bucket of gocloud.dev/blob. Of the keys that checkKey accepts, its
// drivers escape only those with a literal "__0x", and unescape them again. All
// others are sent unchanged.
type cloud struct {
	bucket Bucket
	prefix string // empty, or ends with "/"
	local  bool   // in this process's memory
	probed probe
}

// Bucket is a bucket of gocloud.dev/blob, with what that package does not tell about it.
type Bucket struct {
	Blob       *blob.Bucket
	BufferSize int                            // blob.WriterOptions.BufferSize
	ETag       func(as func(any) bool) string // of an object that was described or listed, by its As function; empty for none
	Absent     func(error) bool               // whether an error says that there is no such bucket
	Advise     func(error) string             // why the bucket cannot be listed, and what to do, in one sentence; "" if that is not known
	Close      func() error
}

// refusal is an error in the words of Bucket.Advise.
type refusal struct {
	text string
	err  error
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.err }

var drivers = map[string]func(context.Context, *url.URL) (Bucket, error){}

// Register makes Open know the URLs of a scheme. It is called by an init function: programs
// link the services that they import, as package io/store/bucket.
func Register(scheme string, open func(context.Context, *url.URL) (Bucket, error)) {
	drivers[scheme] = open
}

func openCloud(ctx context.Context, u *url.URL) (*cloud, error) {
	if u.Scheme == "mem" {
		return openMemory(u.Host), nil
	}
	open, ok := drivers[u.Scheme]
	if !ok {
		return nil, fmt.Errorf("the scheme %q is unknown; use a directory, file://, s3://, r2://, gs:// or mem://", u.Scheme)
	}
	b, err := open(ctx, u)
	if err != nil {
		return nil, err
	}
	return &cloud{bucket: b}, nil
}

var memory = struct {
	sync.Mutex
	buckets map[string]*blob.Bucket
}{buckets: map[string]*blob.Bucket{}}

func openMemory(name string) *cloud {
	memory.Lock()
	defer memory.Unlock()
	b := memory.buckets[name]
	if b == nil {
		b = memblob.OpenBucket(nil)
		memory.buckets[name] = b
	}
	return &cloud{local: true, bucket: Bucket{Blob: b, ETag: func(func(any) bool) string { return "" },
		Absent: func(error) bool { return false }, Advise: func(error) string { return "" }, Close: func() error { return nil }}}
}

// page is one page of a listing; next is empty after the last.
func (c *cloud) page(ctx context.Context, prefix string, token []byte, size int) (objects []*blob.ListObject, next []byte, err error) {
	if token == nil {
		token = blob.FirstPageToken
	}
	err = Retry(ctx, func() error {
		objects, next, err = c.bucket.Blob.ListPage(ctx, token, size, &blob.ListOptions{Prefix: c.prefix + prefix})
		return ofList(ctx, err)
	})
	return objects, next, err
}

func (c *cloud) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var token []byte
		for {
			objects, next, err := c.page(ctx, prefix, token, pageSize)
			if err != nil {
				yield(Object{}, fmt.Errorf("listing %q: %w", prefix, err))
				return
			}
			for _, o := range objects {
				if !yield(c.toObject(o), nil) {
					return
				}
			}
			if len(next) == 0 {
				return
			}
			token = next
		}
	}
}

// toObject takes the ETag from the service's own response: gocloud's type has none.
func (c *cloud) toObject(l *blob.ListObject) Object {
	o := Object{Key: l.Key, Size: l.Size, ModTime: l.ModTime, ETag: c.etag(l.MD5, l.As)}
	o.Key = strings.TrimPrefix(o.Key, c.prefix)
	return o
}

func (c *cloud) etag(md5 []byte, as func(any) bool) string {
	return cmp.Or(c.bucket.ETag(as), hex.EncodeToString(md5))
}

func (c *cloud) Head(ctx context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return Object{}, err
	}
	a, err := c.bucket.Blob.Attributes(ctx, c.prefix+key)
	if err != nil {
		return Object{}, c.keyError("describing", key, err)
	}
	o := Object{Key: key, Size: a.Size, ModTime: a.ModTime, ETag: c.etag(a.MD5, a.As), ContentType: a.ContentType}
	if len(a.Metadata) > 0 {
		o.Metadata = a.Metadata
	}
	return o, nil
}

func (c *cloud) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	r, err := c.bucket.Blob.NewReader(ctx, c.prefix+key, nil)
	if err != nil {
		return nil, c.keyError("opening", key, err)
	}
	return &body{r, key}, nil
}

// body adds the key to the errors of its reader and marks them with
// errConnectionBroken.
type body struct {
	io.ReadCloser
	key string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %q: %w: %w", b.key, errConnectionBroken, err)
	}
	return n, err
}

func (c *cloud) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return c.put(ctx, key, body, o, false)
}

func (c *cloud) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return c.put(ctx, key, body, o, true)
}

func (c *cloud) put(ctx context.Context, key string, body io.Reader, o PutOptions, ifAbsent bool) error {
	if err := checkKey(key); err != nil {
		return err
	}
	o, err := o.withDefaults(key)
	if err != nil {
		return err
	}
	// Some drivers of gocloud store the part that they have when the body fails. So
	// the first MiB, which is most bodies, is read before the request; when a longer
	// body fails, it cancels the request.
	head, err := io.ReadAll(io.LimitReader(body, readAhead))
	if err != nil {
		return fmt.Errorf("writing %q: reading the body: %w", key, err)
	}
	if ifAbsent && len(head) == readAhead {
		// A server that refuses a long body early resets the connection, and the
		// client never reads the response. So an existing key is found first; between
		// concurrent writers IfNotExist decides.
		_, err := c.Head(ctx, key)
		if err == nil {
			return fmt.Errorf("writing %q: %w", key, ErrExist)
		}
		if !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	src := &cancellingBody{r: body, cancel: cancel}
	err = c.bucket.Blob.Upload(ctx, c.prefix+key, io.MultiReader(bytes.NewReader(head), src), &blob.WriterOptions{
		ContentType: o.ContentType, Metadata: o.Metadata, IfNotExist: ifAbsent, BufferSize: c.bucket.BufferSize,
	})
	if src.err != nil {
		return fmt.Errorf("writing %q: reading the body: %w", key, src.err)
	}
	if err != nil {
		if ifAbsent && (gcerrors.Code(err) == gcerrors.FailedPrecondition || fault.Status(err) == http.StatusPreconditionFailed) { // s3blob asks the body, which may have been cut off
			return fmt.Errorf("writing %q: %w", key, ErrExist)
		}
		return c.keyError("writing", key, err)
	}
	return nil
}

const readAhead = 1 << 20

// cancellingBody cancels an upload when its body fails.
type cancellingBody struct {
	r      io.Reader
	cancel context.CancelFunc
	err    error
}

func (s *cancellingBody) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
		s.cancel()
	}
	return n, err
}

func (c *cloud) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := c.keyError("deleting", key, c.bucket.Blob.Delete(ctx, c.prefix+key)); err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	return nil
}

func (c *cloud) Close() error { return c.bucket.Close() }

// keyError adds the operation and the key to err. A missing bucket is not reported
// as a missing object: the run must not mistake it for an empty store.
func (c *cloud) keyError(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	// gcsblob calls a 403 "not found" as well.
	if gcerrors.Code(err) == gcerrors.NotFound && !c.bucket.Absent(err) && fault.Status(err) != 403 {
		return fmt.Errorf("%s %q: %w", doing, key, ErrNotExist)
	}
	return fmt.Errorf("%s %q: %w", doing, key, err)
}
