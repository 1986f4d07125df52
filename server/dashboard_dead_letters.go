package server

import (
	"fmt"
	"net/http"
)

// deadLettersPage is the data of the page of open dead letters.
type deadLettersPage struct {
	deadLetterFilter
	deadLetterList
	Jobs []string
}

func (p *pages) deadLetters(w http.ResponseWriter, r *http.Request) {
	f, err := readDeadLetterFilter(r.URL.Query(), p.server.jobs)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	list, err := p.server.findDeadLetters(r.Context(), f.query(perPage))
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	v := p.view(r, "Dead letters", "dead-letters", deadLettersPage{f, list, p.server.jobs.names()})
	v.Live = false // each load of the page reads dead letters from the store
	b, err := p.render("dead-letters", v)
	p.send(w, r, b, err)
}

// confirmReplay asks before all dead letters of a run are replayed.
func (p *pages) confirmReplay(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	at := "/runs/" + e.Run.RunID
	p.confirm(w, r, "runs", confirmation{Title: "Replay all dead letters of run " + e.Run.RunID + "?", Action: at + "/dead-letters/replay", Button: "Replay all", Back: at + "#dead-letters",
		Hidden: []hidden{{"all", "true"}},
		Text:   "The next run of " + e.Run.Job + " tries the inputs of all open dead letters of this run again."})
}

func (p *pages) replay(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	ids := r.PostForm["id"]
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			p.server.fail(w, r, refuse("that is not a dead letter's id"))
			return
		}
	}
	if len(ids) == 0 && r.PostForm.Get("all") == "" {
		p.server.fail(w, r, refuse("choose one dead letter or more, or replay all"))
		return
	}
	n, err := p.server.replay(r.Context(), e, ids)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/runs/%s?replayed=%d#dead-letters", e.Run.RunID, n), http.StatusSeeOther)
}
