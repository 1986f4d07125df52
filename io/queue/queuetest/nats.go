package queuetest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NATSServer is a NATS server with the stream SEED and its durable consumer engine.
type NATSServer struct {
	Service
	options server.Options
	server  *server.Server
	js      jetstream.JetStream
	t       testing.TB
}

// NATS starts a NATS server in this process. A lease lasts for ttl.
func NATS(t testing.TB, ttl time.Duration) *NATSServer {
	s := &NATSServer{t: t, options: server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}}
	s.Start()
	t.Cleanup(s.Stop)
	conn, err := nats.Connect(s.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	s.check(err)
	t.Cleanup(conn.Close)
	s.js, err = jetstream.New(conn)
	s.check(err)
	ctx := context.Background()
	stream, err := s.js.CreateStream(ctx, jetstream.StreamConfig{Name: "SEED", Subjects: []string{"seed.>"}, Retention: jetstream.WorkQueuePolicy})
	s.check(err)
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "engine", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ttl, MaxAckPending: 5000})
	s.check(err)
	s.Service = Service{Address: s.server.ClientURL() + "/SEED/engine", Out: s.server.ClientURL() + "/SEED/seed.raw",
		Put: func(body string) { // until the server that was killed is there again
			for range 200 {
				if _, err = s.js.Publish(ctx, "seed.raw", []byte(body)); err == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Error(err)
		},
		Len: func() int {
			at, err := s.js.Stream(ctx, "SEED")
			if err != nil {
				return -1
			}
			return int(at.CachedInfo().State.Msgs)
		},
		Expire: func() { time.Sleep(ttl + 100*time.Millisecond) },
	}
	return s
}

func (s *NATSServer) check(err error) {
	if s.t.Helper(); err != nil {
		s.t.Fatal(err)
	}
}

// Start starts the server again after Stop, with the messages that it has stored.
func (s *NATSServer) Start() {
	o := s.options
	n, err := server.NewServer(&o)
	s.check(err)
	n.Start()
	if !n.ReadyForConnections(10 * time.Second) {
		s.t.Fatal("the NATS server does not start")
	}
	s.server, s.options.Port = n, o.Port
}

// Stop stops the server.
func (s *NATSServer) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
