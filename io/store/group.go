package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Item is one object that PutAll writes.
type Item struct {
	Key     string
	Body    []byte
	Options PutOptions
}

// groupPutter is a store that writes several objects together for less than one
// after another costs. It returns one error for each item, nil for those written.
// errors.ErrUnsupported for all of them means that nothing was tried.
type groupPutter interface {
	putAll(ctx context.Context, items []Item) []error
}

// PutAll writes items, and retries as Retry does. It returns one error for each
// item, in their order: nil for those that are written. Each object appears whole
// or not at all. A directory store syncs the data of all items together, and
// together with what other callers write at that moment.
func PutAll(ctx context.Context, s Store, items []Item) []error {
	errs := putAll(ctx, s, items)
	for i, item := range items {
		if errs[i] == nil || !errors.Is(errs[i], errors.ErrUnsupported) && !Retryable(errs[i]) {
			continue
		}
		errs[i] = Write(ctx, s, item.Key, item.Body, item.Options)
	}
	return errs
}

func putAll(ctx context.Context, s Store, items []Item) []error {
	if g, ok := s.(groupPutter); ok {
		return g.putAll(ctx, items)
	}
	return same(items, errors.ErrUnsupported)
}

// same is err for each of items.
func same(items []Item, err error) []error {
	errs := make([]error, len(items))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (s *counted) putAll(ctx context.Context, items []Item) []error {
	errs := putAll(ctx, s.Store, items)
	for i, err := range errs {
		if !errors.Is(err, errors.ErrUnsupported) {
			s.calls.put.Add(1)
			s.calls.written.Add(int64(len(items[i].Body)))
		}
	}
	return errs
}

func (s *guarded) putAll(ctx context.Context, items []Item) (errs []error) {
	if err := s.do(ctx, func(ctx context.Context) error {
		errs = putAll(ctx, s.Store, items)
		return nil
	}); err != nil {
		return same(items, err)
	}
	return errs
}

// putAll writes the temporary files of all items, syncs them together, and renames
// each one. Before the sync no item has its name.
func (d *dir) putAll(ctx context.Context, items []Item) []error {
	errs := make([]error, len(items))
	if err := d.checkRoot(); err != nil {
		for i, item := range items {
			errs[i] = fmt.Errorf("writing %q: %w", item.Key, err)
		}
		return errs
	}
	temps := make([]temp, len(items))
	var unsynced []*os.File
	for i, item := range items {
		temps[i], errs[i] = d.createTemp(ctx, item.Key, bytes.NewReader(item.Body), item.Options)
		if errs[i] == nil && temps[i].size > 0 {
			unsynced = append(unsynced, temps[i].file)
		}
	}
	synced := d.commits.sync(d.root, d.syncFileSystem, unsynced)
	for i, t := range temps {
		if errs[i] == nil {
			errs[i] = d.publish(ctx, t, synced, false)
		}
	}
	return errs
}

// groupCommit lets callers that sync at the same time share one sync of the file
// system: 64 writers of small files measured half the CPU of an fsync for each file,
// and a third less waiting.
type groupCommit struct {
	running sync.Mutex // locked during a sync
	mu      sync.Mutex
	next    *commit // that has not begun
}

// commit is one sync, and the files for which it is made.
type commit struct {
	files []*os.File
	done  chan struct{}
	err   error
}

// sync returns when the data of files is on the disk. The first caller after the
// start of a sync makes the next one, for all who come until then.
func (g *groupCommit) sync(root string, fileSystem func(string) error, files []*os.File) error {
	if len(files) == 0 {
		return nil
	}
	g.mu.Lock()
	c := g.next
	first := c == nil
	if first {
		c = &commit{done: make(chan struct{})}
		g.next = c
	}
	c.files = append(c.files, files...)
	g.mu.Unlock()
	if !first {
		<-c.done
		return c.err
	}
	g.running.Lock()
	defer g.running.Unlock()
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	if len(c.files) > len(files) && canSyncFileSystem {
		c.err = fileSystem(root)
	} else { // alone: what other programs have written meanwhile is not waited for
		for _, f := range c.files {
			c.err = errors.Join(c.err, f.Sync())
		}
	}
	close(c.done)
	return c.err
}
