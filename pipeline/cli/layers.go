package cli

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// layers sets the flags that were not given: from the environment, or else from
// the file. An empty variable counts as not set.
func (o *Options) layers(given map[string]bool) error {
	var err error
	o.Flags.VisitAll(func(g *pflag.Flag) {
		name := option.Variable(g.Name)
		v := os.Getenv(name)
		if v == "" || given[g.Name] || err != nil {
			return
		}
		if serr := o.Flags.Put(g.Name, v); serr != nil {
			err = usage.Errorf("environment variable %s=%q is no value for --%s: %w", name, v, g.Name, serr)
		}
		given[g.Name], o.from[g.Name] = true, name
	})
	if err == nil && o.Config != "" {
		err = o.file(given)
	}
	return err
}

// otherVariables are those that set no option: secrets, and what a server tells the runs that it starts.
var otherVariables = []string{lastWordsVariable, "SEED_RUN_ID", "SEED_SCHEDULE", "SEED_STARTED_BY", "SEED_GITHUB_TOKEN", "SEED_EVENTS_TOKEN", "SEED_TAG_KEY", "SEED_EMBED_KEY", "SEED_EMBED_MODEL",
	"SEED_EMBED_URL", "SEED_SERVER_TOKEN", "SEED_SERVER_READ_TOKEN", "SEED_WEBHOOK_URL", "SEED_ALERT_URL", "SEED_ALERT_SECRET", "SEED_SMTP_PASSWORD", "SEED_SEARCH_TOKEN", botauth.KeyVariable}

// names are the names of all options.
func (o *Options) names() (all []string) {
	o.Flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// strangers says which SEED_ variables of the environment set nothing, with those that were probably meant.
func (o *Options) strangers() (said []string) {
	known := slices.Clone(otherVariables)
	for _, name := range o.names() {
		known = append(known, option.Variable(name))
	}
	for _, e := range os.Environ() {
		name, v, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "SEED_") && v != "" && !slices.Contains(known, strings.TrimSuffix(name, "_FILE")) {
			said = append(said, "the variable "+name+" sets nothing"+meant(name, known))
		}
	}
	return said
}

func (o *Options) file(given map[string]bool) error {
	b, err := os.ReadFile(o.Config)
	if err != nil {
		return usage.Errorf("reading --config: %w", err)
	}
	// Nodes keep a value as it is written: a category 007 stays 007.
	var values map[string]ast.Node
	if err := yamltext.Decode(b, &values); err != nil {
		return usage.Errorf("--config=%s is no YAML mapping of flags' names to values: %w", o.Config, err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := string(today(nil, key))
		if o.Flags.Lookup(name) == nil || name == "config" {
			return usage.Errorf("--config=%s: unknown key %q%s; keys are the flags' names, `help JOB --help-all` lists them", o.Config, name, meant(name, o.names()))
		}
		v, ok := scalar(values[key])
		if own := o.Flags.Get(name); own != nil && own.Kind == option.Block {
			v, ok = values[key].String(), true
		}
		if !ok {
			return usage.Errorf("--config=%s: %s has no single value; write %s: VALUE, or leave the line out", o.Config, name, name)
		}
		if given[name] {
			continue
		}
		if err := o.Flags.Put(name, v); err != nil {
			return usage.Errorf("--config=%s: %q is no value for %s: %w", o.Config, v, name, err)
		}
		given[name], o.from[name] = true, o.Config
	}
	return nil
}

// scalar is the text of a YAML string, number or boolean.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return "", false
}
