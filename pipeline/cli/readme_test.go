package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/pipeline"
)

const readme = "../../README.md"

// Its name is not -update, as in other packages, because Beam's Dataflow runner has a flag of that name.
var updateReadme = flag.Bool("update-readme", false, "write the README's table of flags and server/testdata/jobs.json")

const (
	flagsBegin = "<!-- flags: written by `make golden` from the flags of pipeline/cli and of the jobs -->\n"
	flagsEnd   = "<!-- end of flags -->"
)

// flagTable returns a Markdown table of all flags of this program.
func flagTable() string {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
	newFlags(new(Options)).VisitAll(func(f *flag.Flag) {
		value := ""
		if f.DefValue != "" {
			value = "`" + f.DefValue + "`"
		}
		b.WriteString("| `--" + f.Name + "` | " + value + " | " + strings.ReplaceAll(f.Usage, "|", `\|`) + " |\n")
	})
	return b.String()
}

func TestReadmeFlags(t *testing.T) {
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), flagsBegin)
	table, after, ok2 := strings.Cut(rest, flagsEnd)
	if !ok || !ok2 {
		t.Fatalf("README.md has no table between %q and %q", strings.TrimSpace(flagsBegin), flagsEnd)
	}
	want := flagTable()
	if table == want {
		return
	}
	if *updateReadme {
		if err := os.WriteFile(readme, []byte(before+flagsBegin+want+flagsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	has, wants := strings.Split(table, "\n"), strings.Split(want, "\n")
	for i := range max(len(has), len(wants)) {
		var h, w string
		if i < len(has) {
			h = has[i]
		}
		if i < len(wants) {
			w = wants[i]
		}
		if h != w {
			t.Fatalf("README.md, table of flags, line %d\nhas:  %s\nwant: %s\n`make golden` writes it", i+1, h, w)
		}
	}
}

// TestJobsOfTheServer compares the file from which the server's tests know the
// jobs with the list of jobs.
func TestJobsOfTheServer(t *testing.T) {
	const file = "../../server/testdata/jobs.json"
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(Descriptions()); err != nil {
		t.Fatal(err)
	}
	if *updateReadme {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := os.ReadFile(file); err != nil || !bytes.Equal(has, want.Bytes()) {
		t.Errorf("server/testdata/jobs.json (%v) is not the list of jobs; `make golden` writes it", err)
	}
	for _, j := range pipeline.All() {
		own := j.Flags()
		for _, f := range j.Fields {
			if !slices.Contains(own, f.Flag) {
				t.Errorf("a request for %s says %s by --%s, which is none of its flags", j.Name, f.Name, f.Flag)
			}
		}
	}
}
