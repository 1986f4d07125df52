package alarm

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/server/known"
)

// notice is what channels are told.
type notice struct {
	ID   string    `json:"id"` // the same in every try, so that a receiver can drop a second one
	At   time.Time `json:"at"`
	Type string    `json:"type"` // alert.raised, alert.over, report or test
	Data *Breach   `json:"data,omitempty"`
	All  []Breach  `json:"all,omitempty"` // of a report about several alerts
	Text string    `json:"text"`          // a sentence; of a report more than one line

	URL   string `json:"url,omitempty"` // of the page that shows more, if the server's address is known
	RunID string `json:"run_id,omitempty"`
	page  string // of URL
}

// more is where the reader finds more: a link, else the run's id.
func (m notice) more() string {
	if m.URL == "" && m.RunID != "" {
		return "run " + m.RunID
	}
	return m.URL
}

// Channel is a way to tell people.
type Channel struct {
	Name string // slack, webhook or email
	Send func(ctx context.Context, m notice, now time.Time) error
}

// refusedError says that a receiver will never take this message, however often it is
// sent.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// Settings say where alerts and reports are sent. An empty one is none.
type Settings struct {
	Email        Email
	Webhook      string // URL of Slack's webhook
	AlertURL     string // where signed messages are posted
	AlertSecret  string // the key of the signatures
	SMTPPassword string // of the mail server
}

// Channels are those that the settings name. Their addresses are the operator's own
// choice, so internal ones are allowed; redirects are not followed.
func Channels(set Settings) ([]Channel, error) {
	var out []Channel
	if set.Webhook != "" {
		p, err := newPost(known.WebhookVariable, set.Webhook)
		if err != nil {
			return nil, err
		}
		out = append(out, Channel{"slack", p.slack})
	}
	switch {
	case set.AlertURL == "" && set.AlertSecret != "":
		return nil, fmt.Errorf("%s is set, but not %s", known.AlertSecretVariable, known.AlertURLVariable)
	case set.AlertURL != "":
		p, err := newPost(known.AlertURLVariable, set.AlertURL)
		if err != nil {
			return nil, err
		}
		if p.key, err = signingKey(set.AlertSecret); err != nil {
			return nil, err
		}
		out = append(out, Channel{"webhook", p.signed})
	}
	if set.Email.Server != "" {
		m, err := newMailer(set.Email, set.SMTPPassword)
		if err != nil {
			return nil, err
		}
		out = append(out, Channel{"email", m.send})
	} else if set.SMTPPassword != "" {
		return nil, fmt.Errorf("%s is set, but the --config file has no email", known.SMTPPasswordVariable)
	}
	return out, nil
}

// post sends messages to one URL, which is a secret: whoever has it can post.
type post struct {
	url    string
	key    []byte // of signatures
	client *http.Client
}

// sendTimeout bounds one delivery.
const sendTimeout = 10 * time.Second

func newPost(variable, raw string) (*post, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an http or https URL", variable)
	}
	return &post{url: raw, client: secret.Client(sendTimeout)}, nil
}

// asSlackText escapes the three characters of Slack's markup, which notifies everybody and makes links.
var asSlackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slack posts in the form of Slack's incoming webhooks: {"text": "…"}
// (api.slack.com/messaging/webhooks).
func (p *post) slack(ctx context.Context, m notice, _ time.Time) error {
	return p.post(ctx, map[string]string{"text": asSlackText.Replace(strings.TrimSpace(m.Text + "\n" + m.more()))}, nil)
}

// signed posts the message as JSON, signed as in the Standard Webhooks specification
// (standardwebhooks.com).
func (p *post) signed(ctx context.Context, m notice, now time.Time) error {
	body := struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Text      string    `json:"text"`
		URL       string    `json:"url,omitempty"`
		Data      any       `json:"data,omitempty"`
	}{m.Type, m.At, m.Text, m.URL, nil}
	switch {
	case m.Data != nil:
		body.Data = m.Data
	case len(m.All) > 0:
		body.Data = m.All
	}
	return p.post(ctx, body, func(h http.Header, b []byte) {
		stamp := strconv.FormatInt(now.Unix(), 10)
		h.Set("Webhook-Id", m.ID)
		h.Set("Webhook-Timestamp", stamp)
		h.Set("Webhook-Signature", "v1,"+sign(p.key, m.ID, stamp, b))
	})
}

// sign is the base64 text of the HMAC-SHA256 of "id.timestamp.body".
func sign(key []byte, id, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// signingKey is the key in a secret: base64 after whsec_, or the text itself.
func signingKey(secret string) ([]byte, error) {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("%s: what comes after whsec_ is not base64", known.AlertSecretVariable)
		}
	}
	if len(key) < 16 {
		return nil, fmt.Errorf("%s is needed with %s, at least 16 bytes; `openssl rand -hex 16` prints a good one", known.AlertSecretVariable,
			known.AlertURLVariable)
	}
	return key, nil
}

// post posts one body. The error does not name the URL.
func (p *post) post(ctx context.Context, v any, head func(h http.Header, body []byte)) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("making the webhook's request: its URL is wrong")
	}
	req.Header.Set("Content-Type", "application/json")
	if head != nil {
		head(req.Header, body)
	}
	resp, err := p.client.Do(req)
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
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("the webhook answered %d", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &refusedError{err}
	}
	return err
}
