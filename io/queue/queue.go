// Package queue takes messages from a queue that other programs fill: a bucket that reports its new objects, or a program
// that names raw files and domains. Open chooses one of four services by a URL. Desk keeps each message from its delivery to
// the completion mark of what it names. No promise: see docs/library.md.
package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Message is one delivery of a message. A queue may deliver a message again, and in any order.
type Message struct {
	Body       []byte
	Attributes map[string]string // Pub/Sub: a bucket's notification names the object here
	Token      string            // names the delivery; any process may use it
	Tries      int               // deliveries so far, this one included; 0: the queue does not count them
}

// Queue is a queue of one of the services. Its methods may be called in parallel.
type Queue interface {
	// Receive returns at most n messages, and waits at most for wait until there is one; none is no error. For Lease nobody
	// else gets them.
	Receive(ctx context.Context, n int, wait time.Duration) ([]Message, error)
	// Extend restarts the lease of deliveries. A delivery whose lease is over is no error.
	Extend(ctx context.Context, tokens []string) error
	// Ack removes messages from the queue. A delivery whose lease is over is no error: the message may come again.
	Ack(ctx context.Context, tokens []string) error
	// Lease is how long a delivery is this program's own without Extend.
	Lease() time.Duration
	Close() error
}

// ErrRefused is an error that the same request gets again: wrong keys, no such queue.
var ErrRefused = errors.New("the queue refuses this program")

// Forms are the forms of a queue's address.
const Forms = "cloudflare://ACCOUNT-ID/QUEUE-ID, sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME, pubsub://PROJECT/SUBSCRIPTION or nats://HOST:4222/STREAM/CONSUMER"

// parse returns an address whose host and parts of the path are there: two, for NATS and SQS three.
func parse(address, forms string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("it is no address of a queue: write " + forms)
	}
	if u.User != nil {
		return nil, errors.New("an address has no keys in it: set the service's environment variables")
	}
	parts := map[string]int{"cloudflare": 1, "pubsub": 1, "sqs": 2, "nats": 2, "tls": 2}[u.Scheme]
	names := strings.Split(strings.Trim(u.Path, "/"), "/")
	if parts == 0 || len(names) != parts || names[0] == "" || names[len(names)-1] == "" {
		return nil, errors.New("it is no address of a queue: write " + forms)
	}
	if at := u.Query().Get("endpoint"); at != "" {
		if e, err := url.Parse(at); err != nil || e.User != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" {
			return nil, errors.New("its endpoint must be a URL such as https://host:port, without keys")
		}
	}
	return u, nil
}

// Open opens the queue at an address (see Forms). Keys come from the service's usual environment variables and files.
// ?endpoint=URL replaces the address of the HTTP services.
func Open(ctx context.Context, address string) (Queue, error) {
	u, err := parse(address, Forms)
	if err != nil {
		return nil, err
	}
	var q Queue
	switch u.Scheme {
	case "cloudflare":
		q, err = openCloudflare(u)
	case "sqs":
		q, err = openSQS(ctx, u)
	case "pubsub":
		q, err = openPubSub(ctx, u, "subscriptions")
	default:
		q, err = openNATS(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the queue %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
	}
	return q, nil
}

const (
	// httpTimeout is longer than any service waits for a message.
	httpTimeout = 100 * time.Second
	// maxAnswer is the largest answer in bytes: 100 messages of 256 KiB in base64.
	maxAnswer = 64 << 20
	// maxReason is how many characters of an error's text are kept.
	maxReason = 300
)

// caller sends the requests of an HTTP service.
type caller struct {
	client *http.Client
	sign   func(r *http.Request, body []byte) error // adds the keys
}

// post sends in as JSON with these headers (names and values), and reads the answer into out; nil: it is not needed.
func (c caller) post(ctx context.Context, to string, in, out any, headers ...string) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for h := range slices.Chunk(headers, 2) {
		r.Header.Set(h[0], h[1])
	}
	if err := c.sign(r, body); err != nil {
		return fmt.Errorf("finding the keys: %w", err)
	}
	a, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the queue's answer: %w", err)
	}
	switch {
	case a.StatusCode/100 == 2 && (out == nil || len(text) == 0):
		return nil
	case a.StatusCode/100 == 2:
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("reading the queue's answer: %w", err)
		}
		return nil
	}
	err = fmt.Errorf("it answers %s: %s", a.Status, untrusted.Line(string(text), maxReason))
	if a.StatusCode < http.StatusInternalServerError && a.StatusCode != http.StatusRequestTimeout && a.StatusCode != http.StatusTooManyRequests {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// Close implements Queue.
func (c caller) Close() error {
	c.client.CloseIdleConnections()
	return nil
}
