// Package beamfs registers the schemes s3 and r2 as filesystems of Apache Beam, in a program
// that imports it. Beam's own transforms, such as textio and parquetio, then read and write
// buckets with the settings of package store: AWS_… for keys and AWS_ENDPOINT_URL for another
// S3 server, R2_ACCOUNT_ID or R2_ENDPOINT for r2. Do not import Beam's package filesystem/s3
// as well: a scheme can be registered once. No promise: see docs/library.md.
package beamfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/fsx"

	"github.com/newsfork/seed-engine/io/store"
	_ "github.com/newsfork/seed-engine/io/store/bucket" // opens them
)

func init() {
	for _, scheme := range []string{"s3", "r2"} {
		filesystem.Register(scheme, func(context.Context) filesystem.Interface {
			return &files{scheme: scheme, open: map[string]store.Store{}}
		})
	}
}

// files are the objects of the buckets of one scheme, each opened when it is first used.
type files struct {
	scheme string
	mu     sync.Mutex
	open   map[string]store.Store
}

var (
	_ filesystem.LastModifiedGetter = (*files)(nil)
	_ filesystem.Remover            = (*files)(nil)
)

// bucket returns the bucket of a file, and the file's key in it.
func (f *files) bucket(ctx context.Context, file string) (s store.Store, key string, err error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(file, f.scheme+"://"), "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[name] == nil {
		if err := store.Retry(ctx, func() (err error) { s, err = store.Open(ctx, f.scheme+"://"+name); return err }); err != nil {
			return nil, "", err
		}
		f.open[name] = s
	}
	return f.open[name], key, nil
}

// Close implements filesystem.Interface.
func (f *files) Close() error {
	var errs []error
	for _, s := range f.open {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// List implements filesystem.Interface. As in Beam's own filesystems a wildcard matches
// within one element of a key.
func (f *files) List(ctx context.Context, glob string) (found []string, err error) {
	s, pattern, err := f.bucket(ctx, glob)
	if err != nil {
		return nil, err
	}
	for o, err := range s.List(ctx, fsx.GetPrefix(pattern)) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", glob, err)
		}
		match, err := path.Match(pattern, o.Key)
		if err != nil {
			return nil, fmt.Errorf("the pattern %s: %w", glob, err)
		}
		if match {
			found = append(found, strings.TrimSuffix(glob, pattern)+o.Key)
		}
	}
	return found, nil
}

// OpenRead implements filesystem.Interface.
func (f *files) OpenRead(ctx context.Context, file string) (r io.ReadCloser, err error) {
	s, key, err := f.bucket(ctx, file)
	if err != nil {
		return nil, err
	}
	err = store.Retry(ctx, func() (err error) { r, err = s.Open(ctx, key); return err })
	return r, err
}

// OpenWrite implements filesystem.Interface. The object is there, whole, after Close.
func (f *files) OpenWrite(ctx context.Context, file string) (io.WriteCloser, error) {
	s, key, err := f.bucket(ctx, file)
	if err != nil {
		return nil, err
	}
	body, w := io.Pipe()
	u := &upload{PipeWriter: w, done: make(chan error, 1)}
	go func() {
		err := s.Put(ctx, key, body, store.PutOptions{})
		u.done <- errors.Join(err, body.CloseWithError(err)) // else a writer would wait for ever
	}()
	return u, nil
}

type upload struct {
	*io.PipeWriter
	done chan error
}

// Close ends the object and reports whether it is stored.
func (u *upload) Close() error { return errors.Join(u.PipeWriter.Close(), <-u.done) }

func (f *files) head(ctx context.Context, file string) (o store.Object, err error) {
	s, key, err := f.bucket(ctx, file)
	if err != nil {
		return o, err
	}
	err = store.Retry(ctx, func() (err error) { o, err = s.Head(ctx, key); return err })
	return o, err
}

// Size implements filesystem.Interface.
func (f *files) Size(ctx context.Context, file string) (int64, error) {
	o, err := f.head(ctx, file)
	return o.Size, err
}

// LastModified implements filesystem.LastModifiedGetter.
func (f *files) LastModified(ctx context.Context, file string) (time.Time, error) {
	o, err := f.head(ctx, file)
	return o.ModTime, err
}

// Remove implements filesystem.Remover.
func (f *files) Remove(ctx context.Context, file string) error {
	s, key, err := f.bucket(ctx, file)
	if err != nil {
		return err
	}
	return store.Remove(ctx, s, key)
}
