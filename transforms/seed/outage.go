package seed

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"path"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Limits of the outage guard, in addition to Config.OutageThreshold.
const (
	outageWindow  = 200    // number of the latest visits that are judged while a lane works
	outageVisits  = 20     // fewer visits say nothing about this machine's network
	maxProbeHosts = 5      // hosts that are probed before a run ends with an outage
	maxProbeKeys  = 20_000 // objects of the store that are searched for such hosts
)

// outageBy are the failures to reach a host that can be caused by this machine.
var outageBy = []web.Kind{web.KindDNS, web.KindConnect, web.KindTLS, web.KindTimeout}

// Network says how the visits of a part of the run ended, below HTTP.
type Network struct {
	Visits   int64
	Failed   int64    // by one of outageBy
	TLS      int64    // of those, by certificate or handshake
	Done     int64    // hosts that an earlier run has done
	Answered []string // some hosts that answered
	Down     bool     // the lane itself has found an outage
}

func (n *Network) add(o Network) {
	n.Visits += o.Visits
	n.Failed += o.Failed
	n.TLS += o.TLS
	n.Done += o.Done
	n.Answered = append(n.Answered, o.Answered...)
	n.Answered = n.Answered[max(len(n.Answered)-maxProbeHosts, 0):]
	n.Down = n.Down || o.Down
}

// networkOf returns the network as one visit saw it.
func networkOf(name string, failure web.Kind) Network {
	n := Network{Visits: 1}
	switch {
	case slices.Contains(outageBy, failure):
		n.Failed = 1
		if failure == web.KindTLS {
			n.TLS = 1
		}
	case failure == "":
		n.Answered = []string{name}
	}
	return n
}

// suspect reports whether the share of failures is that of an outage.
func (n Network) suspect(threshold float64) bool {
	return threshold > 0 && n.Visits >= outageVisits && float64(n.Failed) >= threshold*float64(n.Visits)
}

// cause returns the error with which a run ends in an outage.
func (n Network) cause() error {
	if 2*n.TLS > n.Failed {
		return ErrOutageTLS
	}
	return ErrOutage
}

// The errors that stop a run whose own network is down.
var (
	ErrOutage    = errors.New("nearly every one of the last visits failed by DNS, connect, TLS or time-out, and no host that answered before answers a probe: this machine's network looks down; nothing was marked for those domains, so check the network and run the same command again; if it works and those sites really are gone, --outage-threshold=0 records them")
	ErrOutageTLS = errors.New("nearly every one of the last visits failed by TLS, and no host that answered before answers a probe: this machine cannot verify certificates, as behind a proxy that inspects connections and whose certificate authority is not installed; nothing was marked for those domains, so name a file of the authorities in SSL_CERT_FILE and run the same command again; if those sites really are broken, --outage-threshold=0 records them")
)

// down decides whether a suspect network is really down. It requests the robots.txt of
// hosts that answered before: one answer shows that the network works. If no such host
// is known, hosts that earlier runs have done count as answers. failed are the hosts
// that have just failed.
func down(ctx context.Context, w *lane.Worker, cfg Config, n Network, failed map[string]bool) bool {
	if !n.suspect(cfg.OutageThreshold) {
		return false
	}
	hosts := slices.Clone(n.Answered)
	for _, h := range answeredBefore(ctx, w, failed) {
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	hosts = hosts[:min(len(hosts), maxProbeHosts)]
	if len(hosts) == 0 {
		return float64(n.Failed) >= cfg.OutageThreshold*float64(n.Visits+n.Done)
	}
	answers := make(chan bool, len(hosts))
	for _, h := range hosts {
		go func() { answers <- probe(ctx, w, cfg, h) }()
	}
	works := false
	for range hosts {
		works = <-answers || works
	}
	w.Log.Warn("network_probed", "failed", n.Failed, "visits", n.Visits, "hosts", hosts, "answered", works)
	return !works
}

func probe(ctx context.Context, w *lane.Worker, cfg Config, host string) bool {
	c := collector{cfg: cfg, w: w, name: host}
	c.client = c.newClient()
	defer c.client.Close()
	request := func() exchange {
		return c.get(ctx, polite.Request{URL: c.origin.String() + "/robots.txt", Accept: acceptRobots, Timeout: robotsTimeout, MaxBytes: maxRobots,
			MaxRedirects: maxRedirects, Invited: true, Once: true})
	}
	f := request()
	if slices.Contains(outageBy, f.kind) && !cfg.Collect.StrictHosts {
		byTLS := slices.DeleteFunc(others(host, nil), func(u *url.URL) bool { return u.Scheme != "https" })
		if other, ok := c.otherHost(f, byTLS, request); ok {
			f = other
		}
	}
	asked := f.kind != abandonedByCrawlDelay && f.kind != abandonedByRetryAfter
	return asked && !slices.Contains(outageBy, f.kind)
}

// answeredBefore finds a few hosts in the store that answered an earlier visit: those
// with a robots.txt as evidence. An error of the listing only makes them fewer, which is
// harmless: they only serve as probes.
func answeredBefore(ctx context.Context, w *lane.Worker, failed map[string]bool) (hosts []string) {
	seen := 0
	for o, err := range w.Store.List(ctx, "processing/") {
		if seen++; err != nil || seen > maxProbeKeys || len(hosts) == maxProbeHosts {
			return hosts
		}
		host := path.Base(path.Dir(o.Key))
		if path.Base(o.Key) == "robots.txt" && !failed[host] && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// outageCounts reports an outage to the launcher.
func (n Network) outageCounts(sum *ledger.Tally) {
	sum.Count(ledger.Outage, 1)
	if errors.Is(n.cause(), ErrOutageTLS) {
		sum.Count(ledger.OutageTLS, 1)
	}
}

// window is the network of a lane's latest outageWindow visits.
type window struct {
	last [outageWindow]Network // a ring
	next int
	now  Network
}

// add adds a visit and returns the window's network.
func (w *window) add(v Network) Network {
	v.Answered = nil // the lane has its own list
	old := w.last[w.next]
	w.now.Visits += v.Visits - old.Visits
	w.now.Failed += v.Failed - old.Failed
	w.now.TLS += v.TLS - old.TLS
	w.last[w.next] = v
	w.next = (w.next + 1) % outageWindow
	return w.now
}

// guard lets a visit pass, or holds it back without a mark while it may have failed because of this machine's network.
func (l *laneRun) guard(r result) {
	one := networkOf(cmp.Or(r.answered, r.host.name), r.doubt)
	l.network.add(one)
	now := l.window.add(one)
	if r.waits {
		l.waiting = append(l.waiting, r)
	} else {
		l.done(r)
	}
	if now.Visits < outageWindow || l.fn.Worker.Stopped() {
		return
	}
	if now.suspect(l.fn.Config.OutageThreshold) {
		now.Done, now.Answered = l.network.Done, l.network.Answered
		if l.isDown(l.ctx, now) {
			l.network.Down = true
			l.fn.Worker.Stop(now.cause())
			return
		}
		l.window = window{} // the next check is after a whole window
	}
	l.release(func(result) bool { return true })
}

// isDown reports whether this process's network is down, and then stops the run.
func (l *laneRun) isDown(ctx context.Context, n Network) bool {
	ctx, cancel := l.fn.Worker.Context(ctx)
	defer cancel()
	failed := map[string]bool{}
	for _, r := range l.waiting {
		failed[r.host.name] = true
	}
	return down(ctx, l.fn.Worker, l.fn.Config, n, failed) && ctx.Err() == nil
}

// judge decides at the lane's end about visits that still wait. A lane with too few visits
// leaves the decision to Complete, which sees the visits of all lanes, except about hosts
// that answered by http: Complete has no evidence.
func (l *laneRun) judge(ctx context.Context) {
	if n := l.network; len(l.waiting) > 0 && !n.Down && !l.fn.Worker.Stopped() {
		if few := n.Visits < outageVisits; few || !l.isDown(ctx, n) {
			l.release(func(r result) bool { return !few || r.network == "" })
		} else {
			l.network.Down = true
		}
	}
	for _, r := range l.waiting {
		l.count(r)
	}
	l.waiting = nil
}

// release marks some of the visits that wait.
func (l *laneRun) release(some func(result) bool) {
	waiting := l.waiting
	l.waiting = nil
	for _, r := range waiting {
		if r.waits = !some(r); r.waits {
			l.waiting = append(l.waiting, r)
			continue
		}
		for i := range r.requests {
			if q := &r.requests[i]; q.state == collected {
				l.mark(l.ctx, &r, q)
			}
		}
		l.done(r)
	}
}
