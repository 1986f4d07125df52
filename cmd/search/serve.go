package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const (
	// tokenVariable is the environment variable of the token that serve requires; with _FILE after it, of the file with the token.
	tokenVariable = "SEED_SEARCH_TOKEN"
	maxSearches   = 4 // at a time
	maxWait       = 30 * time.Second
	foundOnPage   = 10
)

//go:embed search.html
var pageText string

//go:embed style.css
var style []byte

var page = template.Must(template.New("").Funcs(template.FuncMap{"when": func(t time.Time) string { return t.UTC().Format(time.DateTime) }}).Parse(pageText))

// refusal is an answer other than 200, with what to do about it.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// question is what somebody searches for.
type question struct {
	Text, Provider string
	limit          int
}

func readQuestion(q url.Values) (question, error) {
	ask := question{Text: strings.TrimSpace(q.Get("q")), Provider: q.Get("provider"), limit: foundOnPage}
	if utf8.RuneCountInString(ask.Text) > maxQuestion {
		return ask, &refusal{400, fmt.Sprintf("q: write at most %d letters", maxQuestion)}
	}
	if ask.Provider != "" && !ledger.IsName(ask.Provider) {
		return ask, &refusal{400, "provider: that is not a provider's id"}
	}
	if q.Has("limit") {
		n, err := strconv.Atoi(q.Get("limit"))
		if err != nil || n < 1 || n > maxFound {
			return ask, &refusal{400, fmt.Sprintf("limit: use 1 to %d", maxFound)}
		}
		ask.limit = n
	}
	return ask, nil
}

// searcher answers questions.
type searcher struct {
	index  index.Index
	client *embed.Client // nil: by words alone
	log    *slog.Logger
	slots  chan struct{} // full while maxSearches are under way
}

func (s *searcher) ask(ctx context.Context, q question) (found index.Answer, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return found, &refusal{503, "too many searches are under way; try again"}
	}
	within, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	found, err = s.index.Ask(within, s.client, index.Query{Text: q.Text, Provider: q.Provider, Limit: q.limit})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &refusal{503, fmt.Sprintf("the search took over %v; try again later", maxWait)}
	}
	if found.Failure != nil {
		s.log.Warn("search_by_words_alone", "error", ledger.Redact(found.Failure.Error()))
	}
	return found, err
}

// api answers GET /api/v1/search?q=&provider=&limit= with JSON.
func (s *searcher) api(w http.ResponseWriter, r *http.Request) {
	q, err := readQuestion(r.URL.Query())
	if err == nil && q.Text == "" {
		err = &refusal{400, "q: write a question"}
	}
	var found index.Answer
	if err == nil {
		found, err = s.ask(r.Context(), q)
	}
	code, text := s.told(err)
	var body any = found
	if err != nil {
		body = map[string]string{"error": text}
	}
	b, _ := json.Marshal(body) // texts and numbers always encode
	s.send(w, code, "application/json", b)
}

// page answers GET /.
func (s *searcher) page(w http.ResponseWriter, r *http.Request) {
	var v struct {
		question
		index.Answer
		Refused string
	}
	q, err := readQuestion(r.URL.Query())
	if v.question = q; err == nil && q.Text != "" {
		v.Answer, err = s.ask(r.Context(), q)
	}
	code, text := s.told(err)
	v.Refused = text
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		code, text = s.told(err)
		b.Reset()
		_, _ = b.WriteString(text) // it never fails
	}
	s.send(w, code, "text/html; charset=utf-8", b.Bytes())
}

// told returns the status and the text for an error. Whoever asks gets only texts that were written for them; the log gets the others.
func (s *searcher) told(err error) (code int, text string) {
	var r *refusal
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.As(err, &r):
		return r.code, r.text
	}
	s.log.Error("search_failed", "error", ledger.Redact(err.Error()))
	return http.StatusInternalServerError, "the search failed; the program's log says why"
}

func (s *searcher) send(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// protect sets the headers, and refuses requests without the token: a bearer token, or the password of a browser's question for one.
// Without a token it answers requests to loopback names alone. Otherwise a web page whose name resolves to this machine (DNS
// rebinding) would have the same origin as the server.
func protect(token string, h http.Handler) http.Handler {
	headers := map[string]string{"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, given, _ = r.BasicAuth()
		}
		switch got := sha256.Sum256([]byte(given)); {
		case token == "" && !loopback(r.Host):
			http.Error(w, "this server answers requests to 127.0.0.1 and localhost only; set "+tokenVariable+" to serve other names", http.StatusMisdirectedRequest)
		case token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 0:
			w.Header().Set("WWW-Authenticate", `Basic realm="search", charset="UTF-8"`)
			http.Error(w, "send the token as a bearer token, or as the password", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// handler is the page and the API.
func (s *searcher) handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /api/v1/search", s.api)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) { s.send(w, http.StatusOK, "text/css", style) })
	return protect(token, http.MaxBytesHandler(mux, 0))
}

// serve serves the page and the API until ctx ends.
func serve(ctx context.Context, listen string, s *searcher, stdout io.Writer) error {
	token, err := secret.Read(tokenVariable)
	if err != nil {
		return usage.Errorf("%w", err)
	}
	if !loopback(listen) && token == "" {
		return usage.Errorf("--listen=%s can be reached from other machines, so a token is needed: set %s (32 random letters, as `openssl rand -hex 16` prints), or listen on 127.0.0.1",
			listen, tokenVariable)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return usage.Errorf("--listen: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "search page: http://%s/\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	h := &http.Server{Handler: s.handler(token), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWait)
		defer cancel()
		_ = h.Shutdown(within) // Serve says how it ended
	})
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
