package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/io/untrusted"
)

// Event is a message to send: one event of CloudEvents 1.0 as JSON.
type Event struct {
	ID   string
	JSON json.RawMessage
}

// Out takes events.
type Out interface {
	// Send returns when the other side has all events: at most MaxEvents, together at most MaxBytes. After an error it may
	// have some: send all again. ErrRefused is no use to try again.
	Send(ctx context.Context, events []Event) error
	Close() error
}

const (
	// eventType and eventsType are the media types of CloudEvents.
	eventType  = "application/cloudevents+json"
	eventsType = "application/cloudevents-batch+json"
	// MaxEvents and MaxBytes bound a Send. Cloudflare takes 100 messages of 256 KB together, with what is around them.
	MaxEvents = 100
	MaxBytes  = 200_000
	// tokenVariable names the environment variable with the bearer token of an endpoint.
	tokenVariable = "SEED_EVENTS_TOKEN"
)

// OutForms are the forms of an address to send to.
const OutForms = "https://HOST/PATH, cloudflare://ACCOUNT-ID/QUEUE-ID, sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME, pubsub://PROJECT/TOPIC or nats://HOST:4222/STREAM/SUBJECT"

// CheckOut reports what is wrong with an address to send to, without a connection.
func CheckOut(address string) error {
	_, err := parseOut(address)
	return err
}

func parseOut(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return parse(address, OutForms)
	case u.User != nil || u.Host == "":
		return nil, errors.New("an endpoint is a URL such as https://host/path, without keys: set " + tokenVariable)
	}
	return u, nil
}

// OpenOut opens what an address to send to names (see OutForms). Keys are those of Open; of an endpoint SEED_EVENTS_TOKEN.
func OpenOut(ctx context.Context, address string) (Out, error) {
	u, err := parseOut(address)
	if err != nil {
		return nil, err
	}
	var out Out
	switch u.Scheme {
	case "http", "https":
		out, err = openEndpoint(u)
	case "cloudflare":
		out, err = openCloudflare(u)
	case "sqs":
		out, err = openSQS(ctx, u)
	case "pubsub":
		out, err = openPubSub(ctx, u, "topics")
	default:
		out, err = openSubject(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s://%s%s for events: %w", u.Scheme, u.Host, u.Path, err)
	}
	return out, nil
}

// endpoint takes batches of CloudEvents by POST, the batched mode of their HTTP binding.
type endpoint struct {
	caller
	url string
}

func openEndpoint(u *url.URL) (Out, error) {
	token, err := secret.Read(tokenVariable)
	sign := func(r *http.Request, _ []byte) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}
	return &endpoint{caller{secret.Client(httpTimeout), sign}, u.String()}, err
}

func (o *endpoint) Send(ctx context.Context, events []Event) error {
	all := make([]json.RawMessage, len(events))
	for i, e := range events {
		all[i] = e.JSON
	}
	return o.post(ctx, o.url, all, nil, "Content-Type", eventsType)
}

// Send implements Out: https://developers.cloudflare.com/api/resources/queues/subresources/messages/
func (q *cloudflare) Send(ctx context.Context, events []Event) error {
	type message struct {
		Body json.RawMessage `json:"body"`
		Type string          `json:"content_type"`
	}
	all := make([]message, len(events))
	for i, e := range events {
		all[i] = message{e.JSON, "json"}
	}
	_, err := q.call(ctx, "batch", map[string]any{"messages": all})
	return err
}

// Send implements Out: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func (q *sqs) Send(ctx context.Context, events []Event) error {
	for part := range slices.Chunk(events, sqsBatch) {
		var a sqsFailures
		var entries []map[string]any
		for i, e := range part {
			entry := map[string]any{"Id": strconv.Itoa(i), "MessageBody": string(e.JSON)}
			if strings.HasSuffix(q.url, ".fifo") {
				entry["MessageGroupId"], entry["MessageDeduplicationId"] = "seed-engine", e.ID
			}
			entries = append(entries, entry)
		}
		if err := q.call(ctx, "SendMessageBatch", map[string]any{"Entries": entries}, &a); err != nil {
			return err
		}
		for _, f := range a.Failed {
			return fmt.Errorf("%s: %s", untrusted.Line(f.Code, maxReason), untrusted.Line(f.Message, maxReason))
		}
	}
	return nil
}

// Send implements Out: https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.topics/publish
func (q *pubSub) Send(ctx context.Context, events []Event) error {
	type message struct {
		Data       []byte            `json:"data"`
		Attributes map[string]string `json:"attributes"`
	}
	all := make([]message, len(events))
	for i, e := range events {
		all[i] = message{e.JSON, map[string]string{"content-type": eventType}}
	}
	return q.post(ctx, q.at+"publish", map[string]any{"messages": all}, nil)
}

// subject is a subject of a JetStream stream. The stream drops what has an id that it had a moment ago.
type subject struct {
	conn         *nats.Conn
	js           jetstream.JetStream
	stream, name string
}

func openSubject(ctx context.Context, u *url.URL) (Out, error) {
	conn, js, err := dialNATS(u)
	if err != nil {
		return nil, err
	}
	o := &subject{conn: conn, js: js}
	o.stream, o.name, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	if _, err := js.Stream(ctx, o.stream); err != nil {
		conn.Close()
		return nil, fmt.Errorf("looking for the stream %s: %w", o.stream, err)
	}
	return o, nil
}

func (o *subject) Send(ctx context.Context, events []Event) error {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	for _, e := range events {
		m := &nats.Msg{Subject: o.name, Data: e.JSON, Header: nats.Header{"content-type": {eventType}}}
		if _, err := o.js.PublishMsg(ctx, m, jetstream.WithMsgID(e.ID), jetstream.WithExpectStream(o.stream)); err != nil {
			return err
		}
	}
	return nil
}

func (o *subject) Close() error {
	o.conn.Close()
	return nil
}
