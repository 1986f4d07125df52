package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// logLine is a line of the log of one of a run's processes.
type logLine struct {
	Worker, Event, Level string
	Time                 time.Time
	More                 string // what else the line has
}

// readLine reads a line, which is a JSON object unless something is wrong with it.
func readLine(worker string, raw []byte) logLine {
	l := logLine{Worker: worker}
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		l.More = strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	at, _ := fields["time"].(string)
	l.Time, _ = time.Parse(time.RFC3339Nano, at) // without a time it is the oldest
	l.Level, _ = fields["level"].(string)
	l.Event, _ = fields["event"].(string)
	for _, name := range []string{"time", "level", "event", "run_id", "job"} {
		delete(fields, name)
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fmt.Sprint(fields[name])
		if _, deep := fields[name].(map[string]any); deep {
			b, _ := json.Marshal(fields[name]) // it comes from JSON
			value = string(b)
		}
		more = append(more, name+"="+value)
	}
	if len(more) > 0 {
		l.More = strings.Join(more, " ")
	}
	return l
}

// Class is the colour of the line's level.
func (l logLine) Class() string {
	switch l.Level {
	case "ERROR":
		return "bad"
	case "WARN":
		return "warn"
	}
	return ""
}

// newestFirst sorts lines; those without a time come last.
func newestFirst(lines []logLine) {
	slices.SortStableFunc(lines, func(a, b logLine) int { return b.Time.Compare(a.Time) })
}

// logLevels are the levels that a log can be filtered by, each with those after it.
var logLevels = []string{"debug", "info", "warn", "error"}

// LogQuery says which lines of a log are wanted.
type LogQuery struct {
	Text  string // in the line, in any case
	Level string // at least; "" for all
	Most  int
}

const (
	defaultLines = 200
	maxLines     = 5000
	MaxQueryText = 200
	TailLines    = 12 // on the page of the run
)

// ReadLogQuery reads which lines a request wants, and refuses wrong parameters.
func ReadLogQuery(v url.Values) (LogQuery, error) {
	text, level, most := option.Option{Name: "q", Kind: option.Text, Wrong: "search for at most 200 letters"}, option.Option{Name: "level",
		Choices: logLevels},
		option.Option{Name: "lines", Kind: option.Number}
	err := known.Checked(v, []option.Option{*text.Range(0, MaxQueryText), level, *most.Range(1, maxLines)}, false)
	q := LogQuery{Text: strings.TrimSpace(v.Get("q")), Level: v.Get("level"), Most: defaultLines}
	if n, err := strconv.Atoi(v.Get("lines")); err == nil {
		q.Most = n
	}
	return q, err
}

// LogView is the part of a run's log that somebody looks at.
type LogView struct {
	LogQuery
	RunID  string
	Active bool
	Lines  []logLine // the newest first
	Found  int64     // how many the query finds
	Total  int64
	None   bool // the run has no log
}

// Levels are the levels to choose from.
func (LogView) Levels() []string { return logLevels }

// Amounts are the numbers of lines to choose from.
func (LogView) Amounts() []int { return []int{50, defaultLines, 1000, maxLines} }

// LogOf are the newest lines of a run's log that a query finds.
func LogOf(e *Entry, logs []ledger.ProcessLog, q LogQuery) LogView {
	v := LogView{LogQuery: q, RunID: e.Run.RunID, Active: e.Active(), None: len(logs) == 0}
	text := bytes.ToLower([]byte(q.Text))
	least := slices.Index(logLevels, q.Level)
	for _, log := range logs {
		v.add(log.Lines, text, least)
	}
	v.Found = int64(len(v.Lines))
	slices.Reverse(v.Lines) // of one process and moment, the later line comes first
	newestFirst(v.Lines)
	v.Lines = v.Lines[:min(len(v.Lines), cmp.Or(q.Most, defaultLines))]
	return v
}

// add adds the lines that have a text in any case, and at least a level.
func (v *LogView) add(lines, text []byte, least int) {
	for raw := range bytes.Lines(lines) {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		v.Total++
		if !bytes.Contains(bytes.ToLower(raw), text) {
			continue
		}
		l := readLine("", raw)
		// A line without a known level is never hidden.
		if at := slices.Index(logLevels, strings.ToLower(l.Level)); at >= 0 && at < least {
			continue
		}
		v.Lines = append(v.Lines, l)
	}
}
