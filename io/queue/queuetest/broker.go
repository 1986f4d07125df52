// Package queuetest has queues for tests: a broker in memory, the three HTTP services in front of it as their
// documentation describes them, and a real NATS server. No promise: see docs/library.md.
package queuetest

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/queue"
)

// Broker is a queue.Queue in memory.
type Broker struct {
	TTL time.Duration // of a lease

	mu         sync.Mutex
	messages   []*message
	deliveries int
	Acked      int
	Extended   int
}

type message struct {
	queue.Message
	until time.Time // leased
}

// Put adds a message.
func (b *Broker) Put(body string, attributes map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, &message{Message: queue.Message{Body: []byte(body), Attributes: attributes}})
}

// Len returns the number of messages that are not acknowledged.
func (b *Broker) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.messages)
}

// expire ends all leases.
func (b *Broker) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		m.until = time.Time{}
	}
}

// lease delivers messages for ttl.
func (b *Broker) lease(n int, ttl time.Duration) (out []queue.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, m := range b.messages {
		if len(out) < n && !now.Before(m.until) {
			b.deliveries++
			sum := md5.Sum(fmt.Append(nil, b.deliveries))
			m.Tries++
			m.Token, m.until = hex.EncodeToString(sum[:]), now.Add(ttl)
			out = append(out, m.Message)
		}
	}
	return out
}

// change extends the leases of deliveries, or with a negative ttl removes their messages. It returns how many deliveries are over.
func (b *Broker) change(tokens []string, ttl time.Duration) (over int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, t := range tokens {
		at := -1
		for i, m := range b.messages {
			if m.Token == t && now.Before(m.until) {
				at = i
			}
		}
		switch {
		case at < 0:
			over++
		case ttl < 0:
			b.messages = append(b.messages[:at], b.messages[at+1:]...)
			b.Acked++
		default:
			b.messages[at].until = now.Add(ttl)
			b.Extended++
		}
	}
	return over
}

func (b *Broker) Receive(ctx context.Context, n int, wait time.Duration) ([]queue.Message, error) {
	for until := time.Now().Add(wait); ; {
		out := b.lease(n, b.TTL)
		if len(out) > 0 || !time.Now().Before(until) {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(20*time.Millisecond, time.Until(until))):
		}
	}
}

func (b *Broker) Extend(_ context.Context, tokens []string) error {
	b.change(tokens, b.TTL)
	return nil
}

func (b *Broker) Ack(_ context.Context, tokens []string) error {
	b.change(tokens, -1)
	return nil
}

func (b *Broker) Lease() time.Duration { return b.TTL }
func (b *Broker) Close() error         { return nil }
