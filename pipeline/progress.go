package pipeline

import (
	"io"

	"github.com/schollz/progressbar/v3"

	"github.com/newsfork/seed-engine/io/ledger"
)

// progressLine is the live line on a terminal.
type progressLine struct {
	bar    *progressbar.ProgressBar
	counts string
}

func newProgressLine(o Options, stderr io.Writer) *progressLine {
	if o.Progress == "off" || !isTerminal(stderr) {
		return &progressLine{}
	}
	j, _ := jobNamed(o.Job)
	return &progressLine{counts: j.counts, bar: progressbar.NewOptions(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(j.unit), progressbar.OptionSetDescription("visiting"), progressbar.OptionClearOnFinish())}
}

func (p *progressLine) update(t ledger.Tally) {
	if p.bar != nil {
		_ = p.bar.Set64(t.Counts[p.counts]) // a terminal that is gone stops no run
	}
}

func (p *progressLine) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
