package polite

import (
	"context"
	"net/netip"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite/turns"
)

// Paths for Share that are no files.
const (
	OwnTurns = "auto" // the file of the user's own, turns.DefaultPath
	NoTurns  = "off"
)

// Share makes the processes of this machine that were given the same path take turns at
// the sites of a web, see Pacer.Turns and Pacer.Web. With "" or NoTurns nothing is shared.
// The errors are those of turns.Open: err for a file that was named, alone for the user's
// own, without which a job still keeps its pauses.
func (p *Pacer) Share(path, web string) (alone, err error) {
	switch path {
	case "", NoTurns:
		return nil, nil
	case OwnTurns:
		p.Web = web
		p.Turns, alone = turns.Open(turns.DefaultPath())
		return alone, nil
	}
	p.Web = web
	p.Turns, err = turns.Open(path)
	return nil, err
}

// place is the right to send a site a request: this process has the site's turn, and that
// of its server.
type place struct {
	c       *Client
	u       *url.URL
	s       *site
	r       Request
	address func(context.Context) netip.Addr // looks the server up
	key     string                           // of Pacer.Turns

	server *serverTurn
	taken  bool          // of Pacer.Turns
	known  turns.Times   // what the other processes are told
	flies  string        // a key of Pacer.flying
	again  time.Duration // after which this one asks again for the turn, of which it had no use yet
	lost   bool          // before the request was sent
}

// enter waits for the gap and the pauses of a site, and then for the turn of its server,
// which other sites use while this one waits, and for its own among all processes.
func (at *place) enter(ctx context.Context) error {
	c := at.c
	for {
		wait, err := c.mayAsk(ctx, at.u, at.s, at.r)
		if err == nil && wait <= 0 {
			wait = at.fly()
		}
		if err == nil && wait <= 0 && c.Pacer.Servers.Delay > 0 {
			if at.server, err = c.enterServer(ctx, at.address(ctx)); err == nil {
				wait, err = c.mayAsk(ctx, at.u, at.s, at.r) // it may have been told to pause meanwhile, or the run to stop
			}
		}
		if err == nil && wait <= 0 && c.Pacer.Turns != nil {
			wait = at.take()
			at.again = wait
		}
		if err == nil && wait <= 0 {
			return nil
		}
		at.leave()
		if err == nil {
			err = c.wait(ctx, wait) // another request may have been answered with a longer pause meanwhile
		}
		if err != nil {
			return err
		}
	}
}

// kept reports whether the place is still this process's: another one may have been given it
// while this one waited for something else, or was stopped.
func (at *place) kept() bool {
	return (!at.taken || at.c.Pacer.Turns.Keep(at.key)) && at.server.kept()
}

// leave gives the place to another request, of this process or another one.
func (at *place) leave() {
	if at.taken {
		at.c.Pacer.Turns.Give(at.key, at.known, at.again)
	} else {
		at.c.Pacer.tell(at.key, at.known)
	}
	at.land()
	at.server.leave()
	at.server, at.taken, at.known, at.again = nil, false, turns.Times{}, 0
}

// end begins the pauses of the site and its server; the request was answered. It is called
// with Pacer.mu locked.
func (at *place) end(now time.Time) {
	at.known = turns.Times{Ended: at.s.ended, Next: at.s.next, Paused: at.s.paused}
	at.server.end(now)
}

// lookAgain is how often a process looks whether another one's request has been answered.
const lookAgain = 50 * time.Millisecond

// take takes the site's turn among all processes and applies what they know of the site,
// or returns a wait. A request that is sent in parallel takes none.
func (at *place) take() (wait time.Duration) {
	c, p, s := at.c, at.c.Pacer, at.s
	now := p.now()
	if at.r.Parallel {
		at.known = p.Turns.Look(at.key, now)
	} else if at.known, at.taken = p.Turns.Take(at.key, now); !at.taken {
		return lookAgain
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.askedElsewhere(at.known) {
		s.ended = at.known.Ended
		s.next = turns.Later(s.next, s.ended.Add(s.gap.Draw(c.delay(s))))
	}
	// What others know makes a request wait, and never makes a job abandon the site.
	next := at.known.Next
	if most := at.known.Ended.Add(c.longestGap(s.host)); next.After(most) {
		next = most
	}
	s.next = turns.Later(s.next, next)
	if at.known.Paused.Sub(now) <= c.maxRetryAfter(s.host) {
		s.paused = turns.Later(s.paused, at.known.Paused)
	}
	return s.rest(now, at.r)
}

// key names a site in Pacer.Turns.
func (p *Pacer) key(site string) string { return p.Web + " " + site }

// tell tells the other processes of later times.
func (p *Pacer) tell(key string, t turns.Times) {
	if p.Turns != nil && t != (turns.Times{}) {
		p.Turns.Tell(key, t)
	}
}

// askedElsewhere reports whether another process sent the last request: the file rounds
// the times that are this process's own.
func (s *site) askedElsewhere(known turns.Times) bool {
	return known.Ended.Sub(s.ended) > time.Millisecond
}
