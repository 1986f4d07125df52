package cli

import (
	"flag"
	"maps"
	"os"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// layers sets the flags that were not given: from the environment, or else from
// the file. An empty variable counts as not set.
func (o *Options) layers(given map[string]bool) error {
	var err error
	o.Flags.VisitAll(func(g *flag.Flag) {
		name := option.Variable(g.Name)
		v := os.Getenv(name)
		if v == "" || given[g.Name] || err != nil {
			return
		}
		if serr := o.Flags.Put(g.Name, v); serr != nil {
			err = usage.Errorf("environment variable %s=%q is no value for --%s: %w", name, v, g.Name, serr)
		}
		given[g.Name] = true
	})
	if err != nil || o.Config == "" {
		return err
	}
	return o.file(given)
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
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if o.Flags.Lookup(name) == nil || name == "config" {
			return usage.Errorf("--config=%s: unknown key %q; keys are the flags' names, `help` lists them", o.Config, name)
		}
		v, ok := scalar(values[name])
		if !ok {
			return usage.Errorf("--config=%s: %s has no single value; write %s: VALUE, or leave the line out", o.Config, name, name)
		}
		if given[name] {
			continue
		}
		if err := o.Flags.Put(name, v); err != nil {
			return usage.Errorf("--config=%s: %q is no value for %s: %w", o.Config, v, name, err)
		}
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
