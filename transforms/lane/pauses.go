package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// minKeptPause is the shortest pause that Pauses keeps. Retries wait less, and a
// Crawl-delay of one second is what is left of it when it was read.
const minKeptPause = 700 * time.Millisecond

// Pauses is a polite.Memory in the store, for a job with so many hosts that none may cost a store call. Only pauses that a host asked for
// are written, and read once by LoadPauses. Every other host gets one gap from the start of the process.
type Pauses struct {
	polite.None
	w *Worker

	mu      sync.Mutex
	loaded  bool
	begun   time.Time            // from when each host gets its gap
	earlier map[string]time.Time // by site: until when, as an earlier process left it
	written map[string]time.Time // by site: what this process has in the store
}

// maxPauseObject is the size of the largest object that is read as a pause.
const maxPauseObject = 1 << 20

// pauseObject is a pause in the store.
type pauseObject struct {
	Until time.Time `json:"until"`
}

func (p *Pauses) prefix() string { return "pauses/" + p.w.cfg.Job + "/" }

func (p *Pauses) key(site string) string { return p.prefix() + url.QueryEscape(site) + ".json" }

// LoadPauses reads, once in the process, the pauses that earlier processes left, and
// removes those that are over.
func (w *Worker) LoadPauses(ctx context.Context) error {
	p := &w.Pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded {
		return nil
	}
	now := w.Pacer.Clock.Now()
	p.begun, p.earlier, p.written = now, map[string]time.Time{}, map[string]time.Time{}
	for o, err := range w.Store.List(ctx, p.prefix()) {
		if err != nil {
			return fmt.Errorf("listing the pauses of an earlier run: %w", err)
		}
		site, err := url.QueryUnescape(strings.TrimSuffix(path.Base(o.Key), ".json"))
		if err != nil {
			continue // not ours
		}
		text, err := store.ReadAll(ctx, w.Store, o.Key, maxPauseObject)
		var kept pauseObject
		_ = json.Unmarshal(text, &kept) // zero for an object that is none of ours
		switch {
		case errors.Is(err, store.ErrNotExist): // another worker removed it
		case err != nil:
			return fmt.Errorf("reading the pause %s of an earlier run: %w", o.Key, err)
		case kept.Until.After(now):
			p.earlier[site], p.written[site] = kept.Until, kept.Until
		default:
			p.remove(ctx, site)
		}
	}
	p.loaded = true
	return nil
}

// remove is for a pause that is over. An object that stays is removed by a later run.
func (p *Pauses) remove(ctx context.Context, site string) {
	if err := p.w.Store.Delete(ctx, p.key(site)); err != nil {
		p.w.Log.Warn("pause_not_removed", "site", site, "error", ledger.Redact(err.Error()))
	}
}

// Next implements polite.Memory.
func (p *Pauses) Next(_ context.Context, site string) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.begun.Add(p.gap(site))
	if until := p.earlier[site]; until.After(next) {
		next = until
	}
	if !next.After(p.w.Pacer.Clock.Now()) {
		return time.Time{}, nil
	}
	return next, nil
}

// gap is the pause between two requests to a site that asks for none.
func (p *Pauses) gap(site string) time.Duration {
	h, _ := p.w.cfg.Polite.Hosts.For(site)
	return max(p.w.cfg.Polite.HostDelay, h.Delay)
}

// Requested implements polite.Memory: it keeps a gap that robots.txt lengthened.
func (p *Pauses) Requested(ctx context.Context, site string, now, next time.Time) (wait time.Duration, err error) {
	if next.Sub(now) > p.gap(site) {
		return 0, p.Paused(ctx, site, next)
	}
	return 0, nil
}

// Paused implements polite.Memory. Where the store does not take the pause, the log
// has a warning: it holds in this process all the same.
func (p *Pauses) Paused(ctx context.Context, site string, until time.Time) error {
	now := p.w.Pacer.Clock.Now()
	if until.Sub(now) < minKeptPause {
		return nil
	}
	var over []string
	p.mu.Lock()
	for s, t := range p.written {
		if s != site && !t.After(now) {
			delete(p.written, s)
			over = append(over, s)
		}
	}
	p.written[site] = until
	p.mu.Unlock()
	for _, s := range over {
		p.remove(ctx, s)
	}
	if err := store.WriteJSON(ctx, p.w.Store, p.key(site), pauseObject{until}); err != nil && ctx.Err() == nil {
		p.w.Log.Warn("pause_not_written", "site", site, "error", ledger.Redact(err.Error()))
	}
	return nil
}
