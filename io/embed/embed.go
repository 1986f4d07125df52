// Package embed asks an OpenAI-compatible endpoint for the embeddings of texts: POST
// {base}/embeddings (platform.openai.com/docs/api-reference/embeddings). Programs such as
// vLLM, Ollama and llama.cpp serve the same.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	// batch is how many texts a request has, and parallel how many requests are under way.
	batch    = 64
	parallel = 4
	// maxAnswer is the largest answer: a batch of 8,192 numbers of 20 letters each.
	maxAnswer = 16 << 20
	timeout   = 2 * time.Minute
	// maxDimensions bounds the length of a vector.
	maxDimensions = 8192
)

// Client asks one endpoint for the embeddings of one model.
type Client struct {
	model, key string
	url        string
	http       *http.Client
}

// New returns a client. base is the endpoint's URL without /embeddings, such as
// https://api.openai.com/v1. key is sent as a bearer token, unless it is empty; it is sent
// without TLS to this machine alone. Redirects are not followed.
func New(base, model, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery+u.Fragment != "" || u.User != nil {
		return nil, errors.New("write the endpoint as http://host/v1 or https://host/v1, without a password and without what follows the path")
	}
	if model == "" {
		return nil, errors.New("name the endpoint's model, such as text-embedding-3-small")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if key != "" && u.Scheme == "http" && !local {
		return nil, fmt.Errorf("the key would be sent to %s without encryption; use https", u.Host)
	}
	return &Client{model: model, key: key, url: strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/embeddings") + "/embeddings",
		http: &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Model names the model.
func (c *Client) Model() string { return c.model }

// Vectors returns the embedding of each text, scaled to length 1. It sends the texts in
// batches, and a batch again after a failure that can pass.
func (c *Client) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	at := 0
	for some := range slices.Chunk(texts, batch) {
		into := all[at : at+len(some)]
		at += len(some)
		g.Go(func() error {
			return store.Retry(ctx, func() error {
				vectors, err := c.ask(ctx, some)
				copy(into, vectors)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("asking %s for embeddings: %w", c.url, err)
	}
	for _, v := range all {
		if len(v) != len(all[0]) {
			return nil, fmt.Errorf("the embeddings of %s have different lengths, %d and %d", c.url, len(all[0]), len(v))
		}
	}
	return all, nil
}

// StatusError is an answer that is not 200.
type StatusError struct {
	Status int
	Text   string // the beginning of the answer
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Text) }

// HTTPStatusCode lets store.Retry judge whether another try can succeed.
func (e *StatusError) HTTPStatusCode() int { return e.Status }

func (c *Client) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.model, "input": texts, "encoding_format": "float"})
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
		return nil, &StatusError{answer.StatusCode, untrusted.Text(strings.ToValidUTF8(string(b[:min(len(b), 300)]), ""), 0)}
	}
	return parse(b, len(texts))
}

// parse reads an answer with n embeddings.
func parse(b []byte, n int) ([][]float32, error) {
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the answer is over %d MB", maxAnswer>>20)
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, errors.New("the answer is not JSON with the embeddings of OpenAI's API")
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("the answer has %d embeddings for %d texts", len(answer.Data), n)
	}
	all := make([][]float32, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || all[d.Index] != nil {
			return nil, fmt.Errorf("the answer has index %d for %d texts, or has it twice", d.Index, n)
		}
		v, err := unit(d.Embedding)
		if err != nil {
			return nil, err
		}
		all[d.Index] = v
	}
	return all, nil
}

// unit scales a vector to length 1.
func unit(v []float64) ([]float32, error) {
	if len(v) == 0 || len(v) > maxDimensions {
		return nil, fmt.Errorf("an embedding has %d numbers", len(v))
	}
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return nil, errors.New("an embedding has no direction: all of it is 0, or too large")
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x / length)
	}
	return out, nil
}
