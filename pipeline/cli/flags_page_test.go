package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
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

// configSchema is the JSON Schema of the file that --config names.
func configSchema(t *testing.T) string {
	t.Helper()
	set, properties := newFlags(new(Options)), map[string]any{}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" {
			properties[f.Name] = set.Get(f.Name).Schema()
		}
	})
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Options of runs, for --config", "type": "object",
		"additionalProperties": false, "properties": properties, "patternProperties": map[string]any{"_|^(parallelism|endpoint|project|region)$": map[string]any{}}}))
	return b.String()
}

// TestConfigSchema keeps the schema of --config for editors: what it refuses the program refuses.
func TestConfigSchema(t *testing.T) {
	const file = "../../docs/reference/config.schema.json"
	want := configSchema(t)
	if *updateFlags {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	has, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(has), "`make golden` writes it")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(want))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("s.json", doc))
	bot, err := os.ReadFile("../../docs/reference/bot.schema.json")
	require.NoError(t, err)
	of, err := jsonschema.UnmarshalJSON(bytes.NewReader(bot))
	require.NoError(t, err)
	require.NoError(t, c.AddResource("bot.schema.json", of))
	s, err := c.Compile("s.json")
	require.NoError(t, err)
	emptyEnv(t)
	t.Chdir(t.TempDir())
	for text, good := range map[string]bool{
		"rate: 5\nhost-delay: 2s\nforce: true\nstore: mem://x\nweb: live\ncountry: sg\ndate: '2026-01-02'\nparallelism: 4\n": true,
		"bot:\n  name: Acme/1.0 # ours\n  contact: a@b.example\n  page: https://b.example/bot\n":                             true, "bot: {nam: a}\n": false, "bot: {page: a}\n": false,
		"cuntry: sg\n": false, "lanes: many\n": false, "web: none\n": false, "rate: -1\n": false, "force: 3\n": false, "config: c.yaml\n": false,
	} {
		resetBeam(t)
		writeFile(t, "c.yaml", text)
		b, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, good, s.Validate(v) == nil, "the schema: %s", text)
		_, err = parseOptions([]string{"--config=c.yaml"}, io.Discard)
		require.Equal(t, good, err == nil, "the program: %s: %v", text, err)
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
