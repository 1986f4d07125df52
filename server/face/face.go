// Package face is what people and programs see of the server: the pages and the API. What is done is one row of a table (action), and so
// is each page (view).
//
// No promise: see docs/library.md.
package face

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// Parts are what the pages and the API show and change.
type Parts struct {
	Jobs      known.Jobs
	Store     store.Store
	Log       *slog.Logger
	Now       func() time.Time
	Board     *runs.Board
	Runner    *runs.Runner
	Scheduler *schedule.Scheduler
	Alarm     *alarm.Alarm
	Reports   *alarm.Summaries
	Guard     *people.Guard
	Published []botauth.Published                                                                  // about the crawlers, for everybody
	Open      explore.Opener                                                                       // opens where a job keeps what it found
	Start     func(ctx context.Context, run ledger.Run, flags []string, by string) (string, error) // starts a run and returns its id
	Offer     func(ctx context.Context, job string) (map[string][]string, error)                   // option.Runs
	RunFlags  map[string][]string                                                                  // of each run of a job
	Closing   chan struct{}                                                                        // closed when the server stops: streams end
}

// Face has the pages and the API.
type Face struct {
	Parts
	openAPI   []byte
	pages     pages
	explorer  *explorer
	providers []*policyFiles
	streams   atomic.Int64
}

// New makes the pages and the API.
func New(p Parts) (f *Face, err error) {
	f = &Face{Parts: p, explorer: newExplorer(p.Jobs, p.Open)}
	f.providers = f.newProviders()
	if f.openAPI, err = describe(p.Jobs); err != nil {
		return nil, err
	}
	f.pages.parse()
	return f, nil
}

// Close closes the jobs' databases.
func (f *Face) Close() error { return f.explorer.close() }

// Route is a route of the API or of the pages. openapi.json describes the API's.
type Route struct {
	Pattern string // of http.ServeMux
	Handle  http.HandlerFunc
}

// table has the rows of all resources.
func (f *Face) table() (actions []action, views []view) {
	for _, of := range []interface{ rows() ([]action, []view) }{runRows{f}, letterRows{f}, scheduleRows{f}, alertRows{f},
		removalRows{f}, exploreRows{f}, ownRows{f}} {
		a, v := of.rows()
		actions, views = append(actions, a...), append(views, v...)
	}
	for _, p := range f.providers {
		a, v := p.rows()
		actions, views = append(actions, a...), append(views, v...)
	}
	return actions, views
}

// Routes are the routes of the pages and of the API.
func (f *Face) Routes() []Route {
	all := []Route{
		{"GET /healthz", func(w http.ResponseWriter, r *http.Request) { f.answer(w, r, http.StatusOK, status{"ok"}) }},
		{"GET /readyz", f.ready},
		{"GET /openapi.json", file("application/json", f.openAPI)},
		{"GET /login", func(w http.ResponseWriter, r *http.Request) { f.SignInPage(w, r, http.StatusOK, "") }},
		{"POST /login", f.Guard.SignIn},
		{"POST /logout", f.Guard.SignOut},
		{"GET /events", f.events},
		{"GET /zone", f.setZone},
		{"GET /style.css", asset("style.css", "text/css; charset=utf-8")},
		{"GET /favicon.svg", asset("favicon.svg", "image/svg+xml")},
		{"GET /live.js", asset("live.js", "text/javascript; charset=utf-8")},
	}
	for _, d := range f.Published {
		all = append(all, Route{"GET " + d.Path, f.publish(d)})
	}
	for _, k := range f.explorer.kinds {
		all = append(all, Route{"GET /explore/" + k.Name + "/file", f.download(k)})
	}
	actions, views := f.table()
	for _, a := range actions {
		if a.At != "" {
			all = append(all, Route{a.At, a.api(f)})
		}
		if a.Form != "" {
			all = append(all, Route{"POST " + a.Form, a.sent(f)})
		}
		if a.Confirm != nil {
			views = append(views, asks("GET "+a.Form, a.section, a.Confirm))
		}
	}
	for _, v := range views {
		all = append(all, Route{v.At, f.show(v, http.StatusOK)})
	}
	return all
}

// Handler serves routes. It refuses an address that none of them has.
func (f *Face) Handler(routes []Route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.Pattern, r.Handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		no := &noRoute{ResponseWriter: w}
		h.ServeHTTP(no, r)
		switch {
		case no.code == http.StatusMethodNotAllowed:
			f.Fail(w, r, known.Answer(no.code, "this address takes only "+w.Header().Get("Allow")))
		case no.code == http.StatusNotFound && known.WantsPage(r):
			f.Fail(w, r, known.Answer(no.code, "there is no such page"))
		case no.code == http.StatusNotFound:
			f.Fail(w, r, known.Answer(no.code, "there is no such address; GET /openapi.json describes those that there are"))
		}
	})
}

// noRoute keeps back the text with which http.ServeMux refuses a request that no route
// matches. Redirects to a clean path pass.
type noRoute struct {
	http.ResponseWriter
	code int
}

func (n *noRoute) WriteHeader(code int) {
	if n.code = code; code < http.StatusBadRequest {
		n.ResponseWriter.WriteHeader(code)
	}
}

func (n *noRoute) Write(b []byte) (int, error) {
	if n.code < http.StatusBadRequest {
		return n.ResponseWriter.Write(b)
	}
	return len(b), nil
}

type status struct {
	Status string `json:"status"`
}

type failure struct {
	Error string `json:"error"`
	RunID string `json:"run_id,omitempty"`
}

// answer writes v as JSON.
func (f *Face) answer(w http.ResponseWriter, r *http.Request, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		f.Log.Error("answer_not_encoded", "path", r.URL.Path, "error", err)
		code, b = known.ErrInternal.Code, []byte(`{"error":"`+known.ErrInternal.Message+`"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n')) // a client that is gone needs no answer
}

// Fail answers a request that failed with err: with a page to a browser, with JSON to a program. The sender gets only messages that
// were written for senders. Other errors may contain paths and keys, so they go to the log.
func (f *Face) Fail(w http.ResponseWriter, r *http.Request, err error) {
	var told *known.AnswerError
	switch {
	case errors.As(err, &told):
	case r.Context().Err() != nil: // the client has closed the connection
		f.Log.Debug("client_gone", "method", r.Method, "path", r.URL.Path)
		told = known.Answer(http.StatusRequestTimeout, "the connection was closed")
	default:
		f.Log.Error("request_failed", "method", r.Method, "path", r.URL.Path, "error", ledger.Redact(err.Error()))
		told = known.ErrInternal
	}
	if message := known.Safe(told.Message); known.WantsPage(r) {
		f.message(w, r, told.Code, "error", "That did not work", message)
	} else {
		f.answer(w, r, told.Code, failure{message, told.RunID})
	}
}

func (f *Face) ready(w http.ResponseWriter, r *http.Request) {
	if f.Board.Ready(f.Now()) {
		f.answer(w, r, http.StatusOK, status{"ready"})
		return
	}
	f.answer(w, r, http.StatusServiceUnavailable, status{"the store does not answer; see the server's log"})
}

// ownRows are about the server itself.
type ownRows struct{ *Face }

func (f ownRows) rows() ([]action, []view) {
	newest := func(c *call) (any, error) { return f.Guard.Audit.Newest(c.Context(), known.AuditShown) }
	return grouped("server", "audit", action{At: "GET /api/v1/audit", ID: "listAudit",
			About: "Who asked the server for what: the newest 200 lines",
			Out:   "200 Audit The lines, newest first.", Do: func(c *call) (any, error) {
				lines, err := newest(c)
				return map[string]any{"lines": lines}, err
			}}),
		// each load of this page lists all lines in the store
		[]view{{At: "GET /audit", Template: "audit", Section: "audit", Title: "Audit", Still: true, Data: newest}}
}

// Public reports whether a path needs no token: operators of sites have none.
func (f *Face) Public(path string) bool {
	return slices.ContainsFunc(f.Published, func(d botauth.Published) bool { return d.Path == path })
}

func (f *Face) publish(d botauth.Published) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		made, err := d.Make(time.Now())
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		maps.Copy(w.Header(), made.Header)
		_, _ = w.Write(made.Body) // a client that is gone needs no answer
	}
}

const (
	maxStreams = 2000
	// minEventGap is the minimum time between two events, because a page reloads at each.
	minEventGap = time.Second
	heartbeat   = 15 * time.Second
	// eventTimeout is how long a browser may take to read an event.
	eventTimeout = 5 * time.Second
)

// events sends a page a server-sent event (WHATWG HTML, 9.2) when the board has
// changed. The page's script then loads the page again.
func (f *Face) events(w http.ResponseWriter, r *http.Request) {
	defer f.streams.Add(-1)
	if f.streams.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "30")
		f.Fail(w, r, known.Answer(http.StatusServiceUnavailable, "too many pages wait for events; reload this one to update it"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the events back
	c := http.NewResponseController(w)
	send := func(text string) bool {
		_ = c.SetWriteDeadline(time.Now().Add(eventTimeout)) // without deadlines a write to a dead client only ends later
		_, err := fmt.Fprint(w, text)
		return err == nil && c.Flush() == nil
	}
	beat, pause := time.NewTicker(heartbeat), time.NewTimer(0)
	defer beat.Stop()
	defer pause.Stop()
	var next <-chan struct{}
	for {
		select {
		case <-pause.C: // an event may be sent again
			next = f.Board.Next()
			if !send(fmt.Sprintf("event: change\ndata: %d\n\n", f.Board.Version.Load())) {
				return
			}
		case <-next:
			next = nil
			pause.Reset(minEventGap)
		case <-beat.C:
			if !send(": still here\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		case <-f.Closing:
			return
		}
	}
}
