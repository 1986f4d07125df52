// Package chat asks an OpenAI-compatible endpoint for one answer: POST
// {base}/chat/completions (platform.openai.com/docs/api-reference/chat). Programs such as
// vLLM, Ollama and llama.cpp serve the same.
package chat

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
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	timeout   = time.Minute
	maxAnswer = 1 << 20
	maxTokens = 500 // of the answer
)

// Client asks one endpoint for the answers of one model.
type Client struct {
	model, key string
	url        string
	http       *http.Client
}

// New returns a client. base is the endpoint's URL without /chat/completions, such as
// https://api.openai.com/v1. key is sent as a bearer token, unless it is empty; it is sent
// without TLS to this machine alone. Redirects are not followed.
func New(base, model, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery+u.Fragment != "" || u.User != nil {
		return nil, errors.New("write the endpoint as http://host/v1 or https://host/v1, without a password and without what follows the path")
	}
	if model == "" {
		return nil, errors.New("name the endpoint's model, such as gpt-5-mini")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if key != "" && u.Scheme == "http" && !local {
		return nil, fmt.Errorf("the key would be sent to %s without encryption; use https", u.Host)
	}
	return &Client{model: model, key: key, url: strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/chat/completions") + "/chat/completions",
		http: &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Answer returns what the model says to a text, by an instruction, as JSON.
func (c *Client) Answer(ctx context.Context, instruction, text string) (json.RawMessage, error) {
	b, err := c.answer(ctx, instruction, text)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.url, err)
	}
	return b, nil
}

func (c *Client) answer(ctx context.Context, instruction, text string) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{"model": c.model, "messages": []message{{"system", instruction}, {"user", text}},
		"max_tokens": maxTokens, "temperature": 0, "response_format": map[string]string{"type": "json_object"}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers with status %d: %s", answer.StatusCode, untrusted.Line(string(b), 300))
	}
	return parse(b)
}

// parse returns the JSON in an answer's first choice.
func parse(b []byte) (json.RawMessage, error) {
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("its answer is over %d MB", maxAnswer>>20)
	}
	var answer struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || len(answer.Choices) == 0 {
		return nil, errors.New("its answer is not a chat completion of OpenAI's API")
	}
	says := strings.TrimSpace(answer.Choices[0].Message.Content)
	says = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(says, "```json"), "```"), "```")) // some models quote it
	if !json.Valid([]byte(says)) {
		return nil, fmt.Errorf("the model's answer is no JSON: %q", untrusted.Line(says, 200))
	}
	return json.RawMessage(says), nil
}
