package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Desk is what a program knows of the messages that it has and that are not done. It is all of its state, and can be encoded
// as JSON: another process continues with it. Without it the queue delivers the messages again.
type Desk struct{ Works []*work }

// work is one thing that messages name, from the first delivery until it is done.
type work struct {
	Wanted
	Tokens []string  // the deliveries that name it
	Why    string    // why it cannot begin: "" if it can
	Tries  int       // how often it began, or could not
	Next   time.Time // when it begins again if it is not done by then
	Check  time.Time // when to look whether it is done
	Renew  time.Time // when the deliveries' leases are extended
}

// State is what a program finds of something wanted.
type State int

// The states.
const (
	Ready State = iota
	Done        // its completion mark is there
	None        // it is not for this program: another object of the bucket
)

// Job is what is done with what messages name.
type Job struct {
	// Look returns the state. It is called in parallel. ErrBad marks an error of what is wanted; others pass.
	Look func(context.Context, Wanted) (State, error)
	// Begin begins the work, which ends with the completion mark.
	Begin func(Wanted)
	// DeadLetter records that a message led to nothing: its deliveries are acknowledged next.
	DeadLetter func(ctx context.Context, w Wanted, why error) error
	Log        *slog.Logger
}

// ErrBad is an error of what a message names.
var ErrBad = errors.New("a message names nothing to do")

const (
	// maxTries is how often something begins, or is looked for, without success.
	maxTries = 3
	// badPause is the time between two tries of a message that names nothing to do.
	badPause = 5 * time.Second
	// openPause is how long work may last until it begins again. It doubles each time.
	openPause = 10 * time.Minute
	minCheck  = 250 * time.Millisecond
	maxCheck  = 30 * time.Second
	// maxWorks is the most things at work, and receiveAtOnce the most messages of one call.
	maxWorks      = 1000
	receiveAtOnce = 100
	// looks is how many states are looked for at the same time.
	looks = 16
)

// Step looks after the messages at hand, and waits for new ones, at most for wait. It returns how many things began. Errors
// of the queue leave its messages for the next call.
func (d *Desk) Step(ctx context.Context, q Queue, j Job, wait time.Duration) (begun int, err error) {
	begun, err = d.visit(ctx, q, j)
	for len(d.Works) < maxWorks {
		if begun > 0 {
			wait = 0
		}
		got, received := q.Receive(ctx, min(receiveAtOnce, maxWorks-len(d.Works)), min(wait, d.idle()))
		if len(got) == 0 || received != nil {
			return begun, errors.Join(err, received)
		}
		for _, m := range got {
			err = errors.Join(err, d.take(ctx, q, m))
		}
		n, failed := d.visit(ctx, q, j)
		begun, err = begun+n, errors.Join(err, failed)
		if err != nil || n == 0 {
			break
		}
	}
	return begun, err
}

// idle is the time until something is due.
func (d *Desk) idle() time.Duration {
	next := time.Hour
	for _, w := range d.Works {
		next = min(next, time.Until(w.Check), time.Until(w.Renew))
	}
	return max(next, 0)
}

// take puts a message on the desk. A delivery of something at hand joins it.
func (d *Desk) take(ctx context.Context, q Queue, m Message) error {
	all, bad := Parse(m)
	if bad == nil && len(all) == 0 { // nothing to do: an object was deleted
		return q.Ack(ctx, []string{m.Token})
	}
	why := ""
	if bad != nil {
		sum := sha256.Sum256(m.Body)
		all, why = []Wanted{{Key: "message " + hex.EncodeToString(sum[:8])}}, fmt.Sprintf("%s; it begins with %s", bad, untrusted.Line(string(m.Body), maxReason))
	}
	now := time.Now()
	for _, wanted := range all {
		i := slices.IndexFunc(d.Works, func(w *work) bool { return w.Name() == wanted.Name() })
		if i < 0 {
			i = len(d.Works)
			d.Works = append(d.Works, &work{Wanted: wanted, Why: why, Next: now, Check: now})
		}
		w := d.Works[i]
		w.Tokens = append(w.Tokens, m.Token)
		w.Renew = now.Add(q.Lease() / 3)
	}
	return nil
}

// visit renews leases, and looks at all that is due.
func (d *Desk) visit(ctx context.Context, q Queue, j Job) (begun int, err error) {
	now := time.Now()
	var renew []string
	var due []*work
	for _, w := range d.Works {
		if !now.Before(w.Renew) {
			renew = append(renew, w.Tokens...)
			w.Renew = now.Add(q.Lease() / 3)
		}
		if !now.Before(w.Check) {
			due = append(due, w)
		}
	}
	if len(renew) > 0 {
		err = q.Extend(ctx, renew)
	}
	states, errs := make([]State, len(due)), make([]error, len(due))
	var g errgroup.Group
	g.SetLimit(looks)
	for i, w := range due {
		g.Go(func() error {
			if states[i], errs[i] = Ready, error(nil); w.Why != "" {
				errs[i] = fmt.Errorf("%w: %s", ErrBad, w.Why)
			} else {
				states[i], errs[i] = j.Look(ctx, w.Wanted)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	var done []*work
	for i, w := range due {
		switch left, failed := d.judge(ctx, w, states[i], errs[i], j, now); {
		case failed != nil:
			err = errors.Join(err, failed)
		case left == begins:
			begun++
		case left == ends:
			done = append(done, w)
		}
	}
	return begun, errors.Join(err, d.ack(ctx, q, done))
}

// verdict is what becomes of a work.
type verdict int

const (
	stays verdict = iota
	begins
	ends
)

func (d *Desk) judge(ctx context.Context, w *work, s State, err error, j Job, now time.Time) (verdict, error) {
	due := !now.Before(w.Next)
	switch {
	case err != nil && !errors.Is(err, ErrBad): // the store: look again soon
		w.Check = now.Add(time.Second)
		return stays, err
	case err == nil && s != Ready:
		return ends, nil
	case !due:
		// The longer it lasts, the less often it is looked for.
		since := now.Sub(w.Next.Add(-w.pause()))
		w.Check = now.Add(min(max(since/4, minCheck), maxCheck))
		return stays, nil
	case err != nil:
		if w.Tries++; w.Tries < maxTries {
			w.Next = now.Add(badPause)
			w.Check = w.Next
			return stays, nil
		}
		j.Log.Warn("message_dead", "message", w.Name(), "error", err.Error())
		if err := j.DeadLetter(ctx, w.Wanted, err); err != nil {
			w.Tries--
			return stays, err
		}
		return ends, nil
	case w.Tries == maxTries:
		j.Log.Warn("message_returned", "message", w.Name(), "tries", w.Tries, "advice", "it stays open; the queue delivers the message again or follows its own rule for dead letters")
		d.drop(w)
		return stays, nil
	}
	j.Begin(w.Wanted)
	w.Tries++
	w.Next, w.Check = now.Add(w.pause()), now.Add(minCheck)
	return begins, nil
}

// pause is how long the try at hand may last.
func (w *work) pause() time.Duration { return openPause << max(w.Tries-1, 0) }

// drop leaves a work's deliveries to the queue: their leases end.
func (d *Desk) drop(gone *work) {
	d.Works = slices.DeleteFunc(d.Works, func(w *work) bool { return w == gone })
	for _, w := range d.Works { // nor is a delivery acknowledged for what else it names
		w.Tokens = slices.DeleteFunc(w.Tokens, func(t string) bool { return slices.Contains(gone.Tokens, t) })
	}
}

// ack removes works that are done, and acknowledges the deliveries that name nothing else.
func (d *Desk) ack(ctx context.Context, q Queue, done []*work) error {
	var over []string
	rest := slices.DeleteFunc(slices.Clone(d.Works), func(w *work) bool { return slices.Contains(done, w) })
	for _, w := range done {
		for _, t := range w.Tokens {
			if !slices.ContainsFunc(rest, func(w *work) bool { return slices.Contains(w.Tokens, t) }) {
				over = append(over, t)
			}
		}
	}
	if len(over) > 0 {
		if err := q.Ack(ctx, over); err != nil { // they stay, and are found done again
			for _, w := range done {
				w.Check = time.Now().Add(time.Second)
			}
			return err
		}
	}
	d.Works = rest
	return nil
}
