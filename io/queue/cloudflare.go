package queue

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/newsfork/seed-engine/io/secret"
)

// cloudflare is a queue of Cloudflare Queues with an HTTP pull consumer:
// https://developers.cloudflare.com/queues/configuration/pull-consumers/
type cloudflare struct {
	caller
	at string // of the queue's messages
}

const (
	// cloudflareLease is long, because the service cannot extend a lease.
	cloudflareLease = 10 * time.Minute
	cloudflareBatch = 100
	// cloudflarePause is the pause between two pulls of an empty queue: the service does not wait for a message.
	cloudflarePause = time.Second
)

func openCloudflare(u *url.URL) (*cloudflare, error) {
	token := os.Getenv("CLOUDFLARE_API_TOKEN")
	if token == "" {
		return nil, errors.New("set CLOUDFLARE_API_TOKEN to a token that may read and write Queues")
	}
	sign := func(r *http.Request, _ []byte) error { r.Header.Set("Authorization", "Bearer "+token); return nil }
	at := cmp.Or(u.Query().Get("endpoint"), "https://api.cloudflare.com/client/v4")
	return &cloudflare{caller{secret.Client(httpTimeout), sign}, at + "/accounts/" + u.Host + "/queues" + u.Path + "/messages/"}, nil
}

// cloudflareAnswer is the envelope of Cloudflare's API.
type cloudflareAnswer struct {
	Success bool `json:"success"`
	Errors  []struct {
		Message string `json:"message"`
	} `json:"errors"`
	Result struct {
		Messages []struct {
			Body     json.RawMessage `json:"body"`
			Attempts int             `json:"attempts"`
			Lease    string          `json:"lease_id"`
		} `json:"messages"`
	} `json:"result"`
}

func (q *cloudflare) call(ctx context.Context, what string, in any) (a cloudflareAnswer, err error) {
	if err = q.post(ctx, q.at+what, in, &a); err == nil && !a.Success {
		err = fmt.Errorf("it answers without success: %v", a.Errors)
	}
	return a, err
}

func (q *cloudflare) Receive(ctx context.Context, n int, wait time.Duration) ([]Message, error) {
	for until := time.Now().Add(wait); ; {
		a, err := q.call(ctx, "pull", map[string]int64{"batch_size": int64(min(n, cloudflareBatch)), "visibility_timeout_ms": cloudflareLease.Milliseconds()})
		if pause := min(cloudflarePause, time.Until(until)); err == nil && len(a.Result.Messages) == 0 && pause > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(pause):
				continue
			}
		}
		var out []Message
		for _, m := range a.Result.Messages {
			out = append(out, Message{Body: cloudflareBody(m.Body), Token: m.Lease, Tries: m.Attempts})
		}
		return out, err
	}
}

// cloudflareBody returns the text of a body. The API encodes JSON and bytes in base64, and text not at all.
func cloudflareBody(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) != nil { // it is JSON itself
		return raw
	}
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
		return plain
	}
	return []byte(text)
}

// Extend does nothing: a lease lasts as long as it was given for, and a delivery that comes after it joins the one before.
func (q *cloudflare) Extend(context.Context, []string) error { return nil }

func (q *cloudflare) Ack(ctx context.Context, tokens []string) error {
	type lease struct {
		ID string `json:"lease_id"`
	}
	return batches(tokens, cloudflareBatch, func(part []string) error {
		acks := make([]lease, len(part))
		for i, t := range part {
			acks[i].ID = t
		}
		_, err := q.call(ctx, "ack", map[string]any{"acks": acks})
		return err
	})
}

func (q *cloudflare) Lease() time.Duration { return cloudflareLease }
