// Package openai sends requests to an endpoint with OpenAI's API
// (platform.openai.com/docs/api-reference). Programs such as vLLM, Ollama and llama.cpp
// serve the same. No promise: see docs/library.md.
package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
)

// maxPause is the longest Retry-After that is waited for.
const maxPause = 10 * time.Minute

// Endpoint is one operation of the API at one place, for one model.
type Endpoint struct {
	// URL is the address of the operation.
	URL   string
	Model string
	HTTP  *http.Client // sends the requests
	key   string
	echo  *strings.Replacer // takes the key out of what the endpoint says, in the ways to write it

	mu     sync.Mutex
	paused time.Time // until when it asks for no request
}

// At returns the endpoint of an operation, such as /embeddings, whose answers take at most
// timeout. base is the API's URL without the operation, such as https://api.openai.com/v1.
// key is sent as a bearer token, unless it is empty; it is sent without TLS to this machine
// alone. Redirects are not followed. The error for no model names example.
func At(base, operation, model, example, key string, timeout time.Duration) (*Endpoint, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery+u.Fragment != "" || u.User != nil {
		return nil, errors.New("write the endpoint as http://host/v1 or https://host/v1, without a password and without what follows the path")
	}
	if model == "" {
		return nil, fmt.Errorf("name the endpoint's model, such as %s", example)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if key != "" && u.Scheme == "http" && !local {
		return nil, fmt.Errorf("the key would be sent to %s without encryption; use https", u.Host)
	}
	return &Endpoint{URL: strings.TrimSuffix(strings.TrimSuffix(base, "/"), operation) + operation, Model: model, key: key, echo: echo(key),
		HTTP: secret.Client(timeout)}, nil
}

func echo(key string) *strings.Replacer {
	if key == "" {
		return strings.NewReplacer()
	}
	quoted, _ := json.Marshal(key) // a string always has JSON
	escaped := strings.Trim(string(quoted), `"`)
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(escaped)
	var pairs []string
	for _, k := range []string{key, escaped, plain, strings.ReplaceAll(escaped, "/", `\/`), strings.ReplaceAll(plain, "/", `\/`),
		url.QueryEscape(key), url.PathEscape(key), base64.StdEncoding.EncodeToString([]byte(key)), strings.Trim(strconv.Quote(key), `"`)} {
		pairs = append(pairs, k, "REDACTED")
	}
	return strings.NewReplacer(pairs...)
}

// redacted is an error whose text repeated the key.
type redacted struct {
	error
	text string
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.error }

// Close closes the idle connections.
func (e *Endpoint) Close() { e.HTTP.CloseIdleConnections() }

// StatusError is an answer that is not 200.
type StatusError struct {
	Status int
	Text   string // the beginning of the answer
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Text) }

// HTTPStatusCode lets store.Retry judge whether another try can succeed.
func (e *StatusError) HTTPStatusCode() int { return e.Status }

// PausedError says that nothing was sent, because the endpoint asks for a pause that is
// too long to wait for.
type PausedError struct{ Until time.Time }

func (e *PausedError) Error() string {
	return "it asks for no request before " + e.Until.UTC().Format(time.RFC3339) + " (Retry-After); try again then"
}

// wait waits while the endpoint asks for a pause. A pause is for all requests: where one
// is refused, the others would be too.
func (e *Endpoint) wait(ctx context.Context) error {
	for {
		e.mu.Lock()
		until := e.paused
		e.mu.Unlock()
		pause := time.Until(until)
		if pause <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); pause > maxPause || ok && deadline.Before(until) {
			return &PausedError{until}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// pause records the Retry-After of an answer that refuses a request for now.
func (e *Endpoint) pause(answer *http.Response) {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return
	}
	now := time.Now()
	if d, ok := web.RetryAfter(answer.Header, now); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if until := now.Add(d); until.After(e.paused) {
			e.paused = until
		}
	}
}

// Post sends a request, after the pause that the endpoint may ask for, and returns the
// body of the answer, which has at most maxAnswer bytes. The error for another status than
// 200 is a *StatusError. Neither has the key in it, also if the endpoint repeats it.
func (e *Endpoint) Post(ctx context.Context, request any, maxAnswer int64) ([]byte, error) {
	b, err := e.post(ctx, request, maxAnswer)
	if err != nil {
		if text := e.echo.Replace(err.Error()); text != err.Error() {
			return nil, &redacted{err, text}
		}
		return nil, err
	}
	if len(e.key) > minSecret { // a shorter one is no secret, and may be a part of the answer
		b = []byte(e.echo.Replace(string(b)))
	}
	return b, nil
}

// minSecret is the length in bytes up to which a key can be there by chance.
const minSecret = 7

func (e *Endpoint) post(ctx context.Context, request any, maxAnswer int64) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if err := e.wait(ctx); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	answer, err := e.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	e.pause(answer)
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, &StatusError{answer.StatusCode, untrusted.Text(e.echo.Replace(string(b)), 300)}
	}
	if int64(len(b)) > maxAnswer {
		return nil, fmt.Errorf("its answer is over %d MB", maxAnswer>>20)
	}
	return b, nil
}
