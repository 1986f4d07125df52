package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Limits of one look for a domain. A look asks for the marks of one domain in partitions,
// and reads the lists of one lane's domains; it never lists results.
const (
	maxRawFiles   = 20_000 // that are listed, to learn which partitions there are
	maxAsked      = 200    // partitions, whose marks are asked for
	maxPlaces     = 20     // results in one page
	askedTogether = 16
)

// errTooMany says that a store has too many raw files to learn its partitions.
var errTooMany = errors.New("too many raw files")

// place is where a domain's result of one partition can be.
type place struct {
	in      hive.Partition
	objects bool
	part    domaintable.Part // that has it; zero: none
}

// before orders partitions, the newest first.
func before(a, b hive.Partition) int {
	return cmp.Or(-strings.Compare(a.Date, b.Date), strings.Compare(a.Country, b.Country), strings.Compare(a.Category, b.Category))
}

// placesOf returns in which partitions a domain is done, the newest first, after one of
// them, and the partition after which there can be more.
func placesOf(ctx context.Context, s store.Store, name string, f Filter, after *hive.Partition) (found []place, more *hive.Partition, err error) {
	packed, err := packedOf(ctx, s, name, f)
	if err != nil {
		return nil, nil, err
	}
	all, err := partitionsOf(ctx, s, f)
	if err != nil {
		return nil, nil, err
	}
	for p := range packed {
		all[p] = true
	}
	if after != nil {
		maps.DeleteFunc(all, func(p hive.Partition, _ bool) bool { return before(p, *after) <= 0 })
	}
	sorted := slices.SortedFunc(maps.Keys(all), before)
	for asked := 0; len(sorted) > 0; {
		if len(found) >= maxPlaces || asked >= maxAsked {
			return found, more, nil
		}
		next := sorted[:min(askedTogether, len(sorted), maxPlaces-len(found))]
		sorted, asked = sorted[len(next):], asked+len(next)
		more = &next[len(next)-1]
		done := make([]bool, len(next))
		group, within := errgroup.WithContext(ctx)
		for i, p := range next {
			group.Go(func() (err error) {
				done[i], err = store.Exists(within, s, metadataKey(p, name)+hive.Success)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, nil, fmt.Errorf("asking for the marks of %s: %w", name, err)
		}
		for i, p := range next {
			if done[i] || packed[p].ID != "" {
				found = append(found, place{p, done[i], packed[p]})
			}
		}
	}
	return found, nil, nil
}

// partitionsOf returns the partitions of the raw files, without a listing if the filter
// names one.
func partitionsOf(ctx context.Context, s store.Store, f Filter) (map[hive.Partition]bool, error) {
	all := map[hive.Partition]bool{}
	if f.Country != "" && f.Category != "" && f.Date != "" {
		all[hive.Partition{Country: f.Country, Category: f.Category, Date: f.Date}] = true
		return all, nil
	}
	n := 0
	for o, err := range s.List(ctx, hive.Prefix(hive.Datasets, f.Country, f.Category, f.Date)) {
		if err != nil {
			return nil, fmt.Errorf("listing the raw files: %w", err)
		}
		if n++; n > maxRawFiles {
			return nil, errTooMany
		}
		if r, ok := hive.ParseRaw(o.Key); ok && f.Wants(r.Partition) {
			all[r.Partition] = true
		}
	}
	return all, nil
}

// packedOf returns the parts that have the results of a domain, by partition.
func packedOf(ctx context.Context, s store.Store, name string, f Filter) (map[hive.Partition]domaintable.Part, error) {
	parts, _, err := packedFor(ctx, s, f)
	if err != nil {
		return nil, err
	}
	all := map[hive.Partition]domaintable.Part{}
	parts = slices.DeleteFunc(parts, func(p domaintable.Part) bool { return !mayHave(p, name) })
	return all, namesOf(ctx, s, parts, func(p domaintable.Part, done []domaintable.Done) {
		for _, d := range done {
			if f.Wants(d.Partition) && slices.Contains(d.Names, name) {
				all[d.Partition] = p
			}
		}
	})
}

// kept is a result with its evidence.
type kept struct {
	stored
	run      string // of packed results
	evidence map[string]object
}

// object is an object, or a part of one.
type object struct {
	key            string
	offset, length int64 // of a record of a WARC file; length 0: the whole object
}

// String says where it is.
func (o object) String() string {
	if o.length == 0 {
		return o.key
	}
	return fmt.Sprintf("%s, %d bytes from %d", o.key, o.length, o.offset)
}

// read reads the newest result of a place.
func (p place) read(ctx context.Context, s store.Store, name string) (k kept, err error) {
	none := p.part.ID == ""
	if !none {
		rows, err := p.part.ReadRows(ctx, s)
		if err != nil {
			return k, err
		}
		i := slices.IndexFunc(rows, func(r table.Row) bool { return r.RegistrableDomain == name && r.Partition() == p.in })
		if i < 0 {
			return k, fmt.Errorf("%s has no row of %s, which its list of domains names: %w", p.part.Key(), name, domaintable.ErrDamaged)
		}
		if k, err = fromRow(rows[i], p.part); err != nil {
			return k, err
		}
	}
	if !p.objects {
		return k, nil
	}
	d, err := objectResult(ctx, s, p.in, name)
	if err != nil || !none && d.at.Before(k.at) {
		return k, err
	}
	k = kept{stored: d, evidence: map[string]object{}}
	for file := range evidenceTypes {
		k.evidence[file] = object{key: p.in.DomainDir(name) + "/" + file}
	}
	return k, nil
}

func fromRow(r table.Row, of domaintable.Part) (k kept, err error) {
	k = kept{run: of.RunID, evidence: map[string]object{}}
	for _, e := range r.Evidence {
		k.evidence[e.File] = object{domaintable.Root + strings.Clone(r.WARC), e.Offset, e.Length}
	}
	k.stored, err = newStored(r.Partition(), []byte(strings.Clone(r.Document)))
	return k, err
}

// beginning returns the first bytes of a file of evidence, at most limit, and whether they
// are all of it. ok is false where there is none.
func (o object) beginning(ctx context.Context, s store.Store, limit int64) (body []byte, whole, ok bool, err error) {
	if o.key == "" {
		return nil, false, false, nil
	}
	err = store.Retry(ctx, func() (err error) {
		r, err := s.Open(ctx, o.key)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		if o.length == 0 {
			body, err = io.ReadAll(io.LimitReader(r, limit+1))
			whole = int64(len(body)) <= limit
			body = body[:min(int64(len(body)), limit)]
			return err
		}
		if _, err = io.CopyN(io.Discard, r, o.offset); err == nil {
			body, whole, err = warc.Beginning(io.LimitReader(r, o.length), limit)
		}
		return err
	})
	if errors.Is(err, store.ErrNotExist) {
		return nil, false, false, nil
	}
	return body, whole, err == nil, err
}
