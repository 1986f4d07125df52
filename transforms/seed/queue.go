package seed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
)

// receive takes messages. What they name passes the same stages as a listed file; a message is acknowledged once the
// completion mark is in the store, whichever process wrote it.
func (fn *pollFn) receive(ctx context.Context, at *position) (got found, err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(fn.Worker.Stopping(), cancel)()
	job := queue.Job{Look: fn.look, Log: fn.Worker.Log, DeadLetter: fn.badMessage, Begin: func(w queue.Wanted) {
		f, _ := fn.file(w) // look found it good
		got.files = append(got.files, f)
	}}
	_, err = at.Desk.Step(within, fn.queue, job, queueWait)
	switch {
	case err == nil:
		fn.heard = true
	case ctx.Err() != nil:
		return got, ctx.Err()
	case errors.Is(err, queue.ErrRefused) && !fn.heard:
		fn.Worker.Stop(fmt.Errorf("receiving from the queue: %w", err))
	case !fn.Worker.Stopped():
		fn.Worker.Log.Error("queue_failed", "error", ledger.Redact(err.Error()))
		at.Next = time.Now().Add(maxStopWait)
	}
	got.count, got.open = len(got.files), len(at.Desk.Works)
	return got, nil
}

// fromMessage begins the name of a File that is one domain of a message: PARTITION/#DOMAIN ID#KEY, where KEY is the raw file
// that the message says it comes from.
const fromMessage = "#"

// placeOf returns the partition of a File by its key, and the raw file that it comes from.
func placeOf(key string) (p hive.Partition, from string, ok bool) {
	dir, rest, message := strings.Cut(key, fromMessage)
	if from = key; message {
		key = dir + "raw_0000.json"
		_, from, _ = strings.Cut(rest, fromMessage)
	}
	raw, ok := hive.ParseRaw(key)
	return raw.Partition, from, ok
}

// isMessage reports whether the key of a File is that of a message's domain.
func isMessage(key string) bool { return strings.Contains(key, fromMessage) }

// errOther is about a notification of an object that is no raw file: a result of this program, for example.
var errOther = errors.New("no raw file")

// file returns what the stages read of a message.
func (fn *pollFn) file(w queue.Wanted) (File, error) {
	key := fn.Config.Lane.Roots.Usual(w.Key)
	d := w.Domain
	if d == nil {
		if u, err := url.Parse(fn.Config.Lane.Store); err == nil && u.Host != "" && u.Scheme != "mem" && w.Bucket != "" && w.Bucket != u.Host {
			return File{}, fmt.Errorf("%w: it is about the bucket %s, not %s", queue.ErrBad, w.Bucket, u.Host)
		}
		switch _, ok := hive.ParseRaw(key); {
		case ok:
		case w.Bucket != "" && !hive.NearMiss(key):
			return File{}, errOther
		default:
			return File{}, fmt.Errorf("%w: %s is no raw file (%scountry=CC/category=NAME/date=YYYY-MM-DD/raw_NNNN.json)", queue.ErrBad, w.Key, fn.Config.Lane.Roots.Key(hive.Datasets))
		}
		return File{Key: key}, nil
	}
	p := d.Partition
	f := File{Key: hive.Prefix(hive.Datasets, p.Country, p.Category, p.Date) + fromMessage + d.ID + fromMessage + key, Domain: *d}
	if _, _, ok := placeOf(f.Key); !ok {
		return f, fmt.Errorf("%w: its partition is none: %s", queue.ErrBad, path.Dir(f.Key))
	}
	_, err := f.record()
	if err != nil {
		err = fmt.Errorf("%w: %w", queue.ErrBad, err)
	}
	return f, err
}

// record returns the URL record of a message's domain.
func (f File) record() (lane.URLRecord, error) {
	d, _, err := domain.FromRecord(f.Domain.URL, f.Domain.Registrable, f.Domain.ID, f.Domain.Partition.Country)
	return lane.URLRecord{Host: d.Registrable, Label: strings.TrimSuffix(d.ID, ":"+d.Registrable), Source: sourceText(rawfile.Record{DomainID: f.Domain.ID}, d)}, err
}

// look returns the state of what a message names.
func (fn *pollFn) look(ctx context.Context, w queue.Wanted) (queue.State, error) {
	f, err := fn.file(w)
	switch {
	case errors.Is(err, errOther):
		return queue.None, nil
	case err != nil:
		return queue.Ready, err
	}
	key := f.Key
	if w.Domain != nil {
		in, _, _ := placeOf(f.Key)
		r, _ := f.record() // file made it too
		key = metadataKey(in, r.Host)
	}
	switch done, err := fn.Config.marked(ctx, fn.Worker.Store, key); {
	case err != nil:
		return queue.Ready, err
	case done:
		return queue.Done, nil
	case w.Domain != nil:
		return queue.Ready, nil
	}
	_, err = fn.Worker.Store.Head(ctx, key)
	if errors.Is(err, store.ErrNotExist) {
		err = fmt.Errorf("%w: %w", queue.ErrBad, err)
	}
	return queue.Ready, err
}

// badMessage writes the dead letter of a message that names nothing to do.
func (fn *pollFn) badMessage(ctx context.Context, w queue.Wanted, why error) error {
	d := ledger.DeadLetter{Job: Job, RunID: fn.Config.Lane.RunID, Stage: "receive", Kind: "bad_message", Error: why.Error()}
	switch f, err := fn.file(w); {
	case err == nil:
		d.Input.File = f.Key
	case w.Domain != nil:
		d.Input.DomainID = w.Domain.ID
	default:
		d.Input.Key = w.Key
	}
	fn.dead = true
	return fn.Worker.DeadLetter(ctx, d)
}
