package server

import "net/http"

// confirmation is a page that asks before something is done that cannot be undone. It
// is a form and works without scripts.
type confirmation struct {
	Title  string
	Text   string
	Action string // where the form goes, by POST
	Button string
	Danger bool
	Hidden []hidden
	Back   string // the page to return to
}

// hidden is a field of the form that the user does not see.
type hidden struct{ Name, Value string }

// confirm asks before an action.
func (p *pages) confirm(w http.ResponseWriter, r *http.Request, section string, c confirmation) {
	v := p.view(r, c.Title, section, c)
	v.Live = false
	b, err := p.render("confirm", v)
	p.send(w, r, b, err)
}

// confirmCancel asks before a run is cancelled.
func (p *pages) confirmCancel(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err == nil && !e.Active() {
		err = &overError{e.Run.RunID, e.State()}
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	at := "/runs/" + e.Run.RunID
	p.confirm(w, r, "runs", confirmation{Title: "Cancel run " + e.Run.RunID + "?", Action: at + "/cancel", Button: "Cancel the run", Danger: true, Back: at,
		Text: "A cancelled run cannot be resumed. What it has stored stays, and the next run of " + e.Run.Job + " does the rest. To continue it later, pause it instead."})
}
