package seed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() { beam.RegisterDoFn(reflect.TypeFor[resolveFn]()) }

const (
	// resolvers is how many names a process looks up at once.
	resolvers = 64
	// maxFoundAge is how long a visit uses what was found out about its host's name. Beam's
	// runners may keep it for hours before the visit.
	maxFoundAge = time.Hour
)

// byServer reports whether hosts are given to lanes by their server. In one lane there is
// nothing to give, and in a stream two windows must find the lane of a host by its name.
func (c Config) byServer() bool {
	return c.Lane.Polite.Servers.Delay > 0 && c.Lanes > 1 && !c.Lane.Running
}

// Resolve looks the hosts' names up and gives the hosts of a server to one lane, if the run
// tells servers apart. A host goes to the lane of its name where its server is not known or
// gets a rate. Domains that are finished are not looked up.
//
// In: URL records by lane of the host's name; those of broken files are dropped.
// Out: URL records by lane of the server, with what was found.
func Resolve(s beam.Scope, cfg Config, records beam.PCollection) beam.PCollection {
	if !cfg.byServer() {
		return records
	}
	s = s.Scope("seed.Resolve")
	return beam.ParDo(s, &resolveFn{doFn: doFn{Config: cfg}}, beam.GroupByKey(s, records))
}

type resolveFn struct {
	doFn
	batches batches
	earlier *segment.Index // packed results of earlier runs
}

func (fn *resolveFn) ProcessElement(ctx context.Context, n int, in func(*lane.Batch) bool, emit func(int, lane.Batch)) error {
	table := newHostTable()
	var b lane.Batch
	for in(&b) {
		if err := table.add(b); err != nil {
			return err
		}
	}
	table.dropBroken()
	within, release, again, err := fn.Worker.Shard(ctx, "resolve-", n, fn.Config.Lanes)
	if err != nil || within == nil {
		return err
	}
	defer release()
	p := newPast(fn.Config, fn.Worker, table, again)
	if fn.Config.Layout.Packs() {
		err = fn.readCommits(within, p, n)
	} else {
		p.listMarks(within)
	}
	if err != nil {
		return err
	}
	began := time.Now()
	all, err := fn.lookUp(within, p)
	if err != nil || all == nil {
		return err
	}
	fn.Worker.Log.Info("names_resolved", "lane", n, "names", len(all), "elapsed", time.Since(began))
	byFile := make([][]int, len(table.files))
	for i, h := range table.hosts {
		for _, r := range h.records {
			if of := byFile[r.file]; len(of) == 0 || of[len(of)-1] != i {
				byFile[r.file] = append(of, i)
			}
		}
	}
	for file, hosts := range byFile {
		out := fn.batches.to(table.files[file].key, fn.Config.Lanes, emit)
		for _, i := range hosts {
			h := table.hosts[i]
			for _, r := range h.records {
				if int(r.file) == file {
					out.addTo(all[i].lane, lane.URLRecord{Host: h.name, Label: table.labels[r.label], Index: r.index, Source: r.source, Found: all[i].text(r.mark)})
				}
			}
		}
		out.flush()
	}
	return nil
}

// readCommits notes which hosts have packed results. A commit of this run may be newer than
// what was listed.
func (fn *resolveFn) readCommits(ctx context.Context, p past, n int) error {
	if fn.earlier == nil || p.again {
		x, err := segment.List(ctx, fn.Worker.Store, PackedRoot)
		if err != nil {
			return err
		}
		fn.earlier = x
	}
	p.absent()
	note := p.noteCommit()
	for c, err := range fn.earlier.Shared(ctx, n, fn.Config.Lanes) {
		if err != nil {
			return err
		}
		note(c)
	}
	return nil
}

// lookUp returns what was found out about each host, nil if the run stops.
func (fn *resolveFn) lookUp(ctx context.Context, p past) ([]found, error) {
	ctx, cancel := fn.Worker.Context(ctx)
	defer cancel()
	all := make([]found, len(p.table.hosts))
	var pool errgroup.Group
	pool.SetLimit(resolvers)
	for i, h := range p.table.hosts {
		all[i].lane, all[i].again = lane.Of(h.name, fn.Config.Lanes), p.again
		if !fn.Worker.Proceed(ctx) {
			break
		}
		pool.Go(func() error {
			if p.finished(ctx, h) {
				return nil
			}
			a, server, ok := fn.Worker.Web.Resolve(ctx, h.name)
			if !ok {
				return nil // the visit looks it up
			}
			all[i].Addresses, all[i].at = a, time.Now()
			if name, rated := fn.Config.Lane.Polite.Servers.Key(server); server.IsValid() && !rated {
				all[i].lane = lane.Of(name, fn.Config.Lanes)
			}
			return nil
		})
	}
	_ = pool.Wait() // no function returns an error
	if fn.Worker.Stopped() {
		return nil, nil // the files stay open
	}
	return all, ctx.Err()
}

// finished looks for the marks that are not known yet, and reports whether the host needs no
// visit.
func (l past) finished(ctx context.Context, h host) bool {
	all := true
	for i := range h.records {
		r := &h.records[i]
		in := l.table.files[r.file].in
		if r.mark == markUnknown && l.fresh(ctx, in) {
			r.mark = markAbsent
		}
		if r.mark == markUnknown {
			switch done, err := l.cfg.marked(ctx, l.w.Store, metadataKey(in, h.name)); {
			case err != nil: // the visit looks again, and reports it
			case done:
				r.mark = markPresent
			default:
				r.mark = markAbsent
			}
		}
		all = all && r.mark == markPresent
	}
	return all
}

// found is what was found out about a host before its visit.
type found struct {
	web.Addresses
	at    time.Time // zero: it was not looked up
	again bool      // this run may have visited the host before
	lane  int
}

// text is the form in which it travels with a record that has this mark: the mark, what is
// true of the host, the time, and the addresses.
func (f found) text(m mark) string {
	out := []byte{byte(m), 0}
	if f.NotFound {
		out[1] |= 1
	}
	if f.again {
		out[1] |= 2
	}
	at := uint64(0)
	if !f.at.IsZero() {
		at = uint64(f.at.Unix())
	}
	out = binary.AppendUvarint(out, at)
	for _, a := range f.List {
		b := a.AsSlice()
		out = append(append(out, byte(len(b))), b...)
	}
	return string(out)
}

var errFound = errors.New("a URL record has a look-up that cannot be read")

func parseFound(text string) (f found, m mark, err error) {
	b := []byte(text)
	if len(b) < 3 || b[0] > byte(markPresent) {
		return f, 0, errFound
	}
	m, f.NotFound, f.again = mark(b[0]), b[1]&1 > 0, b[1]&2 > 0
	at, n := binary.Uvarint(b[2:])
	if n <= 0 {
		return f, 0, errFound
	}
	if at > 0 {
		f.at = time.Unix(int64(at), 0)
	}
	for b = b[2+n:]; len(b) > 0; {
		n := int(b[0])
		if n >= len(b) {
			return f, 0, errFound
		}
		a, ok := netip.AddrFromSlice(b[1 : 1+n])
		if !ok {
			return f, 0, errFound
		}
		f.List = append(f.List, a)
		b = b[1+n:]
	}
	return f, m, nil
}

// keepFound keeps what was found out about a host, and returns the mark of its record.
func (t *hostTable) keepFound(name, text string) (mark, error) {
	f, m, err := parseFound(text)
	t.again = t.again || f.again
	if err == nil && !f.at.IsZero() {
		if t.found == nil {
			t.found = map[string]found{}
		}
		t.found[name] = f
	}
	return m, err
}

// byRounds puts one host of each server first, then a second one of each, and so on. The
// visits of a server with very many hosts wait for each other, and all visits under way
// would be theirs while the hosts of other servers have not begun.
func (t *hostTable) byRounds(s polite.Servers) {
	if len(t.found) == 0 {
		return
	}
	round, of := make(map[string]int, len(t.hosts)), map[string]int{}
	for _, h := range t.hosts {
		f := t.found[h.name]
		if len(f.List) == 0 {
			continue
		}
		if name, rated := s.Key(f.List[0]); !rated {
			round[h.name] = of[name]
			of[name]++
		}
	}
	slices.SortStableFunc(t.hosts, func(a, b host) int { return cmp.Compare(round[a.name], round[b.name]) })
}

// doubtAbsent is for a lane that this run has worked at before: marks may have been written
// since the names were resolved.
func (t *hostTable) doubtAbsent() {
	for _, h := range t.hosts {
		for i := range h.records {
			if h.records[i].mark == markAbsent {
				h.records[i].mark = markUnknown
			}
		}
	}
}
