package queue_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/queue/queuetest"
)

var services = map[string]func(*testing.T) queuetest.Service{
	"cloudflare": func(t *testing.T) queuetest.Service { return queuetest.Cloudflare(t) },
	"sqs":        func(t *testing.T) queuetest.Service { return queuetest.SQS(t) },
	"pubsub":     func(t *testing.T) queuetest.Service { return queuetest.PubSub(t) },
	"nats":       func(t *testing.T) queuetest.Service { return queuetest.NATS(t, time.Second).Service },
}

// Every service delivers the events that it is sent, each as it is.
func TestSend(t *testing.T) {
	events := make([]queue.Event, 25) // SQS takes ten at once
	for i := range events {
		id := strconv.Itoa(i)
		events[i] = queue.Event{ID: id, JSON: json.RawMessage(`{"id":"` + id + `","title":"Größe"}`)}
	}
	var want []string
	for _, e := range events {
		want = append(want, string(e.JSON))
	}
	for name, start := range services {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for k, v := range s.Env {
				t.Setenv(k, v)
			}
			out, err := queue.OpenOut(t.Context(), cmp.Or(s.Out, s.Address))
			require.NoError(t, err)
			require.NoError(t, out.Send(t.Context(), events))
			require.NoError(t, out.Close())
			q, err := queue.Open(t.Context(), s.Address)
			require.NoError(t, err)
			var got []string
			for until := time.Now().Add(10 * time.Second); len(got) < len(want) && time.Now().Before(until); {
				messages, err := q.Receive(t.Context(), 30, 100*time.Millisecond)
				require.NoError(t, err)
				for _, m := range messages {
					got = append(got, string(m.Body))
				}
			}
			require.ElementsMatch(t, want, got)
			require.NoError(t, q.Close())
		})
	}
	t.Run("endpoint", func(t *testing.T) {
		t.Setenv("SEED_EVENTS_TOKEN", "secret")
		status := http.StatusAccepted
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, []string{"Bearer secret", "application/cloudevents-batch+json"}, []string{r.Header.Get("Authorization"), r.Header.Get("Content-Type")})
			var got []json.RawMessage
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
			assert.Len(t, got, len(want))
			w.WriteHeader(status)
		}))
		defer s.Close()
		out, err := queue.OpenOut(t.Context(), s.URL+"/in")
		require.NoError(t, err)
		require.NoError(t, out.Send(t.Context(), events))
		status = http.StatusServiceUnavailable
		err = out.Send(t.Context(), events)
		require.ErrorContains(t, err, "503")
		require.False(t, errors.Is(err, queue.ErrRefused))
		status = http.StatusUnauthorized
		require.ErrorIs(t, out.Send(t.Context(), events), queue.ErrRefused)
	})
}

// Every service delivers a message again until it is acknowledged, and never afterwards.
func TestServices(t *testing.T) {
	for name, start := range services {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for k, v := range s.Env {
				t.Setenv(k, v)
			}
			ctx := t.Context()
			q, err := queue.Open(ctx, s.Address)
			require.NoError(t, err)
			defer func() { require.NoError(t, q.Close()) }()
			receive := func(want ...string) (tokens []string) {
				t.Helper()
				var bodies []string
				for until := time.Now().Add(10 * time.Second); len(bodies) < max(len(want), 1) && time.Now().Before(until); {
					got, err := q.Receive(ctx, 10, 100*time.Millisecond)
					require.NoError(t, err)
					for _, m := range got {
						bodies, tokens = append(bodies, string(m.Body)), append(tokens, m.Token)
					}
					if len(want) == 0 {
						break
					}
				}
				require.ElementsMatch(t, want, bodies)
				return tokens
			}
			const a, b = `{"file_path":"a"}`, `{"file_path":"b"}`
			s.Put(a)
			s.Put(b)
			receive(a, b)
			receive() // both are leased
			s.Expire()
			tokens := receive(a, b)
			require.NoError(t, q.Extend(ctx, tokens))
			require.NoError(t, q.Ack(ctx, tokens[:1]))
			require.NoError(t, q.Ack(ctx, tokens[:1]), "of a delivery that is over")
			require.Eventually(t, func() bool { return s.Len() == 1 }, 5*time.Second, 20*time.Millisecond)
			s.Expire()
			got, err := q.Receive(ctx, 10, time.Second)
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.Equal(t, 3, got[0].Tries)
			require.NoError(t, q.Ack(ctx, []string{got[0].Token}))
			require.Eventually(t, func() bool { return s.Len() == 0 }, 5*time.Second, 20*time.Millisecond)
		})
	}
}

// Wrong keys and queues are refusals, which another try does not mend; a dead server is not.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		service queuetest.Service
		env     [2]string
	}{
		"cloudflare": {queuetest.Cloudflare(t), [2]string{"CLOUDFLARE_API_TOKEN", "other"}},
		"sqs":        {queuetest.SQS(t), [2]string{"AWS_ACCESS_KEY_ID", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.service.Env {
				t.Setenv(k, v)
			}
			t.Setenv(c.env[0], c.env[1])
			q, err := queue.Open(t.Context(), c.service.Address)
			require.NoError(t, err)
			_, err = q.Receive(t.Context(), 1, 0)
			require.ErrorIs(t, err, queue.ErrRefused)
		})
	}
	t.Setenv("CLOUDFLARE_API_TOKEN", "x")
	q, err := queue.Open(t.Context(), "cloudflare://a/b?endpoint=http://127.0.0.1:1")
	require.NoError(t, err)
	_, err = q.Receive(t.Context(), 1, 0)
	require.Error(t, err)
	require.False(t, errors.Is(err, queue.ErrRefused))
}

// A redirect would lead the key to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s has the key %q", r.Host, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect))
	defer moved.Close()
	t.Setenv("CLOUDFLARE_API_TOKEN", "x")
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	for _, address := range []string{"cloudflare://a/b", "sqs://sqs.eu-west-1.amazonaws.com/1/name"} {
		q, err := queue.Open(t.Context(), address+"?endpoint="+moved.URL)
		require.NoError(t, err)
		_, err = q.Receive(t.Context(), 1, 0)
		require.ErrorIs(t, err, queue.ErrRefused)
		require.ErrorContains(t, err, "307 Temporary Redirect")
	}
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://hooks.example/in": true, "sqs://sqs.eu-west-1.amazonaws.com/1/name": true, "pubsub://p/topic": true, "nats://host:4222/S/s.new": true,
		"": false, "https://": false, "https://user:secret@host/": false, "ftp://host/x": false, "nats://user:secret@host/S/s": false, "pubsub://p": false,
	} {
		err := queue.CheckOut(address)
		assert.Equal(t, ok, err == nil, address)
		if err != nil {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
}
