package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/io/untrusted"
)

// sqs is a queue of Amazon SQS, by its JSON protocol. (The SDK's client of SQS would link a hundred more types for four
// requests; the keys and their signature are the SDK's.)
type sqs struct {
	caller
	endpoint, url string
}

const (
	sqsLease   = time.Minute
	sqsBatch   = 10
	sqsMaxWait = 20 * time.Second
)

// sqsFailures are the entries of a batch that failed.
type sqsFailures struct {
	Failed []struct {
		Code, Message string
		SenderFault   bool
	}
}

func openSQS(ctx context.Context, u *url.URL) (*sqs, error) {
	region := u.Query().Get("region")
	if name, ok := strings.CutPrefix(u.Host, "sqs."); ok && region == "" {
		region, _, _ = strings.Cut(name, ".")
	}
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region, o.Logger = region, logging.Nop{} // the errors say the same
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("the region is not known; add ?region=NAME")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("finding the keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE): %w", err)
	}
	signer := v4.NewSigner()
	sign := func(r *http.Request, body []byte) error {
		keys, err := cfg.Credentials.Retrieve(r.Context())
		if err != nil {
			return err
		}
		hash := sha256.Sum256(body)
		return signer.SignHTTP(r.Context(), keys, r, hex.EncodeToString(hash[:]), "sqs", cfg.Region, time.Now())
	}
	endpoint := cmp.Or(u.Query().Get("endpoint"), "https://"+u.Host)
	return &sqs{caller{secret.Client(httpTimeout), sign}, endpoint, endpoint + u.Path}, nil
}

func (q *sqs) call(ctx context.Context, action string, in map[string]any, out any) error {
	in["QueueUrl"] = q.url
	return q.post(ctx, q.endpoint+"/", in, out, "Content-Type", "application/x-amz-json-1.0", "X-Amz-Target", "AmazonSQS."+action)
}

func (q *sqs) Receive(ctx context.Context, n int, wait time.Duration) ([]Message, error) {
	var a struct {
		Messages []struct {
			Body, ReceiptHandle string
			Attributes          map[string]string
		}
	}
	err := q.call(ctx, "ReceiveMessage", map[string]any{"MaxNumberOfMessages": min(n, sqsBatch), "VisibilityTimeout": int(sqsLease.Seconds()),
		"WaitTimeSeconds": int(min(wait, sqsMaxWait).Seconds()), "MessageSystemAttributeNames": []string{"ApproximateReceiveCount"}}, &a)
	var out []Message
	for _, m := range a.Messages {
		tries, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]) // 0: not counted
		out = append(out, Message{Body: []byte(m.Body), Token: m.ReceiptHandle, Tries: tries})
	}
	return out, err
}

func (q *sqs) Extend(ctx context.Context, tokens []string) error {
	return q.each(ctx, "ChangeMessageVisibilityBatch", tokens)
}

func (q *sqs) Ack(ctx context.Context, tokens []string) error {
	return q.each(ctx, "DeleteMessageBatch", tokens)
}

// each calls a batch action. A fault of the sender is a delivery that is over.
func (q *sqs) each(ctx context.Context, action string, tokens []string) error {
	return batches(tokens, sqsBatch, func(part []string) error {
		var entries []map[string]any
		for i, t := range part {
			e := map[string]any{"Id": strconv.Itoa(i), "ReceiptHandle": t}
			if action != "DeleteMessageBatch" {
				e["VisibilityTimeout"] = int(sqsLease.Seconds())
			}
			entries = append(entries, e)
		}
		var a sqsFailures
		if err := q.call(ctx, action, map[string]any{"Entries": entries}, &a); err != nil {
			return err
		}
		for _, f := range a.Failed {
			if !f.SenderFault {
				return fmt.Errorf("%s: %s", f.Code, untrusted.Line(f.Message, maxReason))
			}
		}
		return nil
	})
}

func (q *sqs) Lease() time.Duration { return sqsLease }

// batches calls do with parts of at most n tokens.
func batches(tokens []string, n int, do func([]string) error) (err error) {
	for part := range slices.Chunk(tokens, n) {
		err = errors.Join(err, do(part))
	}
	return err
}
