package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	internalErrorText = "the server could not do this; its log says why"
	tooLargeText      = "the body is larger than 64 KiB"
)

var errNoRun = &known.AnswerError{Code: http.StatusNotFound, Message: "there is no such run; GET /api/v1/runs lists them"}

// route is a route of the API or of the pages. openapi.json describes the API's.
type route struct {
	pattern string // of http.ServeMux
	handle  http.HandlerFunc
}

func (s *Server) api() []route {
	all := []route{
		{"GET /healthz", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, http.StatusOK, status{"ok"}) }},
		{"GET /readyz", s.ready},
		{"GET /metrics", s.metrics.ServeHTTP},
		{"GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(s.openAPI) // a client that is gone needs no answer
		}},
	}
	for _, a := range s.actions() {
		if a.At != "" {
			all = append(all, route{a.At, a.api(s)})
		}
	}
	return all
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range slices.Concat(s.api(), s.pages.routes()) {
		mux.HandleFunc(r.pattern, r.handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, pattern := mux.Handler(r); pattern == "" {
			no := &noRoute{ResponseWriter: w}
			h.ServeHTTP(no, r)
			switch {
			case no.code == http.StatusMethodNotAllowed:
				s.refuse(w, r, no.code, "this address takes only "+w.Header().Get("Allow"))
			case no.code == http.StatusNotFound && wantsPage(r):
				s.refuse(w, r, no.code, "there is no such page")
			case no.code == http.StatusNotFound:
				s.refuse(w, r, no.code, "there is no such address; GET /openapi.json describes those that there are")
			}
			return
		}
		mux.ServeHTTP(w, r)
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

type startResponse struct {
	RunID string `json:"run_id"`
}

// answer writes v as JSON.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.log.Error("answer_not_encoded", "path", r.URL.Path, "error", err)
		code, b = http.StatusInternalServerError, []byte(`{"error":"`+internalErrorText+`"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n')) // a client that is gone needs no answer
}

// refuse answers with an error message: a page to a browser, JSON to a program.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, message string) {
	if wantsPage(r) && s.pages != nil {
		s.pages.write(w, r, code, "error", message)
		return
	}
	s.answer(w, r, code, failure{Error: message})
}

// fail answers a request that failed with err. The sender gets only messages that
// were written for senders. Other errors may contain paths and keys, so they go to
// the log.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if message, code, ok := known.Told(err); ok {
		s.refuse(w, r, code, message)
		return
	}
	var of interface {
		error
		OfRun() (id string)
	}
	var large *http.MaxBytesError
	var body *bodyError
	switch {
	case errors.As(err, &of) && wantsPage(r):
		s.refuse(w, r, http.StatusConflict, of.Error())
	case errors.As(err, &of):
		s.answer(w, r, http.StatusConflict, failure{of.Error(), of.OfRun()})
	case errors.As(err, &large):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLargeText)
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &body):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusRequestTimeout, "the body did not come in time")
	case errors.As(err, &body):
		w.Header().Set("Connection", "close")
		s.refuse(w, r, http.StatusBadRequest, "the body ended too early")
	case r.Context().Err() != nil: // the client has closed the connection
		s.log.Debug("client_gone", "method", r.Method, "path", r.URL.Path)
		s.refuse(w, r, http.StatusRequestTimeout, "the connection was closed")
	default:
		s.log.Error("request_failed", "method", r.Method, "path", r.URL.Path, "error", ledger.Redact(err.Error()))
		s.refuse(w, r, http.StatusInternalServerError, internalErrorText)
	}
}

var errNotJSON = &known.AnswerError{Code: http.StatusUnsupportedMediaType,
	Message: "send the body as JSON, with the header Content-Type: application/json"}

// jsonBody reads a request's body, which must be JSON or empty. A program may omit
// Content-Type, or send the one that curl -d sends. A browser adds Origin or
// Sec-Fetch-Site; such a request must be sent as JSON, which a form on another site
// cannot do.
func jsonBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"))
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded" && !browser) {
		return b, nil
	}
	return nil, errNotJSON
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.board.Ready(s.now()) {
		s.answer(w, r, http.StatusOK, status{"ready"})
		return
	}
	s.answer(w, r, http.StatusServiceUnavailable, status{"the store does not answer; see the server's log"})
}

// ownActions are what can be asked about the server itself.
func (s *Server) ownActions() []action {
	return grouped("server", "audit", action{At: "GET /api/v1/audit", ID: "listAudit",
		About: "Who asked the server for what: the newest 200 lines",
		Out:   "200 Audit The lines, newest first.", Do: func(c *call) (any, error) {
			lines, err := s.audit.Newest(c.Context(), known.AuditShown)
			return auditList{lines}, err
		}})
}

// auditList is the answer of GET /api/v1/audit.
type auditList struct {
	Lines []known.AuditLine `json:"lines"`
}
