package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
)

// deadLettersPage is the data of the page of dead letters.
type deadLettersPage struct {
	deadLetterFilter
	deadLetterList
	Jobs, States []string
	Replayed     string
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
	v := p.view(r, "Dead letters", "dead-letters", deadLettersPage{f, list, p.server.jobs.names(), letterStates, r.URL.Query().Get("replayed")})
	v.Live = false // each load of the page reads dead letters from the store
	b, err := p.render("dead-letters", v)
	p.send(w, r, b, err)
}

// letterPage is the data of the page of one dead letter.
type letterPage struct {
	deadLetter
	Runs    []letterRun   // that failed with this input, the newest first
	Objects []storeObject // what the store has of the input
	More    bool          // the store has more of it
}

// letterRun is a run that failed with the input of a dead letter.
type letterRun struct {
	ID  string
	Log string // the page of its log with the lines that name the input
}

type storeObject struct {
	Key  string
	Size int64
}

// maxObjects is how many objects of an input are shown.
const maxObjects = 20

func (p *pages) letter(w http.ResponseWriter, r *http.Request) {
	d, err := p.server.letter(r)
	v := letterPage{deadLetter: d}
	if err == nil {
		v.Objects, v.More, err = p.server.objectsOf(r.Context(), d.Input)
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	runs := append(slices.Clone(d.Earlier), d.RunID)
	slices.Reverse(runs)
	for _, id := range runs {
		at := letterRun{ID: id}
		if text := searchFor(d.Input); text != "" {
			at.Log = "/runs/" + id + "/log?" + url.Values{"q": {text}}.Encode()
		}
		v.Runs = append(v.Runs, at)
	}
	page := p.view(r, "Dead letter: "+words(d.Kind), "dead-letters", v)
	page.Live = false // each load of the page reads the store
	b, err := p.render("dead-letter", page)
	p.send(w, r, b, err)
}

// searchFor is what the lines of a log that are about an input have.
func searchFor(in ledger.Input) string {
	text := cmp.Or(in.DomainID, in.URL, in.Source, in.File, in.Key)
	if u, err := url.Parse(in.URL); err == nil && u.Hostname() != "" {
		text = u.Hostname()
	}
	if len(text) > maxQueryText {
		return ""
	}
	return text
}

// objectsOf are the objects of the store that belong to an input, at most maxObjects.
func (s *Server) objectsOf(ctx context.Context, in ledger.Input) (all []storeObject, more bool, err error) {
	for _, prefix := range []string{in.Key, in.File} {
		if prefix == "" {
			continue
		}
		for o, err := range s.store.List(ctx, prefix) {
			if err != nil {
				return nil, false, fmt.Errorf("listing %s: %w", prefix, err)
			}
			if len(all) == maxObjects {
				return all, true, nil
			}
			all = append(all, storeObject{o.Key, o.Size})
		}
	}
	return all, false, nil
}

func (p *pages) dismissLetter(w http.ResponseWriter, r *http.Request) {
	d, err := p.server.letter(r)
	if err == nil {
		if err = r.ParseForm(); err != nil {
			err = formError(err)
		} else {
			_, err = p.server.dismiss(r.Context(), d, r.PostForm.Get("note"))
		}
	}
	p.done(w, r, "/dead-letters/"+d.Job+"/"+d.ID, err)
}

func (p *pages) reopenLetter(w http.ResponseWriter, r *http.Request) {
	d, err := p.server.letter(r)
	if err == nil {
		_, err = p.server.reopen(r.Context(), d)
	}
	p.done(w, r, "/dead-letters/"+d.Job+"/"+d.ID, err)
}

func (p *pages) replayLetter(w http.ResponseWriter, r *http.Request) {
	d, err := p.server.letter(r)
	if err == nil && !d.Open() {
		err = conflict("a dismissed dead letter is not replayed; reopen it first")
	}
	if err == nil {
		if err = p.server.audited(r.Context(), "dead_letters_replay", d.RunID, d.ID); err == nil {
			err = p.server.runner.replay(r.Context(), d.Job, "", []string{d.ID})
		}
	}
	p.done(w, r, "/dead-letters?replayed=1&job="+d.Job, err)
}

// confirmReplayFound asks before the dead letters that a filter chooses are replayed.
func (p *pages) confirmReplayFound(w http.ResponseWriter, r *http.Request) {
	f, err := readDeadLetterFilter(r.URL.Query(), p.server.jobs)
	n := 0
	if err == nil {
		_, n, err = p.server.toReplay(r.Context(), f)
	}
	if err == nil && n == 0 {
		err = conflict("the filter chooses no open dead letter")
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	c := confirmation{Title: fmt.Sprintf("Replay %s dead letters?", formatCount(int64(n))), Action: "/dead-letters/replay", Button: "Replay them", Back: f.URL(""),
		Text: "The next run of each of their jobs tries their inputs again. Dismissed ones are left out."}
	for name, v := range f.values() {
		c.Hidden = append(c.Hidden, hidden{name, v[0]})
	}
	slices.SortFunc(c.Hidden, func(a, b hidden) int { return cmp.Compare(a.Name, b.Name) })
	p.confirm(w, r, "dead-letters", c)
}

func (p *pages) replayFound(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	f, err := readDeadLetterFilter(r.PostForm, p.server.jobs)
	var done replayed
	if err == nil {
		done, err = p.server.replayFound(r.Context(), f)
	}
	p.done(w, r, fmt.Sprintf("%s&replayed=%d", f.URL(""), done.Replayed), err)
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
		if !ledger.IsName(id) {
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
