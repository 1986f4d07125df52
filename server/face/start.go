package face

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

const startTitle = "Start a run"

// startPage is the data of the page that starts runs.
type startPage struct {
	Forms []jobForm
	Jobs  []string
	Job   string // the one whose form alone is shown
}

// jobForm is the form that starts a run of a job.
type jobForm struct {
	known.Job
	Inputs []formField
	Busy   string // the id of its active run
	Never  string // why no run of the job can start
	Wrong  string // about the form as a whole
	RunID  string // of the run that Wrong is about
}

// formField is an option with the value that was written, what there is to choose from, and what is wrong with the value.
type formField struct {
	option.Option
	ID      string
	Given   []string
	Offered []string
	Wrong   string
}

// Value is what was written.
func (f formField) Value() string { return strings.Join(f.Given, ",") }

// Others are the written names that are not offered.
func (f formField) Others() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(f.Given), f.offers), ",")
}

func (f formField) offers(name string) bool { return slices.Contains(f.Offered, name) }

// Chosen reports whether a name was written.
func (f formField) Chosen(name string) bool { return slices.Contains(f.Given, name) }

// Several reports whether several of the offered names can be chosen.
func (f formField) Several() bool { return f.Kind == option.Names && len(f.Offered) > 0 }

// About says what can be written: the few names that there are, a hint, or the limits.
func (f formField) About() string {
	switch {
	case len(f.Offered) > 0 && len(f.Offered) <= 8:
		return strings.Join(f.Offered, ", ")
	case f.Hint == "" && f.Max != nil:
		return f.Least() + " to " + f.Most()
	}
	return f.Hint
}

// Many reports whether there are so many names that a person searches.
func (f formField) Many() bool { return len(f.Offered) > 16 }

// given are the values of a field of a form, or of a link to it: one or, of names, several.
func given(in url.Values, o option.Option) (all []string) {
	for _, text := range in[o.Field()] {
		values := []string{text}
		if o.Kind == option.Names {
			values = strings.Split(text, ",")
		}
		for _, v := range values {
			if v = strings.TrimSpace(v); v != "" && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// startForms are the forms of all jobs, or of the one in the URL, filled in with its values.
func (f runRows) startForms(c *call) (any, error) {
	v := startPage{Jobs: f.Jobs.Started().Names(), Job: c.in.Get("job")}
	if _, ok := f.Jobs.Started().Named(v.Job); v.Job != "" && !ok {
		return nil, known.Refuse("job: use %s", f.Jobs.Started().Or())
	}
	c.key = "start " + c.in.Encode()
	return later(func(ctx context.Context) (any, error) {
		for _, j := range f.Jobs.Started() {
			if v.Job == "" || v.Job == j.Name {
				v.Forms = append(v.Forms, f.formOf(ctx, j, c.in))
			}
		}
		return v, nil
	}), nil
}

func (f runRows) formOf(ctx context.Context, j known.Job, in url.Values) jobForm {
	form := jobForm{Job: j}
	for _, e := range f.Board.Runs() {
		if e.Active() && !e.Silent() && e.Run.Job == j.Name {
			form.Busy = e.Run.RunID
		}
	}
	offered, err := f.Offer(ctx, j.Name)
	if err != nil {
		form.Never = known.Safe(err.Error())
	}
	for _, o := range j.Fields() {
		form.Inputs = append(form.Inputs, formField{Option: o, ID: j.Name + "-" + o.Field(), Given: given(in, o), Offered: offered[o.Name]})
	}
	return form
}

// startForm starts a run from the form of a job. Its empty fields say nothing.
func (f runRows) startForm(c *call) (any, error) {
	j, ok := f.Jobs.Started().Named(c.in.Get("job"))
	if !ok {
		return nil, known.Refuse("there is no such job")
	}
	values := map[string]string{}
	for _, o := range j.Fields() {
		if text := strings.Join(given(c.in, o), ","); text != "" {
			values[o.Field()] = text
		}
	}
	flags, err := j.FlagsOf(values)
	if err != nil {
		return nil, err
	}
	return f.startFor(c, ledger.Run{Job: j.Name}, flags, "dashboard")
}

// startAgain is the form of a job with what was written, and what is wrong next to the field that it is about.
func (f runRows) startAgain(c *call, err error) (view, int) {
	var told *known.AnswerError
	if !errors.As(err, &told) || !known.WantsPage(c.Request) {
		return view{}, 0
	}
	return view{Template: "start", Section: "start", Title: startTitle, Still: true, Data: func(shown *call) (any, error) {
		j, ok := f.Jobs.Started().Named(c.in.Get("job"))
		if !ok {
			return nil, told
		}
		form := f.formOf(shown.Context(), j, c.in)
		form.Wrong, form.RunID, form.Never = known.Safe(told.Message), told.RunID, ""
		for i, in := range form.Inputs {
			text, own := strings.CutPrefix(told.Message, in.Field()+": ")
			if in.Given == nil {
				continue
			}
			if err := in.Check(in.Value()); err != nil {
				form.Inputs[i].Wrong = err.Error()
			} else if form.Wrong != "" && (own || strings.Contains(told.Message, "--"+in.Name+"=")) {
				form.Inputs[i].Wrong = known.Safe(text)
			}
			if form.Inputs[i].Wrong != "" {
				form.Wrong = ""
			}
		}
		return startPage{Jobs: f.Jobs.Started().Names(), Job: j.Name, Forms: []jobForm{form}}, nil
	}}, told.Code
}
