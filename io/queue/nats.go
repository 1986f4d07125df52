package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsQueue is a durable pull consumer of NATS JetStream.
type natsQueue struct {
	conn     *nats.Conn
	consumer jetstream.Consumer
	lease    time.Duration
}

// natsTimeout bounds what answers at once.
const natsTimeout = 10 * time.Second

// dialNATS connects to the server of an address.
func dialNATS(u *url.URL) (*nats.Conn, jetstream.JetStream, error) {
	o := []nats.Option{nats.Name("seed-engine"), nats.MaxReconnects(-1), nats.Timeout(natsTimeout)}
	if file := os.Getenv("NATS_CREDS"); file != "" {
		o = append(o, nats.UserCredentials(file))
	}
	if user := os.Getenv("NATS_USER"); user != "" {
		o = append(o, nats.UserInfo(user, os.Getenv("NATS_PASSWORD")))
	}
	if token := os.Getenv("NATS_TOKEN"); token != "" {
		o = append(o, nats.Token(token))
	}
	conn, err := nats.Connect(u.Scheme+"://"+u.Host, o...)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting (NATS_CREDS, NATS_USER and NATS_PASSWORD, or NATS_TOKEN): %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
	}
	return conn, js, err
}

func openNATS(ctx context.Context, u *url.URL) (_ Queue, err error) {
	conn, js, err := dialNATS(u)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	stream, name, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	c, err := js.Consumer(ctx, stream, name)
	if err != nil {
		return nil, fmt.Errorf("looking for the durable consumer %s of the stream %s: %w", name, stream, err)
	}
	if set := c.CachedInfo().Config; set.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("%w: the consumer %s must acknowledge explicitly (--ack=explicit), or a kill loses messages", ErrRefused, name)
	}
	return &natsQueue{conn, c, c.CachedInfo().Config.AckWait}, nil
}

func (q *natsQueue) Receive(ctx context.Context, n int, wait time.Duration) ([]Message, error) {
	if !q.conn.IsConnected() { // it connects again by itself
		return nil, nats.ErrConnectionClosed
	}
	ctx, cancel := context.WithTimeout(ctx, max(wait, 50*time.Millisecond))
	defer cancel()
	// A request for many waits until all are there: take what there is, or wait for one.
	got, err := q.consumer.FetchNoWait(n)
	out, err := natsMessages(got, err)
	if err != nil || len(out) > 0 || wait <= 0 {
		return out, err
	}
	got, err = q.consumer.Fetch(1, jetstream.FetchContext(ctx))
	out, err = natsMessages(got, err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		err = nil
	}
	return out, err
}

func natsMessages(got jetstream.MessageBatch, err error) ([]Message, error) {
	if err != nil {
		return nil, err
	}
	var out []Message
	for m := range got.Messages() {
		tries := 0
		if about, err := m.Metadata(); err == nil {
			tries = int(min(about.NumDelivered, 1<<30))
		}
		out = append(out, Message{Body: m.Data(), Token: m.Reply(), Tries: tries})
	}
	return out, got.Error()
}

func (q *natsQueue) Extend(ctx context.Context, tokens []string) error {
	return q.reply(ctx, tokens, "+WPI") // work in progress
}

func (q *natsQueue) Ack(ctx context.Context, tokens []string) error {
	return q.reply(ctx, tokens, "+ACK")
}

// reply publishes to the deliveries' reply subjects, and waits until the server has read it.
func (q *natsQueue) reply(ctx context.Context, tokens []string, what string) error {
	for _, t := range tokens {
		if err := q.conn.Publish(t, []byte(what)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	return q.conn.FlushWithContext(ctx)
}

func (q *natsQueue) Lease() time.Duration { return q.lease }

func (q *natsQueue) Close() error {
	q.conn.Close()
	return nil
}
