package pipeline

import (
	"fmt"
	"io"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/newsfork/seed-engine/io/ledger"
)

// progressLine is the live line on a terminal.
type progressLine struct {
	bar *progressbar.ProgressBar
	job job
}

func newProgressLine(o Options, stderr io.Writer) *progressLine {
	if o.Progress == "off" || !isTerminal(stderr) {
		return &progressLine{}
	}
	j, _ := jobNamed(o.Job)
	return &progressLine{job: j, bar: progressbar.NewOptions(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(j.unit), progressbar.OptionSetDescription(j.liveText(ledger.Tally{})), progressbar.OptionClearOnFinish())}
}

func (p *progressLine) update(t ledger.Tally) {
	if p.bar != nil {
		p.bar.Describe(p.job.liveText(t))
		_ = p.bar.Set64(t.Counts[p.job.counts]) // a terminal that is gone stops no run
	}
}

func (p *progressLine) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// liveText is what the live line says of a run so far. It is short, for a line
// that is wider than the terminal cannot be written over.
func (j job) liveText(t ledger.Tally) string {
	if len(j.live) == 0 {
		return fmt.Sprintf("%d %s", t.Counts[j.counts], j.unit)
	}
	var b strings.Builder
	for i, c := range j.live {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", c[1], t.Counts[c[0]])
	}
	return b.String()
}
