package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[listFn]())
	beam.RegisterDoFn(reflect.TypeFor[visitFn]())
	beam.RegisterDoFn(reflect.TypeFor[reportFn]())
	register.Emitter2[int, hostVisits]()
	register.Emitter2[string, outcome]()
	register.Iter1[hostVisits]()
	register.Iter1[outcome]()
}

// hostVisits has the providers on one host, which are crawled one after another.
type hostVisits struct {
	Name      string
	Session   string
	Providers []string
}

// outcome is what became of a provider in this run.
type outcome struct {
	Provider string
	State    string
	Reason   string
}

// List opens the session and chooses the providers that are crawled in it.
//
// Out: the hosts by lane (int, Host), spread evenly but for those that must be in one
// lane; tallies.
func List(s beam.Scope, cfg Config) (hosts, tallies beam.PCollection) {
	s = s.Scope("docs.List")
	return beam.ParDo2(s, &listFn{doFn{Config: cfg}}, beam.Impulse(s))
}

type listFn struct{ doFn }

// doFn is the part that the job's DoFns share.
type doFn struct {
	lane.DoFn
	Config Config
	db     *db.DB
}

// Setup implements Beam's.
func (d *doFn) Setup(ctx context.Context) (err error) {
	if err = d.Open(ctx, d.Config.Lane); err != nil {
		return err
	}
	d.db, err = d.Worker.DB(ctx, d.Config.DB, Migrate)
	return err
}

func (fn *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(int, hostVisits), emitTally func(ledger.Tally)) error {
	cfg, log := fn.Config, fn.Worker.Log
	if cfg.Retention >= 0 {
		n, err := sweepHandOff(ctx, fn.Worker.Store, time.Now().Add(-cmp.Or(cfg.Retention, DefaultRetention)))
		if err != nil {
			return err
		}
		log.Info("handoff_swept", "removed", n)
	}
	if err := fn.removeRequested(ctx); err != nil {
		return err
	}
	session, resumed, err := beginSession(ctx, fn.db, cfg.Lane.RunID, fn.Worker.Pacer.Clock.Now())
	if err != nil {
		return err
	}
	off, err := removal.Purged(ctx, fn.db)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.Off)) {
		if !slices.ContainsFunc(cfg.Policies, func(p policy.Policy) bool { return p.ProviderID == id }) { // nothing to crawl it by
			log.Warn("provider_left_out", "provider", id, "reason", cfg.Off[id])
		}
	}
	if !resumed {
		if err := fn.askContext7(ctx, session, off); err != nil {
			return err
		}
	}
	hosts, crawled, err := fn.hosts(ctx, session, off)
	if err != nil {
		return err
	}
	log.Info("session_started", "session", session, "resumed", resumed, "providers", crawled, "hosts", len(hosts))
	for i, h := range hosts {
		emit(i%cfg.lanes(), h)
	}
	fn.Worker.Emit(emitTally, ledger.Tally{Counts: map[string]int64{"providers": crawled}})
	return nil
}

// hosts returns the hosts of the providers that are crawled in this run, and how many providers these are.
func (fn *listFn) hosts(ctx context.Context, session string, off map[string]bool) (hosts []hostVisits, crawled int64, err error) {
	cfg, log := fn.Config, fn.Worker.Log
	has, err := onContext7(ctx, fn.db, fn.Worker.Pacer.Clock.Now())
	if err != nil {
		return nil, 0, err
	}
	var removed []string
	for _, p := range cfg.Policies {
		reason, ok := cfg.crawled(p, has)
		if off[p.ProviderID] {
			reason, ok = "it was purged and not enabled again", false
		}
		switch {
		case cfg.leftOut(p.ProviderID):
			continue
		case cfg.again(p.ProviderID) && !ok && cfg.Again != AgainAll:
			return nil, 0, fmt.Errorf("the hand-off of %s cannot be made again: %s", p.ProviderID, reason)
		case cfg.Only != nil && !ok:
			return nil, 0, fmt.Errorf("%s was chosen and cannot be crawled: %s", p.ProviderID, reason)
		case !ok:
			log.Info("provider_left_out", "provider", p.ProviderID, "reason", reason)
			if off[p.ProviderID] {
				removed = append(removed, p.ProviderID)
			}
			continue
		case p.Terms == policy.Unknown:
			log.Warn("terms_unknown", "provider", p.ProviderID, "what_to_do", "read its terms of service and write tos and tos_checked into its policy")
		}
		crawled++
		i := slices.IndexFunc(hosts, func(h hostVisits) bool { return h.Name == p.Host() })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, hostVisits{Name: p.Host(), Session: session})
		}
		hosts[i].Providers = append(hosts[i].Providers, p.ProviderID)
	}
	if crawled == 0 && len(removed) > 0 {
		return nil, 0, fmt.Errorf("no provider is left to crawl: %s: removed and not enabled again; pipeline docs --enable-provider=ID lets one be crawled again", strings.Join(removed, ", "))
	}
	return hosts, crawled, nil
}

// lanes returns a number from one to MaxHosts.
func (c Config) lanes() int { return min(max(c.Lanes, 1), MaxHosts) }

// Visit crawls each provider, with one request at a time to a host.
//
// In: the hosts by lane. Out: the outcome of each provider, under the
// session's id; tallies.
func Visit(s beam.Scope, cfg Config, hosts beam.PCollection) (visited, tallies beam.PCollection) {
	s = s.Scope("docs.Visit")
	return beam.ParDo2(s, &visitFn{doFn{Config: cfg}}, beam.GroupByKey(s, hosts))
}

type visitFn struct{ doFn }

type hostOutcome struct {
	host      hostVisits
	providers []outcome
}

func (fn *visitFn) ProcessElement(ctx context.Context, n int, values func(*hostVisits) bool, emit func(string, outcome), emitTally func(ledger.Tally)) error {
	var hosts []hostVisits
	for h := (hostVisits{}); values(&h); h = (hostVisits{}) {
		hosts = append(hosts, h)
	}
	err := fn.Worker.RunLane(ctx, n, fn.Config.lanes(), len(hosts), emitTally, func(within context.Context, l *lane.Lane) error {
		visit := func(ctx context.Context, h hostVisits) hostOutcome { return fn.visit(ctx, h, l.Count) }
		lane.Drain(within, l, max(1, MaxHosts/fn.Config.lanes()), slices.Values(hosts), visit, fn.failed, func(o hostOutcome) {
			for _, v := range o.providers {
				emit(o.host.Session, v)
			}
		})
		return nil
	})
	for _, h := range hosts { // an empty outcome, so that there is a report even if nothing was visited
		emit(h.Session, outcome{})
		break
	}
	return err
}

func (fn *visitFn) failed(h hostVisits, err error) hostOutcome {
	fn.Worker.Stop(fmt.Errorf("crawling %s: %w", h.Name, err))
	return hostOutcome{host: h}
}

// visit crawls a host's providers, and counts after each page.
func (fn *visitFn) visit(ctx context.Context, h hostVisits, count func(ledger.Tally)) hostOutcome {
	defer fn.Worker.At(h.Name)()
	out := hostOutcome{host: h}
	for _, id := range h.Providers {
		i := slices.IndexFunc(fn.Config.Policies, func(p policy.Policy) bool { return p.ProviderID == id })
		state, reason, err := fn.provider(ctx, h.Session, fn.Config.Policies[i], count)
		out.providers = append(out.providers, outcome{Provider: id, State: string(state), Reason: reason})
		if err != nil && ctx.Err() == nil {
			// A page cannot fail a visit: this is an error of the database, the store, or a bug.
			fn.Worker.Log.Error("provider_failed", "provider", id, "error", ledger.Redact(err.Error()))
			fn.Worker.Stop(fmt.Errorf("crawling %s: %w", id, err))
			break
		}
	}
	return out
}

// provider crawls one provider under its lease.
func (fn *visitFn) provider(ctx context.Context, session string, p policy.Policy, count func(ledger.Tally)) (State, string, error) {
	ttl, place := cmp.Or(fn.Config.LeaseTTL, leaseTTL), lease.InDB(fn.db)
	ctx, release, err := fn.Worker.Lease(ctx, place, ttl, true, "docs/provider/"+p.ProviderID)
	var held *lease.InUseError
	if errors.As(err, &held) {
		fn.Worker.Log.Warn("provider_busy", "lease", held.Name, "holder", held.Holder.String())
		return Open, "", nil
	}
	if err != nil || ctx == nil {
		return Open, "", err
	}
	defer release()
	var slots []string
	for i := range MaxHosts {
		slots = append(slots, fmt.Sprintf("docs/slot/%d", i))
	}
	ctx, leave, err := fn.Worker.Lease(ctx, place, ttl, false, slots...)
	if err != nil || ctx == nil {
		return Open, "", err
	}
	defer leave()
	off, err := removal.Purged(ctx, fn.db)
	if err != nil {
		return Open, "", err
	}
	if off[p.ProviderID] { // purged since this run began
		fn.Worker.Log.Warn("provider_left_out", "provider", p.ProviderID, "reason", "it was purged and not enabled again")
		return Done, "", nil
	}
	if full, err := fn.full(ctx, session); full || err != nil { // then nothing is requested
		count(ledger.Tally{Counts: ledger.Counts{ledger.LeftByLimit: 1}})
		return OutOfBudget, reasonLimit, err
	}
	in, err := enter(ctx, fn.db, session, p.ProviderID, fn.Config.Lane.RunID, fn.Worker.Pacer.Clock.Now())
	if err != nil {
		return Open, "", err
	}
	if fn.Config.again(p.ProviderID) && !in.stats.Again {
		if err := handOffAgain(ctx, fn.db, &in, p.ProviderID); err != nil {
			return Open, "", err
		}
	}
	if in.state == Done && in.stats.Purpose == fn.Config.Purpose {
		fn.Worker.Log.Info("provider_done_before", "provider", p.ProviderID, "session", session)
		return Done, "", nil
	}
	c := newCrawl(fn.Config, fn.Worker, fn.db, p, in)
	c.tally = count
	fn.Worker.Log.Info("provider_started", "provider", p.ProviderID, "host", p.Host(), "fresh", in.fresh)
	state, reason, err := c.run(ctx)
	if reason == reasonLimit && err == nil {
		var left int64
		if left, err = c.queued(ctx); err == nil {
			count(ledger.Tally{Counts: ledger.Counts{ledger.LeftByLimit: left}})
		}
	}
	fn.Worker.Log.Info("provider_ended", "provider", p.ProviderID, "state", state, "reason", reason)
	return state, reason, err
}

// full reports whether the run's limit is used up.
func (fn *visitFn) full(ctx context.Context, session string) (full bool, err error) {
	err = fn.db.QueryRowContext(ctx, `SELECT $2 > 0 AND requested >= $2 FROM docs_sessions WHERE id = $1`, session, fn.Config.Lane.Limit).Scan(&full)
	if err != nil {
		err = fmt.Errorf("reading how many pages the session has requested: %w", err)
	}
	return full, err
}

// queued returns how many pages of the provider wait in its frontier.
func (s *provider) queued(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_pages WHERE provider = $1 AND session = $2 AND status IN ($3, $4, $5, $6)`,
		s.id, s.part.session, Queued, RobotsCheck, Retry, RateLimited).Scan(&n)
	if err != nil {
		err = fmt.Errorf("counting the pages of %s that wait: %w", s.id, err)
	}
	return n, err
}

// ProvidersNotDone is the counter of the providers that were held, out of budget or
// unreachable at the end.
const ProvidersNotDone = "providers_not_done"

var errNobody = errors.New("none of the providers could be reached")

// keepsOpen reports whether the session must be continued for this provider. One that is held, unreachable, or left by the limit is
// crawled again in the next session.
func (v outcome) keepsOpen() bool {
	return State(v.State) == Open || State(v.State) == OutOfBudget && v.Reason != reasonLimit
}

// Conclude ends the session if no provider of this run is still open in it, and writes
// the report by provider to the store.
//
// In: the outcome of each provider, under the session's id. Out: tallies.
func Conclude(s beam.Scope, cfg Config, visited beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("docs.Conclude")
	return beam.ParDo(s, &reportFn{doFn{Config: cfg}}, beam.GroupByKey(s, visited))
}

type reportFn struct{ doFn }

func (fn *reportFn) ProcessElement(ctx context.Context, session string, values func(*outcome) bool, emitTally func(ledger.Tally)) error {
	outcomes := map[string]outcome{} // by provider
	for v := (outcome{}); values(&v); v = (outcome{}) {
		if v.Provider != "" {
			outcomes[v.Provider] = v
		}
	}
	tally := fn.count(outcomes)
	parts, err := parts(ctx, fn.db, session)
	if err != nil {
		return err
	}
	open, err := fn.staysOpen(ctx, outcomes, parts)
	if err != nil {
		return err
	}
	if !open {
		if err := writeManifest(ctx, fn.Worker.Store, session, parts, fn.Worker.Pacer.Clock.Now()); err != nil {
			return err
		}
		if err := endSession(ctx, fn.db, session, fn.Worker.Pacer.Clock.Now()); err != nil {
			return err
		}
	}
	limits := fn.Config.Alerts
	if limits == nil {
		limits = alert.Defaults(alert.PageRules()...)
	}
	r, err := buildReport(ctx, fn.db, fn.Config.Policies, session, limits)
	if err != nil {
		return err
	}
	for _, p := range r.Providers {
		fn.Worker.Log.Info("crawl_report", "provider", p.Provider, "text", p.Text())
		for _, warning := range p.Warnings {
			fn.Worker.Log.Warn("quality", "provider", p.Provider, "warning", warning)
		}
	}
	for _, a := range r.Alerts {
		fn.Worker.Log.Warn("alert", "name", a.Name, "provider", a.Provider, "value", a.Value, "limit", a.Limit, "text", a.Text)
	}
	if err := store.WriteJSON(ctx, fn.Worker.Store, reportKey(fn.Config.Lane.RunID), r); err != nil {
		return err
	}
	fn.Worker.Emit(emitTally, tally)
	return nil
}

// count stops the run as failed where it reached no provider at all.
func (fn *reportFn) count(outcomes map[string]outcome) ledger.Tally {
	tally := ledger.Tally{Counts: map[string]int64{}}
	var unreachable []string
	for _, o := range outcomes {
		switch state := State(o.State); {
		case state == Unreachable:
			unreachable = append(unreachable, o.Provider+": "+o.Reason)
			tally.Count(ProvidersNotDone, 1)
		case state == Held, state == OutOfBudget, state.notOpen():
			tally.Count(ProvidersNotDone, 1)
		}
	}
	if len(outcomes) > 0 && len(unreachable) == len(outcomes) {
		slices.Sort(unreachable)
		fn.Worker.Stop(fmt.Errorf("%w: %s; look at this machine's network and at the policies' seed_urls", errNobody, strings.Join(unreachable[:min(3, len(unreachable))], "; ")))
	}
	return tally
}

// staysOpen says whether the session has a provider that a later run has to crawl, of this run or an earlier one.
func (fn *reportFn) staysOpen(ctx context.Context, outcomes map[string]outcome, parts []providerHandOff) (bool, error) {
	off, err := removal.Purged(ctx, fn.db)
	if err != nil {
		return false, err
	}
	has, err := onContext7(ctx, fn.db, fn.Worker.Pacer.Clock.Now())
	if err != nil {
		return false, err
	}
	for _, o := range outcomes {
		if o.keepsOpen() {
			return true, nil
		}
	}
	known := map[string]bool{}
	for _, p := range fn.Config.Policies {
		known[p.ProviderID] = true
		_, visited := outcomes[p.ProviderID]
		if _, ok := fn.Config.crawled(p, has); ok && !off[p.ProviderID] && !fn.Config.leftOut(p.ProviderID) && !visited {
			return true, nil
		}
	}
	for _, p := range parts {
		if known[p.Provider] && !off[p.Provider] && (outcome{p.Provider, string(p.State), p.Reason}).keepsOpen() {
			return true, nil
		}
	}
	return false, nil
}
