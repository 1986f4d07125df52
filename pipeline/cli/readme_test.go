package cli

import (
	"flag"
	"os"
	"strings"
	"testing"
)

const readme = "../../README.md"

// Not -update, as elsewhere: Beam's Dataflow runner has a flag of that name.
var updateReadme = flag.Bool("update-readme", false, "write the README's table of flags")

const (
	flagsBegin = "<!-- flags: written by `make golden` from the flags of pipeline/cli and of the jobs -->\n"
	flagsEnd   = "<!-- end of flags -->"
)

// flagTable is every flag of ours, as Markdown.
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
