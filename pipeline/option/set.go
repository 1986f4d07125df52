package option

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Set is what can be set together: a flag set in which each option has its description. Flags without one are Beam's.
type Set struct {
	*pflag.FlagSet
	All []*Option // in the order in which they were told
	job string    // whose options are told
}

// New returns an empty set.
func New(name string) *Set {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	return &Set{FlagSet: f}
}

func (s *Set) add(name string, kind Kind) *Option {
	f := s.Lookup(name)
	o := &Option{Name: name, Usage: f.Usage, Default: f.DefValue, Kind: kind}
	f.Annotations = map[string][]string{formOf: {o.form()}}
	if s.job != "" {
		o.jobs = []string{s.job}
	}
	s.All = append(s.All, o)
	return o
}

// Text adds an option whose value is a text.
func (s *Set) Text(p *string, name, value, usage string) *Option {
	s.StringVar(p, name, value, usage)
	return s.add(name, Text)
}

// Block adds an option whose value is a mapping of YAML.
func (s *Set) Block(p *string, name, usage string) *Option {
	s.StringVar(p, name, "", usage)
	return s.add(name, Block)
}

// Names adds an option that chooses from what is configured. A request has it too: label and what name it and its values there.
func (s *Set) Names(p *string, name, usage, label, what string) *Option {
	s.StringVar(p, name, "", usage)
	what += ", separated by commas"
	return s.add(name, Names).Like(`[A-Za-z0-9_\-]+(,[A-Za-z0-9_\-]+)*`).Asked(label, what).Says("write " + what)
}

// Day adds an option whose value is a day, YYYY-MM-DD, or empty.
func (s *Set) Day(p *string, name, usage string) *Option {
	s.StringVar(p, name, "", usage)
	o := s.add(name, Day)
	o.Pattern = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
	return o
}

// Yes adds an option that is true or false.
func (s *Set) Yes(p *bool, name string, value bool, usage string) *Option {
	s.BoolVar(p, name, value, usage)
	return s.add(name, Yes)
}

// Number adds an option whose value is a whole number.
func (s *Set) Number(p *int, name string, value int, usage string) *Option {
	s.IntVar(p, name, value, usage)
	return s.add(name, Number)
}

// Decimal adds an option whose value is a number.
func (s *Set) Decimal(p *float64, name string, value float64, usage string) *Option {
	s.Float64Var(p, name, value, usage)
	return s.add(name, Decimal)
}

// Pause adds an option whose value is a time.Duration.
func (s *Set) Pause(p *time.Duration, name string, value time.Duration, usage string) *Option {
	s.DurationVar(p, name, value, usage)
	return s.add(name, Pause)
}

// Other adds an option with a form of its own.
func (s *Set) Other(v flag.Value, name, usage string) *Option {
	Lend(s.FlagSet, v, name, usage)
	o := s.add(name, Text)
	delete(s.Lookup(name).Annotations, formOf)
	return o
}

// Lend adds a flag of package flag to a set of package pflag.
func Lend(s *pflag.FlagSet, v flag.Value, name, usage string) {
	f := s.VarPF(lent{v}, name, "", usage)
	if f.Value.Type() == "bool" {
		f.NoOptDefVal = "true"
	}
}

type lent struct{ flag.Value }

// Type is the name of the value in help: none of one that may be left out.
func (l lent) Type() string {
	if v, ok := l.Value.(interface{ IsBoolFlag() bool }); ok && v.IsBoolFlag() {
		return "bool"
	}
	return "value"
}

// Range limits a number.
func (o *Option) Range(least, most float64) *Option { o.Min, o.Max = &least, &most; return o }

// From limits a number, or a pause in seconds, from below.
func (o *Option) From(least float64) *Option { o.Min = &least; return o }

// Above limits a number, or a pause in seconds, to more than that.
func (o *Option) Above(limit float64) *Option { o.Min, o.Open = &limit, true; return o }

// OneOf limits a text to some words.
func (o *Option) OneOf(words ...string) *Option { o.Choices = words; return o }

// Like limits a text to a regular expression of the whole.
func (o *Option) Like(pattern string) *Option { o.Pattern = pattern; return o }

// Says is what a bad value is refused with.
func (o *Option) Says(wrong string) *Option { o.Wrong = wrong; return o }

// NotEmpty refuses an empty value on the command line, as a script's unset variable gives it.
func (o *Option) NotEmpty(advice string) *Option { o.Empty = advice; return o }

// Asked makes the option one of the requests and forms that start a run.
func (o *Option) Asked(label, hint string) *Option { o.Label, o.Hint = label, hint; return o }

// SuchAs is an example of a value.
func (o *Option) SuchAs(example any) *Option { o.Example = example; return o }

// Is marks the option.
func (o *Option) Is(marks Mark) *Option { o.Marks |= marks; return o }

// Previews says how the option makes the job only say what a run would do.
func (o *Option) Previews(how string) *Option { o.Preview = how; return o }

// In names the group of the help in which the option is shown; those in no group are shown by --help-all alone.
func (o *Option) In(group Group) *Option { o.Group = group; return o }

// Begin begins a job's options: those that are told from now on mean something to this job only.
func (s *Set) Begin(job string) { s.job = job }

// Take says that shared options, by names, mean something to the job, and not to every job.
func (s *Set) Take(names ...string) {
	for _, name := range names {
		o := s.Get(name)
		o.jobs = append(o.jobs, s.job)
	}
}

// Default gives a shared option another default for the job.
func (s *Set) Default(name, value string) {
	o := s.Get(name)
	if o.defaults == nil {
		o.defaults = map[string]string{}
	}
	o.defaults[s.job] = value
}

// UseDefaults sets the job's own defaults of what nothing has set.
func (s *Set) UseDefaults(job string, given map[string]bool) error {
	for _, o := range s.All {
		if v, ok := o.defaults[job]; ok && !given[o.Name] {
			if err := s.Put(o.Name, v); err != nil {
				return fmt.Errorf("default of --%s for --job=%s: %w", o.Name, job, err)
			}
		}
	}
	return nil
}

// Get returns the option of that name; nil: there is none.
func (s *Set) Get(name string) *Option {
	if i := slices.IndexFunc(s.All, func(o *Option) bool { return o.Name == name }); i >= 0 {
		return s.All[i]
	}
	return nil
}

// Value is an option's value as text, "" if there is no such option.
func (s *Set) Value(name string) string {
	if f := s.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// DefaultValue is an option's default as text, "" if there is no such option.
func (s *Set) DefaultValue(name string) string {
	if f := s.Lookup(name); f != nil {
		return f.DefValue
	}
	return ""
}

// Parse reads a command line. Its error says what to write.
func (s *Set) Parse(args []string) error {
	err := s.FlagSet.Parse(args)
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		return fmt.Errorf("--%s=%s: %w", bad.GetFlag().Name, bad.GetValue(), Wanted(err))
	}
	return err
}

// Given are the names of the flags that were set.
func (s *Set) Given() map[string]bool {
	given := map[string]bool{}
	s.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			given[f.Name] = true
		}
	})
	return given
}

// Put sets an option. Its error says what to write.
func (s *Set) Put(name, value string) error { return Wanted(s.Set(name, value)) }

// Wanted says what a value must look like, where package pflag only says that it cannot be read.
func Wanted(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	if form := bad.GetFlag().Annotations[formOf]; form != nil {
		return errors.New(form[0])
	}
	return bad.Unwrap()
}

// formOf is the annotation of a flag that says what its values look like.
const formOf = "form"

// Which are the names of the options that have a mark.
func (s *Set) Which(mark Mark) (names []string) {
	for _, o := range s.All {
		if o.Has(mark) {
			names = append(names, o.Name)
		}
	}
	return names
}

// Check refuses bad values.
func (s *Set) Check() error {
	for _, o := range s.All {
		v := s.Value(o.Name)
		if v == o.Default || o.Kind == Names {
			continue
		}
		if err := o.Check(v); err != nil {
			return usage.Errorf("--%s=%s: %w", o.Name, v, err)
		}
	}
	return nil
}

// Preview says how a job is made to only say what a run would do; "": it cannot.
func (s *Set) Preview(job string) string {
	for _, o := range s.All {
		if o.Means(job) && o.Preview != "" {
			return o.Preview
		}
	}
	return ""
}

// CheckLine refuses options of a command line that mean something to other jobs only, and empty values where they would mean
// the sample, or a whole run.
func (s *Set) CheckLine(job string, line []string) error {
	for _, o := range s.All {
		preview := s.Preview(job)
		switch given := slices.Contains(line, o.Name); {
		case !given:
		case o.Means(job) && o.Empty != "" && s.Value(o.Name) == "":
			return usage.Errorf("--%s= is empty; %s", o.Name, o.Empty)
		case o.Means(job):
		case o.Preview == "--"+o.Name && preview != "":
			return usage.Errorf("--%s is for --job=%s; for a dry run of %s use %s", o.Name, o.jobs[0], job, preview)
		default:
			return usage.Errorf("--%s means nothing to --job=%s; leave it out, `help %s` lists what there is", o.Name, job, job)
		}
	}
	return nil
}

// Of returns the options that mean something to a job, with its defaults, for programs that do not run it.
func (s *Set) Of(job string) (all []Option) {
	for _, o := range s.All {
		if o.Means(job) && !o.Has(Secret) {
			all = append(all, *o)
			all[len(all)-1].Default = o.DefaultOf(job)
		}
	}
	return all
}
