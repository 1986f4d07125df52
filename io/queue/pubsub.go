package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/oauth2/google"

	"github.com/newsfork/seed-engine/io/secret"
)

// pubSub is a subscription of Google Pub/Sub, by its REST API: its Go client has no transport but gRPC.
// https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.subscriptions/pull
type pubSub struct {
	caller
	at string
}

const (
	pubSubLease = time.Minute
	pubSubBatch = 1000
	// pubSubWait is the shortest wait: what a request that ends early was about to bring comes again a lease later.
	pubSubWait = 3 * time.Second
)

// openPubSub opens one of the subscriptions or topics.
func openPubSub(ctx context.Context, u *url.URL, what string) (*pubSub, error) {
	at := cmp.Or(u.Query().Get("endpoint"), "https://pubsub.googleapis.com")
	sign := func(*http.Request, []byte) error { return nil }
	if emulator := os.Getenv("PUBSUB_EMULATOR_HOST"); emulator != "" {
		at = "http://" + emulator
	} else {
		// Later tokens are fetched long after ctx is done.
		keys, err := google.DefaultTokenSource(context.WithoutCancel(ctx), "https://www.googleapis.com/auth/pubsub")
		if err != nil {
			return nil, fmt.Errorf("finding Google credentials (set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login): %w", err)
		}
		sign = func(r *http.Request, _ []byte) error {
			t, err := keys.Token()
			if err == nil {
				t.SetAuthHeader(r)
			}
			return err
		}
	}
	return &pubSub{caller{secret.Client(httpTimeout), sign}, at + "/v1/projects/" + u.Host + "/" + what + u.Path + ":"}, nil
}

func (q *pubSub) Receive(ctx context.Context, n int, wait time.Duration) ([]Message, error) {
	var a struct {
		Received []struct {
			AckID   string `json:"ackId"`
			Attempt int    `json:"deliveryAttempt"`
			Message struct {
				Data       []byte            `json:"data"`
				Attributes map[string]string `json:"attributes"`
			} `json:"message"`
		} `json:"receivedMessages"`
	}
	within, cancel := context.WithTimeout(ctx, max(wait, pubSubWait))
	defer cancel()
	err := q.post(within, q.at+"pull", map[string]int{"maxMessages": min(n, pubSubBatch)}, &a)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // there was none
		return nil, nil
	}
	var out []Message
	var tokens []string
	for _, m := range a.Received {
		out = append(out, Message{Body: m.Message.Data, Attributes: m.Message.Attributes, Token: m.AckID, Tries: m.Attempt})
		tokens = append(tokens, m.AckID)
	}
	if err == nil && len(tokens) > 0 { // the subscription's own deadline can be ten seconds
		err = q.Extend(ctx, tokens)
	}
	return out, err
}

func (q *pubSub) Extend(ctx context.Context, tokens []string) error {
	return batches(tokens, pubSubBatch, func(part []string) error {
		return q.post(ctx, q.at+"modifyAckDeadline", map[string]any{"ackIds": part, "ackDeadlineSeconds": int(pubSubLease.Seconds())}, nil)
	})
}

func (q *pubSub) Ack(ctx context.Context, tokens []string) error {
	return batches(tokens, pubSubBatch, func(part []string) error {
		return q.post(ctx, q.at+"acknowledge", map[string]any{"ackIds": part}, nil)
	})
}

func (q *pubSub) Lease() time.Duration { return pubSubLease }
