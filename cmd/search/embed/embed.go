// Package embed asks an OpenAI-compatible endpoint for the embeddings of texts: POST
// {base}/embeddings (platform.openai.com/docs/api-reference/embeddings). No promise: see docs/library.md.
package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/openai"
	"github.com/newsfork/seed-engine/io/store"
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

// KeyVariable is the environment variable with an endpoint's key, which is no flag because everybody on the machine sees flags.
const KeyVariable = "SEED_EMBED_KEY"

// Client asks one endpoint for the embeddings of one model.
type Client struct{ at *openai.Endpoint }

// New returns a client. base is the endpoint's URL without /embeddings. See openai.At for
// the key and for redirects.
func New(base, model, key string) (*Client, error) {
	at, err := openai.At(base, "/embeddings", model, "text-embedding-3-small", key, timeout)
	if err != nil {
		return nil, err
	}
	return &Client{at}, nil
}

// Model names the model.
func (c *Client) Model() string { return c.at.Model }

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
		return nil, fmt.Errorf("asking %s for embeddings: %w", c.at.URL, err)
	}
	for _, v := range all {
		if len(v) != len(all[0]) {
			return nil, fmt.Errorf("the embeddings of %s have different lengths, %d and %d", c.at.URL, len(all[0]), len(v))
		}
	}
	return all, nil
}

func (c *Client) ask(ctx context.Context, texts []string) ([][]float32, error) {
	b, err := c.at.Post(ctx, map[string]any{"model": c.at.Model, "input": texts, "encoding_format": "float"}, maxAnswer)
	if err != nil {
		return nil, err
	}
	return parse(b, len(texts))
}

// parse reads an answer with n embeddings.
func parse(b []byte, n int) ([][]float32, error) {
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
