package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Layout is how results are kept.
type Layout string

// The layouts.
const (
	Objects Layout = "objects" // a few objects for each domain
	Table   Layout = "table"   // thousands of domains in a part of a Delta table
)

// OldRoot is where versions before the table kept packed results. This one does not read them.
const OldRoot = "packed/seed/"

// Packs reports whether results are kept in the table.
func (l Layout) Packs() bool { return l == Table }

// A part is committed when it has this much, or is as old as Config.SegmentAge.
const (
	segmentBytes = 128 << 20 // of evidence and documents, before compression
	segmentRows  = 10_000
)

// SegmentAge is how old a part is when it is committed, unless the run sets another time.
const SegmentAge = 30 * time.Second

// evidence is the evidence of a visit as WARC records.
type evidence struct {
	records []byte
	at      []table.Evidence // offsets in records
	size    int              // before compression
}

// pack makes the WARC records of the findings. ids are the domain ids that request them.
func (f findings) pack(ids []string) (e evidence, err error) {
	var fields [][2]string
	for _, id := range ids {
		fields = append(fields, [2]string{"Domain-Id", id})
	}
	for _, file := range evidenceFiles {
		x, ok := f.evidence[file]
		if !ok {
			continue
		}
		r := warc.Response{URI: x.final, At: x.at, Status: x.status, Header: x.header, Body: x.body, Truncated: x.truncated, Fields: append(slices.Clip(fields), [2]string{"Evidence-File", file})}
		if r.URI == "" {
			r.URI = x.url
		}
		if x.unpacked {
			r.Fields = append(r.Fields, [2]string{"Unpacked", "gzip"})
		}
		begin := len(e.records)
		if e.records, err = warc.AppendResponse(e.records, r); err != nil {
			return evidence{}, err
		}
		e.at = append(e.at, table.Evidence{File: file, Offset: int64(begin), Length: int64(len(e.records) - begin)})
		e.size += len(x.body)
	}
	return e, nil
}

// evidenceFiles are the keys of evidenceTypes, in the order of a visit.
var evidenceFiles = []string{"robots.txt", "sitemap.xml", "homepage.html"}

// pending is a part before it is written.
type pending struct {
	began   time.Time
	size    int
	records []byte
	count   int64 // of records
	rows    []table.Row
}

// add adds rows that have the same evidence.
func (p *pending) add(e evidence, rows ...table.Row) error {
	if len(p.rows) == 0 {
		p.began = time.Now()
	}
	if len(e.records) > 0 && p.count == 0 {
		var err error
		p.records, err = warc.AppendInfo(p.records, time.Now(), "", [][2]string{{"software", "Newsfork seed-engine"}, {"format", "WARC File Format 1.1"}, {"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"}})
		if err != nil {
			return err
		}
		p.count = 1
	}
	base := int64(len(p.records))
	p.records = append(p.records, e.records...)
	p.count += int64(len(e.at))
	p.size += e.size
	for _, row := range rows {
		row.Evidence = nil
		for _, at := range e.at {
			row.Evidence = append(row.Evidence, table.Evidence{File: at.File, Offset: base + at.Offset, Length: at.Length})
		}
		p.rows = append(p.rows, row)
		p.size += len(row.Document)
	}
	return nil
}

func (p *pending) full(age time.Duration) bool {
	return p.size >= segmentBytes || len(p.rows) >= segmentRows || len(p.rows) > 0 && time.Since(p.began) >= cmp.Or(age, SegmentAge)
}

// addPart adds the rows of a part that keep wants, with their evidence, and returns how many others there are.
func (p *pending) addPart(ctx context.Context, s store.Store, of domaintable.Part, keep func(table.Row) bool) (others int64, err error) {
	rows, err := of.ReadRows(ctx, s)
	if err != nil {
		return 0, err
	}
	records, err := of.ReadWARC(ctx, s)
	if err != nil {
		return 0, err
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r table.Row) bool { return !keep(r) })
	others = int64(all - len(rows))
	for len(rows) > 0 {
		same := 1 // the rows of one visit follow each other and have the same evidence
		for same < len(rows) && len(rows[0].Evidence) > 0 && slices.Equal(rows[same].Evidence, rows[0].Evidence) {
			same++
		}
		e, err := copyEvidence(records, rows[0].Evidence)
		if err != nil {
			return 0, fmt.Errorf("the evidence of %s: %w", rows[0].DomainID, err)
		}
		if err := p.add(e, rows[:same]...); err != nil {
			return 0, err
		}
		rows = rows[same:]
	}
	return others, nil
}

// copyEvidence takes records out of a WARC file as they are.
func copyEvidence(records []byte, at []table.Evidence) (e evidence, err error) {
	for _, a := range at {
		b, err := member(records, a)
		if err != nil {
			return evidence{}, err
		}
		e.at = append(e.at, table.Evidence{File: a.File, Offset: int64(len(e.records)), Length: a.Length})
		e.records = append(e.records, b...)
	}
	e.size = len(e.records)
	return e, nil
}

// namesTogether is how many lists of domains are read at the same time.
const namesTogether = 16

// namesOf calls each with the domains of each part, in no order and one part after another.
func namesOf(ctx context.Context, s store.Store, parts []domaintable.Part, each func(domaintable.Part, []domaintable.Done)) error {
	var mu sync.Mutex
	reads, within := errgroup.WithContext(ctx)
	reads.SetLimit(namesTogether)
	for _, p := range parts {
		reads.Go(func() error {
			done, err := p.ReadNames(within, s)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				each(p, done)
			}
			return err
		})
	}
	return reads.Wait()
}

// mayHave reports whether a part can have rows of a domain, by its lane.
func mayHave(p domaintable.Part, name string) bool { return p.Of == 0 || lane.Of(name, p.Of) == p.N }

// shared reports whether lane n of of and that of a part can have a host in common: a lane is a hash modulo the number of lanes.
func shared(p domaintable.Part, n, of int) bool {
	a, b := of, p.Of
	for b != 0 {
		a, b = b, a%b
	}
	return p.Of == 0 || n%a == p.N%a
}

// rewriting is what replaces parts of the table.
type rewriting struct {
	add, remove []domaintable.Part
	rows        int64 // that are in none of add
	unread      unread
}

// without plans to write the parts again that have rows which are gone. A part without other rows is not read.
func without(ctx context.Context, s store.Store, parts []domaintable.Part, gone Wanted) (re rewriting, err error) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p domaintable.Part) bool {
		for _, in := range p.In {
			for name := range gone[in] {
				if mayHave(p, name) {
					return false
				}
			}
		}
		return true
	})
	var some []domaintable.Part // of whose rows some are gone
	err = namesOf(ctx, s, parts, func(p domaintable.Part, done []domaintable.Done) {
		all, n := true, false
		for _, d := range done {
			for _, name := range d.Names {
				is := gone.has(d.Partition, name)
				all, n = all && is, n || is
			}
		}
		switch {
		case all:
			re.remove, re.rows = append(re.remove, p), re.rows+p.Count
		case n:
			some = append(some, p)
		}
	})
	if err != nil {
		return re, err
	}
	for _, p := range some {
		if err := re.part(ctx, s, p, func(r table.Row) bool { return !gone.has(r.Partition(), r.RegistrableDomain) }); err != nil {
			return re, err
		}
	}
	return re, nil
}

// part plans to write a part again with the rows that keep wants.
func (re *rewriting) part(ctx context.Context, s store.Store, of domaintable.Part, keep func(table.Row) bool) error {
	var p pending
	others, err := p.addPart(ctx, s, of, keep)
	if re.unread.takes(err) {
		return nil
	}
	if err != nil || others == 0 {
		return err
	}
	if len(p.rows) > 0 {
		written, err := domaintable.Write(ctx, s, of, p.rows, p.records)
		if err != nil {
			return err
		}
		re.add = append(re.add, written)
	}
	re.remove, re.rows = append(re.remove, of), re.rows+others
	return nil
}

// replace commits a change in whose place the rows that are gone leave the table.
func replace(ctx context.Context, s store.Store, log *domaintable.Writer, c domaintable.Change, gone Wanted) (re rewriting, err error) {
	for {
		if len(gone) > 0 {
			parts, err := log.Parts(ctx)
			if err != nil {
				return re, err
			}
			if re, err = without(ctx, s, parts, gone); err != nil {
				return re, err
			}
			if c.Add != nil && len(re.unread) > 0 {
				return re, re.unread.err(len(parts)) // else a row would be there twice
			}
		}
		all := c
		all.Add, all.Remove = slices.Concat(c.Add, re.add), slices.Concat(c.Remove, re.remove)
		if len(all.Add)+len(all.Remove) == 0 {
			return re, nil
		}
		if err = log.Commit(ctx, all); !errors.Is(err, delta.ErrConflict) {
			return re, err
		} // another lane has rewritten a part meanwhile
	}
}

// absent notes that no host has a mark, before the parts are read.
func (l past) absent() {
	for _, h := range l.table.hosts {
		for j := range h.records {
			h.records[j].mark = markAbsent
		}
	}
}

// noteDone returns what notes which hosts a part has.
func (l past) noteDone() func([]domaintable.Done) {
	byName := make(map[string]int32, len(l.table.hosts))
	for i, h := range l.table.hosts {
		byName[h.name] = int32(i)
	}
	return func(done []domaintable.Done) {
		for _, d := range done {
			for _, name := range d.Names {
				h, ok := byName[name]
				if !ok {
					continue
				}
				for j, r := range l.table.hosts[h].records {
					if l.table.files[r.file].in == d.Partition {
						l.table.hosts[h].records[j].mark = markPresent
					}
				}
			}
		}
	}
}
