package server

import (
	"slices"
)

// schedulesPage is the data of the page of schedules.
type schedulesPage struct {
	Schedules []scheduleView
	Jobs      jobList
}

// Dated reports whether the schedule's runs can have a date.
func (p schedulesPage) Dated(name string) bool {
	j, _ := p.Jobs.named(name)
	return j.dateField() != ""
}

// New is the definition that the form for a new schedule shows.
func (p schedulesPage) New() *Schedule { return &Schedule{} }

func (p *pages) scheduleViews() []view {
	return []view{
		{At: "GET /schedules", Template: "schedules", Section: "schedules", Title: "Schedules", Data: func(c *call) (any, error) {
			views, err := p.server.scheduleViews(c.Context())
			return schedulesPage{views, p.server.jobs.started()}, err
		}},
		// each load of this page lists all lines in the store
		{At: "GET /audit", Template: "audit", Section: "audit", Title: "Audit", Still: true, Data: func(c *call) (any, error) {
			return p.server.audit.newest(c.Context(), auditShown)
		}},
	}
}

// confirmRemove asks before a schedule, or what was changed of it, is removed.
func (s *Server) confirmRemove(c *call) (confirmation, error) {
	views, err := s.scheduleViews(c.Context())
	name := c.PathValue("name")
	i := slices.IndexFunc(views, func(v scheduleView) bool { return v.Name == name })
	switch {
	case err != nil:
		return confirmation{}, err
	case i < 0:
		return confirmation{}, errNoSchedule
	case views[i].Source() == "file":
		return confirmation{}, errInFile
	}
	ask := confirmation{Title: "Remove schedule " + name + "?", Button: "Remove the schedule", Danger: true, Back: "/schedules",
		Text: "No run starts by it any more. Its runs and its ticks stay."}
	if text := views[i].FileText(); text != "" {
		ask.Title, ask.Button, ask.Text = "Back to the file’s "+name+"?", "Use the file’s schedule", "What was changed here is dropped. The file says: "+text
	}
	return ask, nil
}
