package launch

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// progressLine is the live line on a terminal.
type progressLine struct {
	bar   *progressbar.ProgressBar
	width func() int
	text  liveText
}

func newProgressLine(o Options, stderr io.Writer) *progressLine {
	f, ok := stderr.(*os.File)
	if o.Progress == "off" || !ok || !IsTerminal(stderr) {
		return &progressLine{}
	}
	j := o.Target()
	p := &progressLine{text: liveText{job: j, lanes: o.Lanes, unbounded: o.Streaming, elsewhere: o.Elsewhere()}, width: func() int {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
		return 80
	}}
	p.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription(j.LiveText(ledger.Tally{})))
	return p
}

func (p *progressLine) update(t ledger.Tally, plan lane.Plan) {
	if p.bar != nil {
		p.bar.Describe(fit(p.text.write(t, plan, time.Now()), p.width()))
		_ = p.bar.Set64(t.Counts[p.text.job.LiveCount]) // a terminal that is gone does not stop a run
	}
}

func (p *progressLine) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// besides is how much of the line the bar itself writes: a spinner and the time that has passed.
const besides = 14

// fit cuts a text so that the line is not wider than the terminal: a wider line cannot
// be overwritten.
func fit(text string, width int) string {
	if r, most := []rune(text), max(width-besides, 20); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// liveText makes the text of the live line.
type liveText struct {
	job       pipeline.Job
	lanes     int  // of the run
	unbounded bool // it has no end that could be foretold
	elsewhere bool // its workers are other processes
	past      []mark
	last      mark // when a host or an item was done last
}

// mark is how many hosts and items were done at a time.
type mark struct {
	at          time.Time
	done, items int64
}

// Of the time left, nothing is said before so many hosts were done in so much time.
// Only the last minute counts: hosts that an earlier run has done pass in no time, and
// a pause stops everything.
const (
	etaWindow = time.Minute
	etaAfter  = 10 * time.Second
	etaHosts  = 5
	// stalled is how long nothing must be done until the line says whose visits it waits for.
	stalled = 3 * time.Second
	// aboutHosts is how many hosts a lane must have on average, so that the lanes that
	// have begun tell of the others: each host's lane is chosen by a hash.
	aboutHosts = 100
)

// write returns the most important first, because the end may be cut off.
func (l *liveText) write(t ledger.Tally, plan lane.Plan, now time.Time) string {
	if l.elsewhere && plan.Lanes == 0 {
		return "workers elsewhere are at work; `pipeline runs show` has their counts"
	}
	l.note(mark{now, plan.Done, t.Counts[l.job.LiveCount]})
	var parts []string
	if plan.Lanes > 0 && !l.unbounded {
		parts = append(parts, l.share(plan, now))
	}
	if n := t.HTTP.Unanswered(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d requests failed", n))
	}
	return strings.Join(append(parts, l.job.LiveText(t)+l.rate()), ", ")
}

// note remembers how much is done now.
func (l *liveText) note(now mark) {
	if n := len(l.past); n == 0 || now.at.Sub(l.past[n-1].at) >= time.Second {
		l.past = append(l.past, now)
	}
	l.past = slices.DeleteFunc(l.past, func(m mark) bool { return now.at.Sub(m.at) > etaWindow })
	if now.done != l.last.done || now.items != l.last.items || l.last.at.IsZero() {
		l.last = now
	}
}

// rate is how fast items are done, "" while none is.
func (l *liveText) rate() string {
	first, last := l.past[0], l.past[len(l.past)-1]
	took := last.at.Sub(first.at)
	if last.items == first.items || took < etaAfter || last.at.Sub(l.last.at) >= stalled {
		return ""
	}
	each := float64(last.items-first.items) / took.Seconds()
	if each >= 1 {
		return fmt.Sprintf(" (%.0f/s)", each)
	}
	return fmt.Sprintf(" (%.0f/min)", 60*each)
}

// waits says whose visits take long, and until when those pause that asked for it; "" if others end meanwhile.
func (l *liveText) waits(plan lane.Plan, now time.Time) string {
	if len(plan.Visited) == 0 || now.Sub(l.last.at) < stalled || plan.Done == plan.Hosts {
		return ""
	}
	var names []string
	for _, v := range plan.Visited[:min(len(plan.Visited), 2)] {
		if v.Until.After(now) {
			names = append(names, v.Name+" until "+v.Until.Format(time.TimeOnly))
		} else {
			names = append(names, fmt.Sprintf("%s %ds", v.Name, int(now.Sub(v.Since).Seconds())))
		}
	}
	if more := len(plan.Visited) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "waiting for " + strings.Join(names, ", ")
}

// share is how much is done, and how long the rest will take. "~" is before an estimate,
// and "+" after what may grow.
func (l *liveText) share(plan lane.Plan, now time.Time) string {
	total, about := plan.Hosts, ""
	switch {
	case plan.Lanes >= l.lanes:
	case plan.Hosts >= aboutHosts*int64(plan.Lanes):
		total, about = plan.Hosts*int64(l.lanes)/int64(plan.Lanes), "~"
	default:
		return fmt.Sprintf("%d/%d+ %s, ETA unknown", plan.Done, plan.Hosts, l.unit())
	}
	eta := "unknown"
	if first := l.past[0]; plan.Done-first.done >= etaHosts && now.Sub(first.at) >= etaAfter {
		left := time.Duration(float64(total-plan.Done) / float64(plan.Done-first.done) * float64(now.Sub(first.at)))
		if left >= now.Sub(l.last.at) || plan.Done == total { // else the last hosts are slower, and have taken longer already
			eta = about + left.Round(time.Second).String()
		}
	}
	if waits := l.waits(plan, now); waits != "" {
		return fmt.Sprintf("%d/%s%d %s, %s", plan.Done, about, total, l.unit(), waits)
	}
	return fmt.Sprintf("%d/%s%d %s, ETA %s", plan.Done, about, total, l.unit(), eta)
}

// unit is what the job's hosts are: sites, publishers …
func (l *liveText) unit() string {
	for _, s := range l.job.Stages {
		if slices.Contains(s.Counts, ledger.LaneHosts) {
			return s.Unit
		}
	}
	return "hosts"
}

// IsTerminal reports whether w is a terminal, so that a person may read along.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
