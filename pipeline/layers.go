package pipeline

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	// Beam's own flags are registered on flag.CommandLine by its packages.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// layers fills in, under the flags that are given already, what the
// environment says, and under that what the file says. A variable that is
// empty says nothing.
func (o *Options) layers(given map[string]bool) error {
	var err error
	o.flags.VisitAll(func(g *flag.Flag) {
		name := variable(g.Name)
		v := os.Getenv(name)
		if v == "" || given[g.Name] || err != nil {
			return
		}
		if serr := o.flags.Set(g.Name, v); serr != nil {
			err = usagef("environment variable %s=%q is no value for --%s: %w", name, v, g.Name, wanted(o.flags, g.Name, serr))
		}
		given[g.Name] = true
	})
	if err != nil || o.Config == "" {
		return err
	}
	return o.file(given)
}

// badValue is the flag package's message about a value: the value, the flag's
// name, and the reason.
var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value "(.*)" for (?:flag )?-(\S+): (.*)$`)

// wanted says what a flag's value looks like; the flag package says "parse error".
func wanted(f *flag.FlagSet, name string, err error) error {
	g, ok := f.Lookup(name).Value.(flag.Getter)
	if !ok || !strings.Contains(err.Error(), "parse error") {
		return err
	}
	switch g.Get().(type) {
	case time.Duration:
		return errors.New("write a number with its unit, such as 500ms, 30s or 1m")
	case int, float64:
		return errors.New("write a number")
	case bool:
		return errors.New("write true or false")
	}
	return err
}

// jobDefaults fills in what nothing above has given.
func (o *Options) jobDefaults(given map[string]bool) error {
	j, _ := jobNamed(o.Job)
	for name, v := range j.defaults {
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, v); err != nil {
			return fmt.Errorf("default of --%s for --job=%s: %w", name, j.name, err)
		}
	}
	return nil
}

// addBeamFlags lets f take Beam's own flags under their names. Their values go
// to flag.CommandLine, which the SDK copies into the job; ours never do.
func addBeamFlags(f *flag.FlagSet) {
	flag.CommandLine.VisitAll(func(b *flag.Flag) {
		if f.Lookup(b.Name) == nil && !strings.HasPrefix(b.Name, "test.") {
			f.Var(&beamFlag{b}, b.Name, "Beam: "+b.Usage)
		}
	})
}

// beamFlag hands a value on to Beam's own flag set, marked there as given.
type beamFlag struct{ of *flag.Flag }

func (b *beamFlag) String() string {
	if b.of == nil {
		return ""
	}
	return b.of.Value.String()
}
func (b *beamFlag) Set(v string) error { return flag.CommandLine.Set(b.of.Name, v) }

// IsBoolFlag lets a boolean flag of Beam's stand without a value.
func (b *beamFlag) IsBoolFlag() bool {
	v, ok := b.of.Value.(interface{ IsBoolFlag() bool })
	return ok && v.IsBoolFlag()
}

func (o *Options) file(given map[string]bool) error {
	b, err := os.ReadFile(o.Config)
	if err != nil {
		return usagef("reading --config: %w", err)
	}
	// Nodes keep a value as it is written: a category 007 stays that.
	var values map[string]ast.Node
	if err := yamltext.Decode(b, &values); err != nil {
		return usagef("--config=%s is no YAML mapping of flags' names to values: %w", o.Config, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if o.flags.Lookup(name) == nil || name == "config" {
			return usagef("--config=%s: unknown key %q; keys are the flags' names, `help` lists them", o.Config, name)
		}
		v, ok := scalar(values[name])
		if !ok {
			return usagef("--config=%s: %s has no single value; write %s: VALUE, or leave the line out", o.Config, name, name)
		}
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, v); err != nil {
			return usagef("--config=%s: %q is no value for %s: %w", o.Config, v, name, wanted(o.flags, name, err))
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
