package seed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[visitFn]())
	register.Iter1[lane.Batch]()
	register.Emitter2[string, FileOutcome]()
	beam.RegisterType(reflect.TypeFor[UnmarkedDomain]())
	register.Emitter1[Network]()
}

// FileOutcome is what a lane did for one raw file.
type FileOutcome struct {
	Finished int64            // distinct domain ids that are done or have a dead letter
	Held     int64            // whose rows stay, so that the next run requests them again
	Unmarked []UnmarkedDomain // one for each domain id that the lane could not decide about
}

// UnmarkedDomain is a domain whose metadata is stored without its completion mark: it
// failed below HTTP, and its lane had too few visits to tell an outage of this machine's
// network from a dead site.
type UnmarkedDomain struct {
	Key  string // of the metadata
	ID   string // domain id
	Host string
	Row  []byte // as JSON, if results are packed
}

// Visit merges each lane's URL records by host, which removes duplicates across files,
// and visits every host that some partition still needs.
//
// In: URL records by lane; those of broken files are dropped.
// Out: outcomes by file, the state of the network, tallies.
func Visit(s beam.Scope, cfg Config, records beam.PCollection) (outcomes, network, tallies beam.PCollection) {
	s = s.Scope("seed.Visit")
	return beam.ParDo3(s, &visitFn{doFn: doFn{Config: cfg}}, beam.GroupByKey(s, records))
}

type visitFn struct {
	doFn
	bundle *lane.Bundle
	out    visitOutput
}

// visitOutput is the emit functions of the call that Beam makes just now. A lane may end
// in a later call than the one that began it.
type visitOutput struct {
	file    func(string, FileOutcome)
	network func(Network)
	tally   func(ledger.Tally)
}

func (fn *visitFn) ProcessElement(ctx context.Context, n int, batches func(*lane.Batch) bool, emit func(string, FileOutcome), emitNetwork func(Network), emitTally func(ledger.Tally)) error {
	fn.out = visitOutput{emit, emitNetwork, emitTally}
	if fn.bundle == nil {
		fn.bundle = fn.Worker.NewBundle(!fn.Config.Lane.Running) // what FinishBundle emits is in no window of a stream
	}
	return fn.bundle.InTurn(ctx, func() error { return fn.runLane(ctx, n, batches) })
}

func (fn *visitFn) runLane(ctx context.Context, n int, batches func(*lane.Batch) bool) error {
	table := newHostTable()
	var b lane.Batch
	for batches(&b) {
		if err := table.add(b); err != nil {
			return err
		}
	}
	table.dropBroken()
	table.deadLast()
	// If the run is stopped before the lane begins, its files stay open.
	return fn.bundle.RunLane(ctx, n, fn.Config.Lanes, len(table.hosts), func(t ledger.Tally) { fn.out.tally(t) }, func(within context.Context, at *lane.Lane) error {
		l := laneRun{ctx: ctx, within: within, fn: fn, n: n, lane: at, quota: fn.Worker.Quota(n, fn.Config.Lanes),
			past: newPast(fn.Config, fn.Worker, table, at.Again), files: make([]FileOutcome, len(table.files))}
		var err error
		if l.sites, err = sitesOf(within, fn.Config, fn.Worker); err != nil {
			return err
		}
		if err := l.open(within); err != nil {
			return err
		}
		lane.Begin(within, at, fn.Config.pool(), slices.Values(table.hosts), l.visit, l.failed, l.merge, l.end)
		table.hosts = nil // the visits that still run have theirs
		return nil
	})
}

// FinishBundle waits for the last visits of all lanes.
func (fn *visitFn) FinishBundle(emit func(string, FileOutcome), emitNetwork func(Network), emitTally func(ledger.Tally)) error {
	fn.out = visitOutput{emit, emitNetwork, emitTally}
	b := fn.bundle
	fn.bundle = nil
	if b == nil {
		return nil
	}
	return b.Finish()
}

// laneRun is one lane at work. Only the ProcessElement goroutine may use its fields.
type laneRun struct {
	ctx    context.Context // of the ProcessElement call
	within context.Context // under the lane's lease
	fn     *visitFn
	n      int // of the lane
	lane   *lane.Lane
	past
	sites   *sites
	quota   lane.Quota
	packed  packedRows
	files   []FileOutcome
	network Network
	window  window
	waiting []result // visits about which the outage guard has to decide
	sink    sink
	visits  []result  // that are counted after the segment's commit
	kept    []keptRow // packed ones
}

// result is the result of a visit of a host.
type result struct {
	host     host
	requests []request
	fetched  bool
	answered string   // the host that did, "" for none
	network  web.Kind // why the host did not answer, empty for none
	doubt    web.Kind // as in findings
	waits    bool     // its results are stored, and the outage guard has not decided whether they may be marked
	cut      bool     // the stop or the host's hours cut the visit off, so open requests are not failures
	left     bool     // the run's limit is used up, so open requests are for the next run
	elapsed  time.Duration
	sum      ledger.Tally
	evidence evidence // if results are packed
	kept     []keptRow
}

// end emits what the lane did.
func (l *laneRun) end() {
	l.judge(l.within)
	l.packKept()
	l.flush()
	for i, o := range l.files {
		if !l.table.files[i].broken {
			l.fn.out.file(l.table.files[i].key, o)
		}
	}
	l.fn.out.network(l.network)
}

func (l *laneRun) visit(ctx context.Context, h host) result {
	defer l.fn.Worker.At(h.name)()
	r := result{host: h, requests: l.table.requests(h)}
	cfg, w := l.fn.Config, l.fn.Worker
	todo := 0
	for i := range r.requests {
		q := &r.requests[i]
		done := q.mark == markPresent
		var err error
		if q.mark == markUnknown && !l.fresh(ctx, q.in) {
			done, err = cfg.marked(ctx, w.Store, metadataKey(q.in, h.name))
		}
		switch {
		case ctx.Err() != nil:
			r.cut = true
			return r
		case err != nil:
			l.storeFailed(ctx, &r, q, fmt.Errorf("looking for the mark: %w", err))
		case done && !l.sites.held[h.name]:
			q.state = alreadyDone
			w.Log.Info("domain_already_processed", "domain_id", q.id, "category", q.in.Category, "date", q.in.Date)
		default:
			todo++
		}
	}
	if todo == 0 {
		w.Finished(ledger.Input{URL: homeOf(h.name)})
		return r
	}
	c := collector{cfg: cfg, w: w, name: h.name}
	c.client = c.newClient()
	if e := c.client.Abandoned(c.origin); e != nil && e.Hours != "" { // it is not begun, and uses up nothing of the limit
		r.cut = true
		return r
	}
	if r.left = !l.quota.Take(); r.left {
		return r
	}
	within, end, err := w.Unit(ctx, ledger.Input{URL: homeOf(h.name)})
	if err != nil {
		l.died(ctx, &r, err)
		return r
	}
	defer end()
	begin := time.Now()
	got, err := c.collect(within, r.requests)
	if err != nil { // nothing is stored or marked
		r.cut = true
		return r
	}
	r.fetched, r.answered, r.network, r.doubt = true, got.metadata.HostUsed, got.network, got.doubt
	r.waits = cfg.OutageThreshold > 0 && slices.Contains(outageBy, r.doubt)
	for i := range r.requests {
		q := &r.requests[i]
		if q.state == unfinished && ctx.Err() == nil {
			l.keep(ctx, &r, q, got)
		}
	}
	if err := l.openAgain(ctx, &r); err != nil {
		w.Log.Error("store_failed", "registrable_domain", h.name, "error", ledger.Redact(err.Error()))
	}
	l.pack(&r, got)
	r.elapsed, r.cut = time.Since(begin), ctx.Err() != nil
	r.sum.Add(got.sum)
	return r
}

// fresh reports whether a partition was empty before the run wrote to it, so that no
// earlier visit of the lane's hosts can have left evidence there.
func (l past) fresh(ctx context.Context, p hive.Partition) bool {
	return !l.again && l.listed.of(p).fresh(ctx, l.w.Store)
}

// keep stores the findings for one partition, and marks them unless the visit waits for the outage guard.
func (l *laneRun) keep(ctx context.Context, r *result, q *request, got findings) {
	stays, err := l.hold(ctx, r, q, &got)
	switch {
	case err != nil:
		l.storeFailed(ctx, r, q, fmt.Errorf("comparing with the row before: %w", err))
		return
	case stays:
		q.state = held
		return
	}
	err = l.sink.keep(ctx, q, got, r.host.name, l.fresh(ctx, q.in))
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		d := requestDeadLetter(l.fn.Config, *q, r.host.name)
		d.Kind, d.Stage, d.Error = "invalid_metadata", "validate", invalid.Error()
		if l.deadLetter(ctx, d) {
			q.state = deadLettered
		}
	case err != nil:
		l.storeFailed(ctx, r, q, err)
	default:
		if q.state = collected; !r.waits {
			l.mark(ctx, r, q)
		}
	}
}

func (l *laneRun) mark(ctx context.Context, r *result, q *request) {
	if err := l.sink.mark(ctx, metadataKey(q.in, r.host.name), q.id, r.host.name); err != nil {
		q.state = unfinished
		l.storeFailed(ctx, r, q, err)
	}
}

func (l *laneRun) storeFailed(ctx context.Context, r *result, q *request, err error) {
	w := l.fn.Worker
	if ctx.Err() != nil {
		return // the stop interrupted it: the request stays open, and is not a failure
	}
	w.Log.Error("store_failed", "domain_id", q.id, "error", ledger.Redact(err.Error()))
	if w.NotStored(err) {
		return
	}
	d := requestDeadLetter(l.fn.Config, *q, r.host.name)
	d.Kind, d.Stage, d.Error, d.Retryable = "store_failed", "store", err.Error(), true
	l.deadLetter(ctx, d)
}

// died gives up a host at which processes died.
func (l *laneRun) died(ctx context.Context, r *result, err error) {
	for i := range r.requests {
		q := &r.requests[i]
		if q.state != unfinished {
			continue
		}
		d := requestDeadLetter(l.fn.Config, *q, r.host.name)
		d.Kind, d.Stage, d.Error = ledger.Died, "visit", err.Error()
		if l.deadLetter(ctx, d) {
			q.state = deadLettered
		}
	}
}

// deadLetter reports whether a dead letter was written. If the store refuses even that,
// for a permanent reason, the run ends. A store that does not answer may answer later;
// the run's lease limits the wait.
func (l *laneRun) deadLetter(ctx context.Context, d ledger.DeadLetter) bool {
	err := l.fn.Worker.DeadLetter(ctx, d)
	if err == nil {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	l.fn.Worker.Log.Error("dead_letter_lost", "domain_id", d.Input.DomainID, "error", ledger.Redact(err.Error()))
	if !store.Retryable(err) {
		l.fn.Worker.Stop(fmt.Errorf("%w: %w", errStore, err))
	}
	return false
}

// errStore stops a run that would request pages that it cannot store.
var errStore = errors.New("the store accepts neither results nor dead letters: check its space and permissions, and run the same command again, which resumes from there")

func (l *laneRun) failed(h host, err error) result {
	r := result{host: h, requests: l.table.requests(h)}
	l.fn.Worker.Log.Error("visit_failed", "registrable_domain", h.name, "error", err.Error())
	for i := range r.requests {
		l.storeFailed(l.ctx, &r, &r.requests[i], err)
	}
	return r
}

// merge counts a visit, if the outage guard lets it pass.
func (l *laneRun) merge(r result) {
	if r.fetched {
		l.kept, r.kept = append(l.kept, r.kept...), nil
		l.guard(r)
		return
	}
	if !r.cut && !slices.ContainsFunc(r.requests, func(q request) bool { return q.state != alreadyDone }) {
		l.network.Done++
	}
	l.count(r)
}

// unreachableBy are the counts of unreachable hosts, by reason.
var unreachableBy = map[web.Kind]string{
	web.KindDNS: "hosts_unreachable_dns", web.KindConnect: "hosts_unreachable_connect", web.KindTLS: "hosts_unreachable_tls",
	web.KindTimeout: "hosts_unreachable_timeout", web.KindReset: "hosts_unreachable_reset",
}

// count adds a visit to the lane's counts and to its files' outcomes.
func (l *laneRun) count(r result) {
	part := ledger.Tally{Counts: map[string]int64{}}
	for _, s := range l.fileOutcomes(r) {
		part.Counts["domains_unique"]++
		switch {
		case s == alreadyDone:
			part.Counts["domains_already_done"]++
		case s == collected:
			part.Counts["domains_collected"]++
		case s == held:
			part.Counts["domains_held"]++
		case s == unfinished && r.cut:
		case s == unfinished && r.left:
			part.Counts[ledger.LeftByLimit]++
		default:
			part.Counts["domains_failed"]++
		}
	}
	part.Add(r.sum)
	for _, q := range r.requests {
		if q.state == collected {
			part.Counts["metadata_written"]++
		}
		if q.notOpen {
			part.Counts["results_not_open"]++
		}
	}
	if r.fetched {
		part.Counts["hosts_visited"]++
		if by, ok := unreachableBy[r.network]; ok {
			part.Counts["hosts_unreachable"]++
			part.Counts[by]++
		}
		part.Timings.Observe(r.elapsed)
	}
	l.lane.Count(part)
}

// fileOutcomes adds a visit to the outcomes of the files that name its host, and returns
// the state of each of the host's domain ids.
func (l *laneRun) fileOutcomes(r result) map[string]state {
	ids := map[string]state{}
	for _, rec := range r.host.records {
		f := l.table.files[rec.file]
		q := r.requests[slices.IndexFunc(r.requests, func(q request) bool { return q.in == f.in })]
		id := l.table.labels[rec.label]
		if s, ok := ids[id]; !ok || q.state > s {
			ids[id] = q.state
		}
		switch o := &l.files[rec.file]; {
		case q.state == collected && r.waits:
			o.Unmarked = append(o.Unmarked, UnmarkedDomain{Key: metadataKey(f.in, r.host.name), ID: q.id, Host: r.host.name, Row: q.rowJSON()})
		case q.state == held:
			o.Held++
		case q.state != unfinished:
			o.Finished++
		}
	}
	return ids
}

func metadataKey(p hive.Partition, registrable string) string {
	return p.DomainDir(registrable) + "/" + hive.Metadata
}
