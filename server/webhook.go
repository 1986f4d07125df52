package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// webhook posts messages in the format of Slack's incoming webhooks: {"text": "…"}
// (api.slack.com/messaging/webhooks).
type webhook struct {
	url    string // a secret: whoever has it can post
	client *http.Client
	count  func(outcome string)
}

func newWebhook(raw string, count func(string)) (*webhook, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an http or https URL", WebhookVariable)
	}
	return &webhook{url: raw, count: count, client: &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}, nil
}

// send posts one message. The error does not name the URL.
func (h *webhook) send(ctx context.Context, text string) (err error) {
	defer func() {
		outcome := "sent"
		if err != nil {
			outcome = "failed"
		}
		h.count(outcome)
	}()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("making the webhook's request: its URL is wrong")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(req)
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	if err != nil {
		return fmt.Errorf("posting to the webhook: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("reading the webhook's answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %d", resp.StatusCode)
	}
	return nil
}
