package pipeline

import (
	"io"

	"github.com/schollz/progressbar/v3"

	"github.com/newsfork/seed-engine/io/ledger"
)

// progressLine is the live line on a terminal.
type progressLine struct{ bar *progressbar.ProgressBar }

func newProgressLine(o Options, stderr io.Writer) *progressLine {
	if o.Progress == "off" || !isTerminal(stderr) {
		return &progressLine{}
	}
	return &progressLine{progressbar.NewOptions(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("domains"), progressbar.OptionSetDescription("visiting"), progressbar.OptionClearOnFinish())}
}

func (p *progressLine) update(t ledger.Tally) {
	if p.bar != nil {
		_ = p.bar.Set64(t.Counts["domains_unique"]) // a terminal that is gone stops no run
	}
}

func (p *progressLine) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
