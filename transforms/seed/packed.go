package seed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Layout is how results are kept.
type Layout string

// The layouts.
const (
	Objects Layout = "objects" // a few objects for each domain
	Packed  Layout = "packed"  // thousands of domains in a segment
	Both    Layout = "both"
)

// PackedRoot is where the lanes' folders of packed results are.
const PackedRoot = "packed/seed/"

// byServerRoot begins the names of the folders of lanes that have their hosts by server.
// Any of them can have results of a host, whatever its name.
const byServerRoot = PackedRoot + "server-"

// late is the folder of the domains about which Complete decides.
const late = PackedRoot + "late/"

// The endings of a segment's files.
const (
	warcFile = ".warc.gz"
	rowsFile = ".parquet"
)

// Packs reports whether results are kept in segments, alone or besides objects.
func (l Layout) Packs() bool   { return l == Packed || l == Both }
func (l Layout) objects() bool { return l != Packed }

// A segment is committed when it has this much, or is as old as Config.SegmentAge.
const (
	segmentBytes = 128 << 20 // of evidence and documents, before compression
	segmentRows  = 10_000
)

// SegmentAge is how old a segment is when it is committed, unless the run sets another
// time.
const SegmentAge = 30 * time.Second

// rowOf makes the row of a request, without its evidence.
func rowOf(cfg Config, q request, got findings) (row table.Row, doc []byte, err error) {
	m, doc, err := got.document(cfg, q)
	if err != nil || !cfg.Layout.Packs() {
		return row, doc, err
	}
	if row, err = table.New(q.in, m, doc); err != nil {
		return row, doc, &invalidError{err}
	}
	row.ForcedBy = cfg.ForceID
	return row, doc, nil
}

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

// packer gathers the visits of a lane.
type packer struct {
	log     *segment.Log
	pending pending
	visits  []result // that are counted after the commit
}

// openPacked begins to write the lane's segments, and notes which of its hosts have been
// committed.
func (l *laneRun) openPacked(ctx context.Context, n int) error {
	w, cfg := l.fn.Worker, l.fn.Config
	var log *segment.Log
	var err error
	if cfg.byServer() { // Resolve has read the other folders
		log, err = segment.Open(ctx, w.Store, segment.Lane(byServerRoot, n, cfg.Lanes), cfg.Lane.RunID, l.noteCommit())
	} else {
		if l.fn.earlier == nil {
			if l.fn.earlier, err = segment.List(ctx, w.Store, PackedRoot); err != nil {
				return err
			}
		}
		l.absent()
		log, err = l.fn.earlier.Open(ctx, n, cfg.Lanes, cfg.Lane.RunID, l.noteCommit())
	}
	if err != nil {
		return fmt.Errorf("opening the lane's packed results: %w", err)
	}
	l.packer = &packer{log: log}
	return nil
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
			p := hive.Partition{Country: d.Country, Category: d.Category, Date: d.Date}
			for _, name := range d.Names {
				h, ok := byName[name]
				if !ok {
					continue
				}
				for j, r := range l.table.hosts[h].records {
					if l.table.files[r.file].in == p {
						l.table.hosts[h].records[j].mark = cfg.Layout.committed()
					}
				}
			}
		}
	}
}

// committed is what a commit says about the mark of a domain: with Both there must be
// one, too.
func (l Layout) committed() mark {
	if l == Both {
		return markUnknown
	}
	return markPresent
}

// pack makes the evidence of a visit.
func (l *laneRun) pack(r *result, got findings) {
	var ids []string
	for _, q := range r.requests {
		if q.row != nil {
			ids = append(ids, q.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	e, err := got.pack(ids)
	if err != nil {
		l.fn.Worker.Log.Warn("evidence_file_save_failed", "registrable_domain", r.host.name, "error", err.Error())
		return
	}
	r.evidence = e
}

// rowJSON returns the row as it travels to Complete.
func (q request) rowJSON() []byte {
	if q.row == nil {
		return nil
	}
	b, _ := json.Marshal(q.row) // a struct of texts and numbers always encodes
	return b
}

// done counts a visit once its results cannot be lost any more.
func (l *laneRun) done(r result) {
	var rows []table.Row
	for _, q := range r.requests {
		if q.row != nil && q.state == collected && !q.unmarked {
			rows = append(rows, *q.row)
		}
	}
	if len(rows) == 0 {
		l.count(r)
		return
	}
	if err := l.packer.pending.add(r.evidence, rows...); err != nil {
		r.requests = slices.Clone(r.requests)
		for i := range r.requests {
			r.requests[i].state = unfinished
		}
		l.fn.Worker.Log.Error("store_failed", "registrable_domain", r.host.name, "error", err.Error())
		l.count(r)
		return
	}
	r.evidence = evidence{}
	for i := range r.requests {
		r.requests[i].row = nil
	}
	l.packer.visits = append(l.packer.visits, r)
	l.flushFull()
}

// flushFull commits the segment if it is large or old enough.
func (l *laneRun) flushFull() {
	if l.packer != nil && l.packer.pending.full(l.fn.Config.SegmentAge) {
		l.flush()
	}
}

// flush commits what the lane has gathered. If that fails, its domains are not done.
func (l *laneRun) flush() {
	p := l.packer
	if p == nil || len(p.pending.rows) == 0 {
		return
	}
	err := l.resolveAll()
	if err == nil {
		err = p.pending.commit(l.within, p.log, segment.Commit{ForcedBy: l.fn.Config.ForceID})
	}
	if err == nil {
		err = l.fn.Worker.Resolve(l.within, l.segmentDeadLetter())
	} else {
		l.segmentFailed(err)
	}
	for _, r := range p.visits {
		if err != nil {
			for i := range r.requests {
				if q := &r.requests[i]; q.state == collected {
					q.state = unfinished
				}
			}
		}
		l.count(r)
	}
	p.pending, p.visits = pending{}, nil
}

// resolveAll removes the dead letters of earlier failures, before the commit: what is
// committed is not visited again, so they could stay for ever.
func (l *laneRun) resolveAll() error {
	w, cfg := l.fn.Worker, l.fn.Config
	for _, r := range l.packer.pending.rows {
		if err := w.Resolve(l.within, rowDeadLetter(cfg, r)); err != nil {
			return fmt.Errorf("removing the dead letter of an earlier failure: %w", err)
		}
	}
	return nil
}

func rowDeadLetter(cfg Config, r table.Row) ledger.DeadLetter {
	return domainDeadLetter(cfg, metadataKey(r.Partition(), r.RegistrableDomain), r.DomainID, r.RegistrableDomain)
}

// segmentDeadLetter is one dead letter for a lane: thousands, one for each domain, would
// tell a person no more.
func (l *laneRun) segmentDeadLetter() ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: l.fn.Config.Lane.RunID, Kind: "store_failed", Stage: "store", Retryable: true,
		Input: ledger.Input{Key: l.packer.log.Folder()}}
}

func (l *laneRun) segmentFailed(err error) {
	w := l.fn.Worker
	if errors.Is(err, segment.ErrTakenOver) {
		w.Stop(fmt.Errorf("%w: %w", lease.ErrLost, err))
		return
	}
	if l.within.Err() != nil {
		return // the lane's lease is lost: its domains stay open, and are not failures
	}
	w.Log.Error("store_failed", "folder", l.packer.log.Folder(), "domains", len(l.packer.pending.rows), "error", ledger.Redact(err.Error()))
	d := l.segmentDeadLetter()
	d.Error = err.Error()
	l.deadLetter(l.within, d)
}

// packLate commits the rows of domains about which the lanes could not decide.
func packLate(ctx context.Context, w *lane.Worker, cfg Config, files []UndecidedFile) error {
	var p pending
	seen := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Unmarked {
			if seen[d.Key] {
				continue
			}
			seen[d.Key] = true
			var r table.Row
			if err := json.Unmarshal(d.Row, &r); err != nil {
				return fmt.Errorf("the row of %s: %w", d.ID, err)
			}
			if err := w.Resolve(ctx, rowDeadLetter(cfg, r)); err != nil {
				return fmt.Errorf("removing the dead letter of an earlier failure: %w", err)
			}
			if err := p.add(evidence{}, r); err != nil { // it was not reached, so it has none
				return err
			}
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	log, err := segment.Open(ctx, w.Store, late, cfg.Lane.RunID, func(segment.Commit) {})
	if err != nil {
		return err
	}
	return p.commit(ctx, log, segment.Commit{ForcedBy: cfg.ForceID})
}
