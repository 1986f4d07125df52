package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/option"
)

// Its name is not -update, as in other packages, because Beam's Dataflow runner has a flag of that name.
var updateFlags = flag.Bool("update-flags", false, "write docs/reference/flags.md, commands.md and server/testdata/jobs.json")

// flagList returns a Markdown list of all flags of runs.
func flagList() string {
	var b strings.Builder
	set := newFlags(new(Options))
	set.VisitAll(func(f *pflag.Flag) {
		b.WriteString("- `--" + f.Name)
		if f.DefValue != "" && f.DefValue != "false" {
			b.WriteString("=" + f.DefValue)
		}
		b.WriteString("` ")
		if set.Get(f.Name).Has(option.Tuning) {
			b.WriteString("(no flag) ")
		}
		b.WriteString(f.Usage + "\n")
	})
	return b.String()
}

func TestFlagsPage(t *testing.T) {
	for name, want := range map[string]string{"flags": flagList(), "commands": commandList()} {
		page, begin, end := "../../docs/reference/"+name+".md", "<!-- "+name+": written by `make golden` -->\n", "<!-- end of "+name+" -->"
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		before, rest, ok := strings.Cut(string(raw), begin)
		list, after, ok2 := strings.Cut(rest, end)
		require.True(t, ok && ok2, "%s has no list", page)
		if *updateFlags && list != want {
			require.NoError(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o644))
			continue
		}
		require.Equal(t, want, list, "`make golden` writes %s", page)
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
	require.NoError(t, e.Encode(Descriptions()))
	if *updateFlags {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, want.Bytes(), 0o644))
	}
	if has, err := os.ReadFile(file); err != nil || !bytes.Equal(has, want.Bytes()) {
		t.Errorf("server/testdata/jobs.json (%v) is not the list of jobs; `make golden` writes it", err)
	}
}
