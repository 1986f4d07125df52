// Package chat asks an OpenAI-compatible endpoint for one answer: POST
// {base}/chat/completions (platform.openai.com/docs/api-reference/chat). No promise: see docs/library.md.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/openai"
	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	timeout   = time.Minute
	maxAnswer = 1 << 20
	maxTokens = 500 // of the answer
)

// Client asks one endpoint for the answers of one model.
type Client struct{ at *openai.Endpoint }

// New returns a client. base is the endpoint's URL without /chat/completions. See openai.At
// for the key and for redirects.
func New(base, model, key string) (*Client, error) {
	at, err := openai.At(base, "/chat/completions", model, "gpt-5-mini", key, timeout)
	if err != nil {
		return nil, err
	}
	return &Client{at}, nil
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.at.Close() }

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Answer returns what the model says to a text, by an instruction, as JSON.
func (c *Client) Answer(ctx context.Context, instruction, text string) (json.RawMessage, error) {
	b, err := c.answer(ctx, instruction, text)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.at.URL, err)
	}
	return b, nil
}

func (c *Client) answer(ctx context.Context, instruction, text string) (json.RawMessage, error) {
	b, err := c.at.Post(ctx, map[string]any{"model": c.at.Model, "messages": []message{{"system", instruction}, {"user", text}},
		"max_tokens": maxTokens, "temperature": 0, "response_format": map[string]string{"type": "json_object"}}, maxAnswer)
	var status *openai.StatusError
	if errors.As(err, &status) {
		return nil, fmt.Errorf("it answers with status %d: %s", status.Status, untrusted.Line(status.Text, 300))
	}
	if err != nil {
		return nil, err
	}
	return parse(b)
}

// parse returns the JSON in an answer's first choice.
func parse(b []byte) (json.RawMessage, error) {
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
