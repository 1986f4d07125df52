package face

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/server/schedule"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// scheduleRow is a schedule in the API.
type scheduleRow struct {
	Name     string          `json:"name"`
	Job      string          `json:"job"`
	Cron     string          `json:"cron"`
	TimeZone string          `json:"timezone"`
	Options  map[string]any  `json:"options"`
	Source   string          `json:"source"`
	Paused   bool            `json:"paused"`
	Error    string          `json:"error,omitempty"` // why it cannot run
	Next     []time.Time     `json:"next"`
	Last     *schedule.Mark  `json:"last"`   // the newest of Recent
	Recent   []schedule.Mark `json:"recent"` // oldest first
	Result   *time.Time      `json:"newest_result_at"`
	Late     float64         `json:"late_s"`
}

func scheduleRowOf(v schedule.View) scheduleRow {
	r := scheduleRow{Name: v.Name, Job: v.Job, Cron: v.Cron, TimeZone: cmp.Or(v.TimeZone, "UTC"), Options: v.Options, Source: v.Source(),
		Paused: v.Kept.Paused, Error: v.Wrong, Next: []time.Time{}, Recent: append([]schedule.Mark{}, v.Marks...), Late: v.LateBy(v.Now).Seconds()}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	for _, at := range v.Times {
		r.Next = append(r.Next, at.UTC())
	}
	if n := len(r.Recent); n > 0 {
		r.Last = &r.Recent[n-1]
	}
	if v.Result != nil {
		r.Result = &v.Result.Run.FinishedAt
	}
	return r
}

// scheduleRows are about schedules.
type scheduleRows struct{ *Face }

// all are the schedules, with what was changed through other servers.
func (f scheduleRows) all(ctx context.Context) ([]schedule.View, error) {
	now := f.Now()
	if _, err := f.Scheduler.Refresh(ctx, now); err != nil {
		return nil, err
	}
	views := f.Scheduler.Views(now)
	schedule.History(views, f.Board.Runs())
	return views, nil
}

func (f scheduleRows) rows() ([]action, []view) {
	const one, form, page = "/api/v1/schedules/{name}", "/schedules/{name}", "/schedules"
	const now, fails = "200 Schedule The schedule as it is now.", "404 NoSchedule, 409 Conflict"
	actions := grouped("schedules", "schedules",
		action{At: "GET /api/v1/schedules", ID: "listSchedules", About: "The schedules: their next five times, newest 30 runs and lateness",
			Out: "200 Schedules The schedules.", Do: func(c *call) (any, error) {
				views, err := f.all(c.Context())
				list := []scheduleRow{}
				for _, v := range views {
					list = append(list, scheduleRowOf(v))
				}
				return map[string]any{"schedules": list}, err
			}},
		action{At: "PUT " + one, ID: "defineSchedule", About: "Add a schedule, or change one", Out: now, Fails: fails,
			Body: "ScheduleRequest", In: []option.Option{{Name: "job", Kind: option.Text}, {Name: "cron", Kind: option.Text}, {Name: "timezone",
				Kind: option.Text}, {Name: "options"}},
			Needs: []string{"job", "cron"}, Example: `{"job": "seed", "cron": "15 3 * * *", "timezone": "Asia/Seoul", "options": {}}`,
			Do: f.define, Answer: f.now, Form: "/schedules", Next: page},
		action{At: "DELETE " + one, ID: "removeSchedule",
			About: "Remove a schedule that was added, or go back to the definition of the server's --config file",
			Out:   "200 Schedule|Status The schedule of the file, or that it is removed.", Fails: fails,
			Do: f.changes(f.Scheduler.Remove), Answer: f.now, Form: form + "/remove", Next: page, Confirm: f.confirmRemove},
		action{At: "POST " + one + "/pause", ID: "pauseSchedule", About: "Pause a schedule: it has no ticks until it is resumed", Out: now,
			Fails: fails, Do: f.changes(f.Scheduler.Pause), Answer: f.now, Form: form + "/pause", Next: page},
		action{At: "POST " + one + "/resume", ID: "resumeSchedule",
			About: "Resume a schedule; what it would have started meanwhile is not made up for", Out: now, Fails: fails,
			Do: f.changes(f.Scheduler.Resume), Answer: f.now, Form: form + "/resume", Next: page},
		action{At: "POST " + one + "/run", ID: "runSchedule", About: "Start a schedule's run now", Out: "202 Started The run is being started.",
			Fails: "404 NoSchedule, 409 Active", Do: f.run, Form: form + "/run"},
	)
	return actions, []view{{At: "GET /schedules", Template: "schedules", Section: "schedules", Title: "Schedules",
		Data: func(c *call) (any, error) {
			views, err := f.all(c.Context())
			return schedulesPage{views, f.Jobs.Started()}, err
		}}}
}

// now answers a change with the schedule as it is now.
func (f scheduleRows) now(c *call) (any, error) {
	views, err := f.all(c.Context())
	if i := slices.IndexFunc(views, func(v schedule.View) bool { return v.Name == c.PathValue("name") }); i >= 0 {
		return scheduleRowOf(views[i]), err
	}
	return status{"removed"}, err
}

func (f scheduleRows) changes(do func(ctx context.Context, name, who string, now time.Time) error) doing {
	return func(c *call) (any, error) {
		return nil, do(c.Context(), c.PathValue("name"), people.Who(c.Context()), f.Now())
	}
}

// define adds a schedule or changes one. A form has the name and the options as text.
func (f scheduleRows) define(c *call) (any, error) {
	get := func(name string) string {
		if c.form {
			return strings.TrimSpace(c.in.Get(name))
		}
		return c.in.Get(name)
	}
	def := schedule.Schedule{Name: cmp.Or(c.PathValue("name"), get("name")), Job: get("job"), Cron: get("cron"), TimeZone: get("timezone")}
	options := []byte(c.in.Get("options"))
	j, ok := f.Jobs.Started().Named(def.Job)
	var err error
	switch {
	case c.form && len(bytes.TrimSpace(options)) > 0 && yamltext.Strict(options, &def.Options) != nil:
		err = known.Refuse("options: write one in each line, such as country: sg")
	case c.form && get("new") != "" && slices.ContainsFunc(f.Scheduler.All(),
		func(there schedule.Plan) bool { return there.Name == def.Name }):
		err = known.Conflict("there is a schedule %s already; edit that one, or choose another name", def.Name)
	case !c.form && ok && len(options) > 0:
		if _, err = j.Flags(options); err == nil { // their types are those of a request that starts a run
			err = json.Unmarshal(options, &def.Options)
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, f.Scheduler.Define(c.Context(), def, people.Who(c.Context()), f.Now())
}

// run starts a schedule's run now, whether it is paused or not.
func (f scheduleRows) run(c *call) (any, error) {
	if _, err := f.Scheduler.Refresh(c.Context(), f.Now()); err != nil {
		return nil, err
	}
	p, err := f.Scheduler.Named(c.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if p.Wrong != "" {
		return nil, known.Conflict("this schedule cannot run: %s", p.Wrong)
	}
	return f.startFor(c, ledger.Run{Job: p.Job, Schedule: p.Name}, p.Flags, "schedule "+p.Name+", now")
}

// schedulesPage is the data of the page of schedules.
type schedulesPage struct {
	Schedules []schedule.View
	Jobs      known.Jobs
}

// New is the definition that the form for a new schedule shows.
func (p schedulesPage) New() *schedule.Schedule { return &schedule.Schedule{} }

// confirmRemove asks before a schedule, or what was changed of it, is removed.
func (f scheduleRows) confirmRemove(c *call) (any, error) {
	views, err := f.all(c.Context())
	name := c.PathValue("name")
	i := slices.IndexFunc(views, func(v schedule.View) bool { return v.Name == name })
	switch {
	case err != nil:
		return nil, err
	case i < 0:
		return nil, schedule.ErrNoSchedule
	case views[i].Source() == "file":
		return nil, schedule.ErrInFile
	}
	ask := confirmation{Title: "Remove schedule " + name + "?", Button: "Remove the schedule", Danger: true, Back: "/schedules",
		Text: "No run starts by it any more. Its runs and its ticks stay."}
	if text := views[i].FileText(); text != "" {
		ask.Title, ask.Button = "Back to the file’s "+name+"?", "Use the file’s schedule"
		ask.Text = "What was changed here is dropped. The file says: " + text
	}
	return ask, nil
}
