package queuetest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/queue"
)

// Service is a queue of one of the services.
type Service struct {
	*Broker        // nil: NATS
	Address string // for queue.Open
	Out     string // for queue.OpenOut; empty: the same
	Env     map[string]string
	Put     func(body string)
	Len     func() int
	Expire  func() // ends all leases
}

// serve starts a service in front of a new broker. answer returns the status and the answer to a request.
func serve(t testing.TB, answer func(b *Broker, r *http.Request, in map[string]any) (int, any)) (*Broker, string) {
	b := &Broker{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		status, out := answer(b, r, in)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out) // it fails only if the client is gone
	}))
	t.Cleanup(s.Close)
	return b, s.URL
}

func service(b *Broker, address string, env map[string]string) Service {
	return Service{Broker: b, Address: address, Env: env, Put: func(body string) { b.Put(body, nil) }, Len: b.Len, Expire: b.expire}
}

// await is a long poll.
func await(b *Broker, r *http.Request, n int, ttl, wait time.Duration) []queue.Message {
	until := time.Now().Add(wait)
	for {
		out := b.lease(n, ttl)
		if len(out) > 0 || time.Now().After(until) || r.Context().Err() != nil {
			return out
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func number(v any) int { f, _ := v.(float64); return int(f) }

func texts(v any, field string) (out []string) {
	list, _ := v.([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			x = m[field]
		}
		s, _ := x.(string)
		out = append(out, s)
	}
	return out
}

// Cloudflare starts a queue of Cloudflare Queues with an HTTP pull consumer.
func Cloudflare(t testing.TB) Service {
	const token, root = "cf-token", "/accounts/0a1b/queues/9f8e/messages/"
	b, url := serve(t, func(b *Broker, r *http.Request, in map[string]any) (int, any) {
		fail := func(status int, text string) (int, any) {
			return status, map[string]any{"success": false, "errors": []any{map[string]any{"code": 10000, "message": text}}, "result": nil}
		}
		action, ok := strings.CutPrefix(r.URL.Path, root)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			return fail(http.StatusForbidden, "Authentication error")
		case !ok || r.Method != http.MethodPost:
			return fail(http.StatusNotFound, "no such queue")
		case action == "ack":
			b.change(texts(in["acks"], "lease_id"), -1)
			return http.StatusOK, map[string]any{"success": true, "errors": []any{}, "result": map[string]any{"ackCount": 1, "retryCount": 0, "warnings": []any{}}}
		case action == "batch":
			all, _ := in["messages"].([]any)
			for _, m := range all {
				if m, _ := m.(map[string]any); m["content_type"] != "json" {
					return fail(http.StatusBadRequest, "unknown content_type")
				} else if body, err := json.Marshal(m["body"]); err == nil {
					b.Put(string(body), nil)
				}
			}
			return http.StatusOK, map[string]any{"success": true, "errors": []any{}, "result": map[string]any{}}
		case action != "pull" || number(in["batch_size"]) < 1 || number(in["batch_size"]) > 100 || number(in["visibility_timeout_ms"]) > 43_200_000:
			return fail(http.StatusBadRequest, "batch_size must be 1 to 100, and the time-out at most 12 hours")
		}
		messages := []any{}
		for _, m := range b.lease(number(in["batch_size"]), time.Duration(number(in["visibility_timeout_ms"]))*time.Millisecond) {
			messages = append(messages, map[string]any{"id": m.Token, "lease_id": m.Token, "attempts": m.Tries, "timestamp_ms": 1710950954154,
				"body": base64.StdEncoding.EncodeToString(m.Body), "metadata": map[string]string{"CF-Content-Type": "json"}})
		}
		return http.StatusOK, map[string]any{"success": true, "errors": []any{}, "messages": []any{}, "result": map[string]any{"message_backlog_count": 1, "messages": messages}}
	})
	return service(b, "cloudflare://0a1b/9f8e?endpoint="+url, map[string]string{"CLOUDFLARE_API_TOKEN": token})
}

// SQS starts a queue of Amazon SQS that speaks its JSON protocol.
func SQS(t testing.TB) Service {
	const key, name = "AKIAQUEUETEST", "/123456789012/raw-files"
	b, url := serve(t, func(b *Broker, r *http.Request, in map[string]any) (int, any) {
		fail := func(status int, code, text string) (int, any) {
			return status, map[string]any{"__type": "com.amazonaws.sqs#" + code, "message": text}
		}
		action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
		signed := r.Header.Get("Authorization")
		at, _ := in["QueueUrl"].(string)
		entries, _ := in["Entries"].([]any)
		switch {
		case !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential="+key+"/") || !strings.Contains(signed, "/eu-west-1/sqs/aws4_request") || !strings.Contains(signed, "x-amz-target"):
			return fail(http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid.")
		case !ok || r.Header.Get("Content-Type") != "application/x-amz-json-1.0" || r.URL.Path != "/":
			return fail(http.StatusBadRequest, "InvalidAction", "no such action")
		case !strings.HasSuffix(at, name):
			return fail(http.StatusBadRequest, "QueueDoesNotExist", "The specified queue does not exist.")
		case action == "ReceiveMessage":
			n, wait := number(in["MaxNumberOfMessages"]), number(in["WaitTimeSeconds"])
			if n < 1 || n > 10 || wait > 20 {
				return fail(http.StatusBadRequest, "InvalidParameterValue", "MaxNumberOfMessages is 1 to 10")
			}
			var out []any
			for _, m := range await(b, r, n, time.Duration(number(in["VisibilityTimeout"]))*time.Second, time.Duration(wait)*time.Second) {
				out = append(out, map[string]any{"MessageId": m.Token, "ReceiptHandle": m.Token, "Body": string(m.Body), "Attributes": map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.Tries)}})
			}
			if out == nil { // the member is left out
				return http.StatusOK, map[string]any{}
			}
			return http.StatusOK, map[string]any{"Messages": out}
		case len(entries) < 1 || len(entries) > 10:
			return fail(http.StatusBadRequest, "TooManyEntriesInBatchRequest", "1 to 10")
		}
		if action == "SendMessageBatch" {
			for _, body := range texts(in["Entries"], "MessageBody") {
				b.Put(body, nil)
			}
			return http.StatusOK, map[string]any{"Successful": []any{}}
		}
		ttl := time.Duration(-1)
		if action == "ChangeMessageVisibilityBatch" {
			first, _ := entries[0].(map[string]any)
			ttl = time.Duration(number(first["VisibilityTimeout"])) * time.Second
		}
		failed := []any{}
		if b.change(texts(in["Entries"], "ReceiptHandle"), ttl) > 0 {
			failed = append(failed, map[string]any{"Id": "0", "Code": "ReceiptHandleIsInvalid", "SenderFault": true, "Message": "it has expired"})
		}
		return http.StatusOK, map[string]any{"Successful": []any{}, "Failed": failed}
	})
	return service(b, "sqs://sqs.eu-west-1.amazonaws.com"+name+"?endpoint="+url, map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"})
}

// PubSub starts a subscription of Pub/Sub's REST API, as its emulator: without keys.
func PubSub(t testing.TB) Service {
	const root = "/v1/projects/p-1/subscriptions/raw-files:"
	b, url := serve(t, func(b *Broker, r *http.Request, in map[string]any) (int, any) {
		action, ok := strings.CutPrefix(r.URL.Path, root)
		switch {
		case r.URL.Path == "/v1/projects/p-1/topics/new-files:publish":
			for _, data := range texts(in["messages"], "data") {
				body, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					return http.StatusBadRequest, map[string]any{}
				}
				b.Put(string(body), nil)
			}
			return http.StatusOK, map[string]any{}
		case !ok:
			return http.StatusNotFound, map[string]any{"error": map[string]any{"code": 404, "status": "NOT_FOUND", "message": "Resource not found (resource=raw-files)."}}
		case action == "acknowledge":
			b.change(texts(in["ackIds"], ""), -1)
			return http.StatusOK, map[string]any{}
		case action == "modifyAckDeadline":
			b.change(texts(in["ackIds"], ""), time.Duration(number(in["ackDeadlineSeconds"]))*time.Second)
			return http.StatusOK, map[string]any{}
		}
		var out []any
		for _, m := range await(b, r, number(in["maxMessages"]), 10*time.Second, 30*time.Second) {
			out = append(out, map[string]any{"ackId": m.Token, "deliveryAttempt": m.Tries, "message": map[string]any{
				"data": base64.StdEncoding.EncodeToString(m.Body), "attributes": m.Attributes, "messageId": m.Token, "publishTime": "2026-01-28T00:00:00Z"}})
		}
		if out == nil {
			return http.StatusOK, map[string]any{}
		}
		return http.StatusOK, map[string]any{"receivedMessages": out}
	})
	made := service(b, "pubsub://p-1/raw-files", map[string]string{"PUBSUB_EMULATOR_HOST": strings.TrimPrefix(url, "http://")})
	made.Out = "pubsub://p-1/new-files"
	return made
}
