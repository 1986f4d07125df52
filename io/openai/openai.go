// Package openai sends requests to an endpoint with OpenAI's API
// (platform.openai.com/docs/api-reference). Programs such as vLLM, Ollama and llama.cpp
// serve the same.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

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
	return &Endpoint{URL: strings.TrimSuffix(strings.TrimSuffix(base, "/"), operation) + operation, Model: model, key: key,
		HTTP: &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

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
// 200 is a *StatusError.
func (e *Endpoint) Post(ctx context.Context, request any, maxAnswer int64) ([]byte, error) {
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
		return nil, &StatusError{answer.StatusCode, untrusted.Text(strings.ToValidUTF8(string(b[:min(len(b), 300)]), ""), 0)}
	}
	if int64(len(b)) > maxAnswer {
		return nil, fmt.Errorf("its answer is over %d MB", maxAnswer>>20)
	}
	return b, nil
}
