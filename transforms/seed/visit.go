package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
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
	register.Emitter2[string, Visited]()
	register.Emitter1[Network]()
}

// Visited is what a lane did for one raw file.
type Visited struct {
	Finished int64    // distinct domain ids that are done or wait for a person
	Held     []string // metadata whose marks the outage guard holds back (heldMark), one for each of the file's domain ids
}

// Visit merges each lane's mentions by host, which is the deduplication across
// files, and collects every host that some partition still lacks.
//
// In: mentions by lane; those of broken files are dropped.
// Out: what was done for each file, how the network was, encoded tallies.
func Visit(s beam.Scope, cfg Config, mentions beam.PCollection) (visited, network, tallies beam.PCollection) {
	s = s.Scope("seed.Visit")
	return beam.ParDo3(s, &visitFn{Config: cfg}, beam.GroupByKey(s, mentions))
}

type visitFn struct {
	Config Config
	w      *lane.Worker
}

func (fn *visitFn) Setup(ctx context.Context) (err error) {
	fn.w, err = lane.Open(ctx, fn.Config.Lane)
	return err
}

func (fn *visitFn) ProcessElement(ctx context.Context, n int, batches func(*lane.Batch) bool, emit func(string, Visited), emitNetwork func(Network), emitTally func([]byte)) error {
	roll := newRoll()
	var b lane.Batch
	for batches(&b) {
		if err := roll.add(b); err != nil {
			return err
		}
	}
	roll.dropBroken()
	within, release, held, err := fn.w.Hold(ctx, n, fn.Config.Lanes)
	if err != nil {
		return err
	}
	defer release()
	if !held { // stopped while it waited: its files stay open
		return lane.EmitPart(fn.w, emitTally, ledger.Tally{})
	}
	fn.w.Enter()
	defer fn.w.Leave()
	l := laneRun{ctx: ctx, fn: fn, roll: roll, files: make([]Visited, len(roll.files)), progress: fn.w.Progress(n, len(roll.hosts))}
	lane.Drain(within, fn.w, fn.Config.pool(), l.hosts(), l.visit, l.failed, l.merge)
	l.judge(within)
	l.progress.End(ctx, l.sum)
	for i, v := range l.files {
		if !roll.files[i].broken {
			emit(roll.files[i].key, v)
		}
	}
	emitNetwork(l.network)
	return lane.EmitCounted(fn.w, emitTally, l.sum)
}

// wish is a partition that asks for a host, by its first record.
type wish struct {
	in    hive.Partition
	id    string // domain id of the first record
	file  string
	index int
	state state
	held  bool
}

type state int

const (
	open        state = iota // not done: its files stay open
	alreadyDone              // by an earlier run or try
	collected
	waits // for a person, with a dead letter
)

// wishes groups a host's asks by partition; the first record of a partition,
// by path, then index, speaks for it.
func (r *roll) wishes(h host) []wish {
	asks := slices.Clone(h.asks)
	slices.SortFunc(asks, func(a, b ask) int {
		return cmp.Or(strings.Compare(r.files[a.file].key, r.files[b.file].key), cmp.Compare(a.index, b.index))
	})
	var out []wish
	for _, a := range asks {
		f := r.files[a.file]
		if !slices.ContainsFunc(out, func(w wish) bool { return w.in == f.in }) {
			out = append(out, wish{in: f.in, id: r.labels[a.label] + ":" + h.name, file: f.key, index: a.index})
		}
	}
	return out
}

// laneRun is one lane at work. Its fields are touched from the ProcessElement goroutine only.
type laneRun struct {
	ctx      context.Context // of the ProcessElement call
	fn       *visitFn
	roll     *roll
	files    []Visited
	sum      ledger.Tally
	network  Network
	window   window
	held     []result
	progress *lane.Progress

	partitions struct { // of the visits, which are side by side
		sync.Mutex
		fresh map[hive.Partition]bool
	}
}

type result struct {
	host    host
	wishes  []wish
	fetched bool
	network web.Kind // why the host did not answer, empty for none
	cut     bool     // by the stop: what is open is no failure
	elapsed time.Duration
	sum     ledger.Tally
}

func (l *laneRun) hosts() iter.Seq[host] { return slices.Values(l.roll.hosts) }

func (l *laneRun) visit(ctx context.Context, h host) result {
	r := result{host: h, wishes: l.roll.wishes(h)}
	cfg, w := l.fn.Config, l.fn.w
	todo := 0
	for i := range r.wishes {
		wi := &r.wishes[i]
		done, err := cfg.marked(ctx, w.Store, metadataKey(wi.in, h.name))
		switch {
		case ctx.Err() != nil:
			r.cut = true
			return r
		case err != nil:
			l.storeFailed(ctx, &r, wi, fmt.Errorf("looking for the mark: %w", err))
		case done:
			wi.state = alreadyDone
			w.Log.Info("domain_already_processed", "domain_id", wi.id, "category", wi.in.Category, "date", wi.in.Date)
		default:
			todo++
		}
	}
	if todo == 0 {
		return r
	}
	begin := time.Now()
	c := collector{cfg: cfg, w: w}
	got, err := c.collect(ctx, h.name, r.wishes)
	if err != nil { // nothing is stored, nothing is marked
		r.cut = true
		return r
	}
	r.fetched, r.network = true, got.network
	for i := range r.wishes {
		wi := &r.wishes[i]
		if wi.state == open && ctx.Err() == nil {
			l.keep(ctx, &r, wi, got)
		}
	}
	r.elapsed, r.cut = time.Since(begin), ctx.Err() != nil
	r.sum.Add(got.sum)
	return r
}

// fresh says that nothing lay in a partition before this lane wrote there, so
// that no killed or earlier try can have left evidence.
func (l *laneRun) fresh(ctx context.Context, p hive.Partition) bool {
	l.partitions.Lock()
	defer l.partitions.Unlock()
	if was, known := l.partitions.fresh[p]; known {
		return was
	}
	fresh := true
	for range l.fn.w.Store.List(ctx, path.Dir(p.DomainDir("any"))+"/") { //nolint:errcheck // an error counts as an object: evidence is removed then that may not be there
		fresh = false
		break
	}
	if l.partitions.fresh == nil {
		l.partitions.fresh = map[hive.Partition]bool{}
	}
	l.partitions.fresh[p] = fresh
	return fresh
}

// keep writes what was collected to one partition, the mark last.
func (l *laneRun) keep(ctx context.Context, r *result, wi *wish, got findings) {
	w, cfg := l.fn.w, l.fn.Config
	letter := letterOfWish(cfg, *wi, r.host.name)
	err := got.store(ctx, w, cfg, *wi, r.host.name, l.fresh(ctx, wi.in))
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		letter.Kind, letter.Stage, letter.Error = "invalid_metadata", "validate", invalid.Error()
		if l.letter(ctx, letter) {
			wi.state = waits
		}
		return
	case err != nil:
		l.storeFailed(ctx, r, wi, err)
		return
	}
	if cfg.OutageThreshold > 0 && slices.Contains(outageBy, r.network) {
		wi.state, wi.held = collected, true
		return
	}
	if err := l.mark(ctx, *wi, r.host.name); err != nil {
		l.storeFailed(ctx, r, wi, err)
		return
	}
	wi.state = collected
}

// markDone says that a partition's metadata object key is whole, and that no older
// run's dead letter about it holds any more. The letter goes first: nobody looks at
// a marked domain again, so one that stayed would stay for good.
func markDone(ctx context.Context, w *lane.Worker, cfg Config, key, id, name string) error {
	if err := w.Forgive(ctx, letterOfDomain(cfg, key, id, name)); err != nil {
		return fmt.Errorf("removing the dead letter of an earlier failure: %w", err)
	}
	if err := store.Retry(ctx, func() error {
		return w.Store.Put(ctx, key+hive.Success, strings.NewReader(""), cfg.marker())
	}); err != nil {
		return fmt.Errorf("writing %s: %w", key+hive.Success, err)
	}
	return nil
}

func (l *laneRun) mark(ctx context.Context, wi wish, name string) error {
	return markDone(ctx, l.fn.w, l.fn.Config, metadataKey(wi.in, name), wi.id, name)
}

func (l *laneRun) storeFailed(ctx context.Context, r *result, wi *wish, err error) {
	w := l.fn.w
	if ctx.Err() != nil {
		return // stopped in the middle: open, and no failure
	}
	w.Log.Error("store_failed", "domain_id", wi.id, "error", ledger.Redact(err.Error()))
	letter := letterOfWish(l.fn.Config, *wi, r.host.name)
	letter.Kind, letter.Stage, letter.Error, letter.Retryable = "store_failed", "store", err.Error(), true
	l.letter(ctx, letter)
}

// letter says whether a dead letter is kept. A store that does not even take
// that, for a reason that does not pass, ends the run. One that does not answer
// may come back; the run's lease gives it its time.
func (l *laneRun) letter(ctx context.Context, d ledger.DeadLetter) bool {
	err := l.fn.w.DeadLetter(ctx, d)
	if err == nil {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	l.fn.w.Log.Error("dead_letter_lost", "domain_id", d.Input.DomainID, "error", ledger.Redact(err.Error()))
	if !store.Retryable(err) {
		l.fn.w.Stop(fmt.Errorf("%w: %w", ErrStore, err))
	}
	return false
}

// ErrStore stops a run that would ask sites for what it cannot keep.
var ErrStore = errors.New("the store takes neither results nor dead letters: see to its space and permissions, and run the same command again, which goes on from there")

func (l *laneRun) failed(h host, err error) result {
	r := result{host: h, wishes: l.roll.wishes(h)}
	l.fn.w.Log.Error("visit_failed", "registrable_domain", h.name, "error", err.Error())
	for i := range r.wishes {
		l.storeFailed(l.ctx, &r, &r.wishes[i], err)
	}
	return r
}

// merge counts a visit and passes its failures through the outage guard.
func (l *laneRun) merge(r result) {
	if !r.fetched {
		if !r.cut && !slices.ContainsFunc(r.wishes, func(w wish) bool { return w.state != alreadyDone }) {
			l.network.Done++
		}
		l.settle(r, false)
		return
	}
	cfg := l.fn.Config
	one := visited(r.host.name, r.network)
	l.network.add(one)
	now := l.window.add(one)
	if one.Failed == 0 || cfg.OutageThreshold <= 0 {
		l.settle(r, false)
	} else {
		l.held = append(l.held, r)
	}
	if now.Visits < outageWindow || l.fn.w.Stopped() {
		return
	}
	if !now.suspect(cfg.OutageThreshold) {
		l.releaseHeld()
		return
	}
	now.Done, now.Answered = l.network.Done, l.network.Answered
	if l.isDown(l.ctx, now) {
		l.network.Down = true
		l.fn.w.Stop(now.cause())
		return
	}
	l.window = window{} // the next look is a window from now
	l.releaseHeld()
}

// isDown judges this process's network, which the run stops for.
func (l *laneRun) isDown(ctx context.Context, n Network) bool {
	ctx, cancel := l.fn.w.Context(ctx)
	defer cancel()
	failed := map[string]bool{}
	for _, r := range l.held {
		failed[r.host.name] = true
	}
	return down(ctx, l.fn.w, l.fn.Config, n, failed) && ctx.Err() == nil
}

// judge decides at the lane's end over what is still held. A lane with too few
// visits to say hands it to Complete, which sees those of all lanes.
func (l *laneRun) judge(ctx context.Context) {
	if n := l.network; len(l.held) > 0 && n.Visits >= outageVisits && !n.Down && !l.fn.w.Stopped() {
		if l.network.Down = l.isDown(ctx, n); !l.network.Down {
			l.releaseHeld()
		}
	}
	for _, r := range l.held {
		l.settle(r, true)
	}
	l.held = nil
}

func (l *laneRun) releaseHeld() {
	for _, r := range l.held {
		for i := range r.wishes {
			if wi := &r.wishes[i]; wi.held {
				if err := l.mark(l.ctx, *wi, r.host.name); err != nil {
					wi.state = open
					l.storeFailed(l.ctx, &r, wi, err)
				}
			}
		}
		l.settle(r, false)
	}
	l.held = nil
}

// settle writes a visit into the lane's figures and its files' outcomes.
func (l *laneRun) settle(r result, held bool) {
	ids := map[string]state{}
	for _, a := range r.host.asks {
		f := l.roll.files[a.file]
		i := slices.IndexFunc(r.wishes, func(w wish) bool { return w.in == f.in })
		wi := r.wishes[i]
		id := l.roll.labels[a.label]
		if s, ok := ids[id]; !ok || rank(wi.state) > rank(s) {
			ids[id] = wi.state
		}
		switch {
		case held && wi.held:
			mark := heldMark{metadataKey(f.in, r.host.name), wi.id, r.host.name}
			l.files[a.file].Held = append(l.files[a.file].Held, mark.String())
		case wi.state != open:
			l.files[a.file].Finished++
		}
	}
	part := ledger.Tally{Counts: map[string]int64{}}
	for _, s := range ids {
		part.Counts["domains_unique"]++
		switch {
		case s == alreadyDone:
			part.Counts["domains_already_done"]++
		case s == collected:
			part.Counts["domains_collected"]++
		case s == open && r.cut:
		default:
			part.Counts["domains_failed"]++
		}
	}
	part.Add(r.sum)
	for _, w := range r.wishes {
		if w.state == collected {
			part.Counts["metadata_written"]++
		}
	}
	if r.fetched {
		part.Counts["hosts_visited"]++
		if slices.Contains(unreachableBy, r.network) {
			part.Counts["hosts_unreachable"]++
			part.Counts["hosts_unreachable_"+string(r.network)]++
		}
		part.Timings.Observe(r.elapsed)
	}
	l.sum.Add(part)
	l.fn.w.Count(part)
	l.progress.Report(l.ctx, l.sum)
}

// rank orders states by what a report must not hide.
func rank(s state) int {
	return map[state]int{alreadyDone: 0, collected: 1, waits: 2, open: 3}[s]
}

func metadataKey(p hive.Partition, registrable string) string {
	return p.DomainDir(registrable) + "/domain_metadata.json"
}
