package launch

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline"
)

// progressLine is the live line on a terminal.
type progressLine struct {
	bar *progressbar.ProgressBar
	job pipeline.Job
}

func newProgressLine(o Options, stderr io.Writer) *progressLine {
	if o.Progress == "off" || !IsTerminal(stderr) {
		return &progressLine{}
	}
	j := o.Target()
	return &progressLine{job: j, bar: progressbar.NewOptions(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(j.Unit), progressbar.OptionSetDescription(j.LiveText(ledger.Tally{})), progressbar.OptionClearOnFinish())}
}

func (p *progressLine) update(t ledger.Tally) {
	if p.bar != nil {
		p.bar.Describe(p.job.LiveText(t))
		_ = p.bar.Set64(t.Counts[p.job.LiveCount]) // a terminal that is gone does not stop a run
	}
}

func (p *progressLine) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// IsTerminal reports whether w is a terminal, so that a person may read along.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
