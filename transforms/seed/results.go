package seed

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Filter chooses results; an empty field chooses all. Run is the run that collected them, for Outcomes only.
type Filter = rows.Filter

// stored is a domain in a partition that is done.
type stored struct {
	in       hive.Partition
	metadata metadata.Domain
	at       time.Time // when it was collected
	document []byte
}

// errNoMetadata is the error of a document that is no domain metadata.
var errNoMetadata = errors.New("it is no domain metadata")

func newStored(p hive.Partition, document []byte) (d stored, err error) {
	d = stored{in: p, document: document}
	if err = json.Unmarshal(document, &d.metadata); err == nil {
		d.at, err = time.Parse(time.RFC3339, d.metadata.CollectedAt)
	}
	if err == nil && d.metadata.RegistrableDomain == "" {
		err = errors.New("it names no domain")
	}
	if err != nil {
		return d, fmt.Errorf("%w (%w); remove it and its mark, so that the next run visits the domain again", errNoMetadata, err)
	}
	return d, nil
}

// maxCompared is how many packed results are compared at a time. Tests replace it.
var maxCompared int64 = 4_000_000

// results yields each domain in a partition that is done, in both layouts, in no order. Of
// several visits the newest counts. As of an earlier version these are the rows of the table alone. A run may be at work: what it finishes meanwhile may
// be there or not. Memory does not grow with the results: packed results are
// compared in several passes if they are many.
func results(ctx context.Context, s store.Store, f Filter) iter.Seq2[stored, error] {
	if f.AsOf != "" {
		return partResults(ctx, s, f, func() ([]domaintable.Part, error) { return domaintable.AsOf(ctx, s, f.AsOf) })
	}
	return func(yield func(stored, error) bool) {
		parts, rows, err := packedFor(ctx, s, f)
		if err != nil {
			yield(stored{}, err)
			return
		}
		passes := uint64(rows/maxCompared) + 1
		for pass := range passes {
			in := func(v visited) bool { return binary.BigEndian.Uint64(v[:])%passes == pass }
			for d, err := range resultsOf(ctx, s, f, parts, in) {
				if err == nil && d.at.Before(f.Since) {
					continue
				}
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// partResults yields the rows of parts.
func partResults(ctx context.Context, s store.Store, f Filter, of func() ([]domaintable.Part, error)) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		parts, err := of()
		if err != nil {
			yield(stored{}, err)
			return
		}
		for _, p := range parts {
			if !slices.ContainsFunc(p.In, f.Wants) {
				continue
			}
			rows, err := p.ReadRows(ctx, s)
			if err != nil {
				yield(stored{}, err)
				return
			}
			for _, r := range rows {
				if !f.Wants(r.Partition()) || r.CollectedAt.Before(f.Since) {
					continue
				}
				if d, err := newStored(r.Partition(), []byte(r.Document)); !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// packedFor returns the parts of the table that can have results of the filter, and how many rows they have.
func packedFor(ctx context.Context, s store.Store, f Filter) (parts []domaintable.Part, rows int64, err error) {
	all, err := domaintable.All(ctx, s)
	for _, p := range all {
		if slices.ContainsFunc(p.In, f.Wants) && !p.At.Before(f.Stored) {
			parts, rows = append(parts, p), rows+p.Count
		}
	}
	return parts, rows, err
}

// given is the time of a visit that was yielded.
const given = math.MaxInt64

// resultsOf is results for the domains in in.
func resultsOf(ctx context.Context, s store.Store, f Filter, parts []domaintable.Part, in func(visited) bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		newest := map[visited]int64{} // of packed results, in milliseconds
		packed := func(each func(visited, table.Row) bool) bool {
			for _, p := range parts {
				rows, err := p.ReadRows(ctx, s)
				if err != nil {
					yield(stored{}, err)
					return false
				}
				for _, r := range rows {
					if v := folderAs(r.Partition(), r.RegistrableDomain); in(v) && f.Wants(r.Partition()) && !each(v, r) {
						return false
					}
				}
			}
			return true
		}
		if !packed(func(v visited, r table.Row) bool {
			newest[v] = r.CollectedAt.UnixMilli()
			return true
		}) {
			return
		}
		for d, err := range objectResults(ctx, s, f, in) {
			if err != nil {
				yield(d, err)
				return
			}
			v := folderAs(d.in, d.metadata.RegistrableDomain)
			if at, ok := newest[v]; ok {
				if d.at.UnixMilli() < at {
					continue
				}
				newest[v] = given
			}
			if !yield(d, nil) {
				return
			}
		}
		packed(func(v visited, r table.Row) bool {
			if r.CollectedAt.UnixMilli() != newest[v] {
				return true
			}
			d, err := newStored(r.Partition(), []byte(r.Document))
			return yield(d, err) && err == nil
		})
	}
}

// folderAs identifies a domain in a partition by the name of its folder.
func folderAs(p hive.Partition, name string) visited {
	return visitedAs(p, path.Base(p.DomainDir(name)))
}

const (
	// readTogether is how many objects are read at the same time.
	readTogether = 64
	// maxDocument is the size of the largest metadata that is read.
	maxDocument = 16 << 20
)

// objectResult returns the result of a domain in the objects' layout.
func objectResult(ctx context.Context, s store.Store, p hive.Partition, name string) (stored, error) {
	return readResult(ctx, s, p, metadataKey(p, name))
}

func readResult(ctx context.Context, s store.Store, p hive.Partition, key string) (d stored, err error) {
	b, err := store.ReadAll(ctx, s, key, maxDocument)
	if err != nil {
		return d, err
	}
	if d, err = newStored(p, bytes.TrimSpace(b)); err != nil {
		return d, fmt.Errorf("reading %s: %w", key, err)
	}
	return d, nil
}

// objectResults yields the domains that have their mark, by their keys' order.
func objectResults(ctx context.Context, s store.Store, f Filter, in func(visited) bool) iter.Seq2[stored, error] {
	type marked struct {
		in  hive.Partition
		key string
	}
	return func(yield func(stored, error) bool) {
		var next []marked
		flush := func() bool {
			found := make([]*stored, len(next))
			var reads errgroup.Group
			for i, m := range next {
				reads.Go(func() error {
					d, err := readResult(ctx, s, m.in, m.key)
					if errors.Is(err, store.ErrNotExist) {
						return nil // removed since the listing
					}
					if err == nil {
						found[i] = &d
					}
					return err
				})
			}
			err := reads.Wait()
			next = next[:0]
			for _, d := range found {
				if d != nil && !yield(*d, nil) {
					return false
				}
			}
			if err != nil {
				yield(stored{}, err)
			}
			return err == nil
		}
		for o, err := range s.List(ctx, hive.Prefix(hive.Processing, f.Country, f.Category, f.Date)) {
			if err != nil {
				yield(stored{}, fmt.Errorf("listing the results: %w", err))
				return
			}
			p, folder, ok := hive.ParseMark(o.Key)
			if !ok || !f.Wants(p) || o.ModTime.Before(f.Stored) || !in(folderAs(p, folder)) {
				continue
			}
			next = append(next, marked{p, strings.TrimSuffix(o.Key, hive.Success)})
			if len(next) == readTogether && !flush() {
				return
			}
		}
		flush()
	}
}

// evidenceTypes are the evidence files of a domain and their content types.
var evidenceTypes = map[string]string{
	"robots.txt":    "text/plain",
	"sitemap.xml":   "application/xml",
	"homepage.html": "text/html",
}

// validate is a variable only for the tests.
var validate = metadata.Validate

// document returns the findings as the metadata of one partition.
func (f findings) document(cfg Config, q request) (m metadata.Domain, doc []byte, err error) {
	m = f.metadata
	m.DomainID, m.Country, m.Category = q.id, strings.ToUpper(q.in.Country), q.in.Category
	from := sourceOf(q.source, q.id).Source
	from.RawFilePath, from.RecordIndex, m.Source = cfg.Lane.Roots.Key(q.file), q.record(), &from
	if err := validate(m); err != nil {
		return m, nil, &invalidError{err}
	}
	if doc, err = metadata.Marshal(m); err != nil {
		return m, nil, &invalidError{err}
	}
	return m, doc, nil
}

// store writes the findings to one partition: the evidence, and then the metadata that
// describes it. The caller writes the mark, last.
func (f findings) store(ctx context.Context, w *lane.Worker, cfg Config, q request, name string, doc []byte, fresh bool) error {
	dir := q.in.DomainDir(name) + "/"
	var items []store.Item
	for file, contentType := range evidenceTypes {
		if file == "homepage.html" && !cfg.Collect.Homepage {
			continue
		}
		if got, ok := f.evidence[file]; ok {
			items = append(items, store.Item{Key: dir + file, Body: got.body, Options: store.PutOptions{ContentType: contentType}})
		} else if !fresh { // an earlier try that was killed may have left it
			if err := store.Remove(ctx, w.Store, dir+file); err != nil {
				return fmt.Errorf("removing old evidence %s: %w", dir+file, err)
			}
		}
	}
	evidence := len(items)
	items = append(items, store.Item{Key: metadataKey(q.in, name), Body: doc, Options: metadataOptions(q.in, q.id, name)})
	errs := store.PutAll(ctx, w.Store, items)
	for i, err := range errs[:evidence] {
		if err != nil {
			w.Log.Warn("evidence_file_save_failed", "domain_id", q.id, "key", items[i].Key, "error", ledger.Redact(err.Error()))
		}
	}
	return errs[evidence]
}

// metadataOptions are those with which a domain's metadata is written.
func metadataOptions(p hive.Partition, id, name string) store.PutOptions {
	return store.PutOptions{ContentType: "application/json", Metadata: map[string]string{
		"domain_id": id, "registrable_domain": name, "country": p.Country, "category": p.Category, "date": p.Date,
	}}
}

func fileDeadLetter(cfg Config, key, kind string, retryable bool, indices []int, err error) ledger.DeadLetter {
	d := ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID, Stage: "extract", Kind: kind, Retryable: retryable,
		Input: ledger.Input{File: key, Indices: indices}}
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// domainDeadLetter makes a dead letter about the metadata object key of a domain. The
// caller adds kind, file, index and error.
func domainDeadLetter(cfg Config, key, id, name string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID,
		Input: ledger.Input{DomainID: id, Key: key, URL: homeOf(name)}}
}

func homeOf(name string) string { return "https://" + name + "/" }

func requestDeadLetter(cfg Config, q request, name string) ledger.DeadLetter {
	d := domainDeadLetter(cfg, metadataKey(q.in, name), q.id, name)
	d.Input.File, d.Input.Index = q.file, q.record()
	return d
}
