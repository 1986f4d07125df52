package seed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Layout is how results are kept.
type Layout string

// The layouts.
const (
	Objects Layout = "objects" // a few objects for each domain
	Packed  Layout = "packed"  // thousands of domains in a segment
)

// PackedRoot is where the lanes' folders of packed results are.
const PackedRoot = "packed/seed/"

// late is the folder of the domains about which Complete decides.
const late = PackedRoot + "late/"

// The endings of a segment's files.
const (
	warcFile = ".warc.gz"
	rowsFile = ".parquet"
)

// Packs reports whether results are kept in segments.
func (l Layout) Packs() bool { return l == Packed }

// A segment is committed when it has this much, or is as old as Config.SegmentAge.
const (
	segmentBytes = 128 << 20 // of evidence and documents, before compression
	segmentRows  = 10_000
)

// SegmentAge is how old a segment is when it is committed, unless the run sets another
// time.
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

// pending is a segment before its commit.
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

// commit writes the segment, and its commit last.
func (p *pending) commit(ctx context.Context, log *segment.Log, c segment.Commit) error {
	rows, err := table.Encode(p.rows)
	if err != nil {
		return err
	}
	var parts []segment.Part
	if p.count > 0 { // of sites that answer nothing there is no evidence
		parts = append(parts, segment.Part{Ending: warcFile, Body: p.records, Count: p.count})
	}
	c.Done = doneOf(p.rows)
	_, err = log.Commit(ctx, c, append(parts, segment.Part{Ending: rowsFile, Body: rows, Count: int64(len(p.rows))})...)
	return err
}

// partitionOf is the partition of results that a commit names.
func partitionOf(d segment.Done) hive.Partition {
	return hive.Partition{Country: d.Country, Category: d.Category, Date: d.Date}
}

// doneOf names the results of rows, by partition.
func doneOf(rows []table.Row) (all []segment.Done) {
	by := map[hive.Partition]int{}
	for _, r := range rows {
		p := r.Partition()
		i, ok := by[p]
		if !ok {
			i = len(all)
			by[p] = i
			all = append(all, segment.Done{Country: p.Country, Category: p.Category, Date: p.Date})
		}
		all[i].Names = append(all[i].Names, r.RegistrableDomain)
	}
	return all
}

// absent notes that no host has a mark, before the commits are read.
func (l past) absent() {
	for _, h := range l.table.hosts {
		for j := range h.records {
			h.records[j].mark = markAbsent
		}
	}
}

// noteCommit returns what notes which hosts a commit has.
func (l past) noteCommit() func(segment.Commit) {
	cfg := l.cfg
	byName := make(map[string]int32, len(l.table.hosts))
	for i, h := range l.table.hosts {
		byName[h.name] = int32(i)
	}
	return func(c segment.Commit) {
		if cfg.ForceID != "" && c.ForcedBy != cfg.ForceID {
			return
		}
		for _, d := range c.Done {
			p := partitionOf(d)
			for _, name := range d.Names {
				h, ok := byName[name]
				if !ok {
					continue
				}
				for j, r := range l.table.hosts[h].records {
					if l.table.files[r.file].in == p {
						l.table.hosts[h].records[j].mark = markPresent
					}
				}
			}
		}
	}
}
