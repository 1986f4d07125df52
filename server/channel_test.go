package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
)

const alertSecret = "0123456789abcdef0123456789abcdef"

// receiver gets signed messages and checks their signatures as its documentation says.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	ids  []string
	got  []map[string]any
	code int // of the answers, 0 for 200
}

func newReceiver(t *testing.T) *receiver {
	rec := &receiver{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if rec.code != 0 {
			w.WriteHeader(rec.code)
			return
		}
		id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		m := hmac.New(sha256.New, []byte(alertSecret))
		fmt.Fprintf(m, "%s.%s.%s", id, stamp, body)
		assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)), r.Header.Get("webhook-signature"))
		_, err = strconv.ParseInt(stamp, 10, 64)
		assert.NoError(t, err)
		var v map[string]any
		assert.NoError(t, json.Unmarshal(body, &v))
		rec.ids, rec.got = append(rec.ids, id), append(rec.got, v)
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (rec *receiver) answer(code int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.code = code
}

func (rec *receiver) texts() (out []string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, m := range rec.got {
		text, _, _ := strings.Cut(m["text"].(string), "\n")
		out = append(out, text)
	}
	return out
}

// TestSignedWebhook follows the Standard Webhooks specification.
func TestSignedWebhook(t *testing.T) {
	rec := newReceiver(t)
	w := newWorld(t, "done", func(set *Settings) { set.AlertURL, set.AlertSecret = rec.URL, alertSecret })
	day := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	now := turn(w, day, time.Minute, time.Second)
	w.put("20260302-100000-000-aaaaaaaa", "seed", ledger.Done, day, time.Minute, failing(34))
	turn(w, now, 10*time.Minute, 20*time.Second)
	require.Len(t, rec.got, 1)
	got := rec.got[0]
	assert.Equal(t, "alert.raised", got["type"])
	since := got["timestamp"]
	assert.Equal(t, map[string]any{"job": "seed", "rule": "failure_rate", "since": since, "run_id": "20260302-100000-000-aaaaaaaa", "text": "34.0 % of the work failed (limit 20 %)"}, got["data"])
	assert.Equal(t, "[ALERT] seed: 34.0 % of the work failed (limit 20 %)", got["text"])
}

// TestDeliveries has two channels of which one is down: the other is told at once,
// servers that are started again lose and repeat nothing, and what is given up is
// shown.
func TestDeliveries(t *testing.T) {
	s, rec := newSlack(t), newReceiver(t)
	both := func(set *Settings) { set.Webhook, set.AlertURL, set.AlertSecret = s.URL, rec.URL, alertSecret }
	w := newWorld(t, "done", both)
	assert.Contains(t, w.do("GET", "/metrics", "").body, `seed_engine_alert_deliveries_total{channel="webhook",outcome="given_up"} 0`, "else an increase to 1 is not seen")
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	restart := func() {
		t.Helper()
		require.NoError(t, dropLease(t, w.store))
		w = worldAt(t, w.dir, "done", both)
	}
	n := 0
	fail := func(why string) {
		t.Helper()
		n++
		w.ends(fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", n), "seed", ledger.Failed, fmt.Errorf("%s", why), now, ledger.Tally{}, nil)
		now = turn(w, now.Add(time.Minute), 5*time.Minute, 20*time.Second)
	}
	now = turn(w, now, time.Minute, 20*time.Second)
	rec.answer(503)
	fail("one")
	restart()
	fail("two")
	assert.Equal(t, []string{"[ALERT] seed failed: one", "[ALERT] seed failed: two"}, s.told())
	assert.Empty(t, rec.texts())
	at(now, w)
	rows := w.do("GET", "/api/v1/alerts", "").json(t)["channels"].([]any)
	hook := rows[1].(map[string]any)
	assert.Equal(t, []any{"webhook", 2.0, "the webhook answered 503", []any{}}, []any{hook["name"], hook["waiting"], hook["error"], hook["given_up"]})
	restart()
	rec.answer(0)
	now = turn(w, now, 10*time.Minute, 20*time.Second)
	restart()
	now = turn(w, now, 10*time.Minute, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] seed failed: one", "[ALERT] seed failed: two"}, rec.texts(), "each once, in order")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(rec.ids))), 2)
	assert.Empty(t, s.told())

	rec.answer(http.StatusBadRequest)
	fail("three")
	rec.answer(503)
	fail("four")
	now = turn(w, now, 24*time.Hour+time.Hour, 5*time.Minute)
	at(now, w)
	hook = w.do("GET", "/api/v1/alerts", "").json(t)["channels"].([]any)[1].(map[string]any)
	var given []string
	for _, g := range hook["given_up"].([]any) {
		text, _, _ := strings.Cut(g.(map[string]any)["text"].(string), "\n")
		given = append(given, text+": "+g.(map[string]any)["error"].(string))
	}
	assert.Equal(t, []string{"[ALERT] seed failed: four: the webhook answered 503", "[ALERT] seed failed: three: the webhook answered 400"}, given)
	assert.EqualValues(t, 1, hook["waiting"], "the report of the day")
	page := w.do("GET", "/alerts", "").body
	assert.Contains(t, page, "[ALERT] seed failed: four")
	assert.Contains(t, page, "the webhook answered 503")
	assert.Contains(t, w.log.String(), "alert_given_up")
	assert.Contains(t, w.do("GET", "/metrics", "").body, `seed_engine_alert_deliveries_total{channel="webhook",outcome="given_up"} 2`)

	rec.answer(0)
	for i := range 100 + 5 { // more than can wait, while nothing ticks
		w.alarm.Enqueue(fmt.Sprint("report ", i), now)
	}
	turn(w, now, time.Minute, 20*time.Second)
	assert.Equal(t, "report 5", rec.texts()[2], "the oldest are given up")
	assert.Equal(t, "too many messages waited", w.alarm.Rows()[1].GivenUp[0].Error)
}

// What a site, a policy or a path says is no markup in Slack, which would notify everybody and show links. Other
// channels take the text as it is.
func TestSlackShowsText(t *testing.T) {
	s, rec := newSlack(t), newReceiver(t)
	w := newWorld(t, "done", func(set *Settings) { set.Webhook, set.AlertURL, set.AlertSecret = s.URL, rec.URL, alertSecret })
	at := turn(w, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), time.Minute, 20*time.Second)
	const said = "<!channel> <https://evil.example/?a=1&b=2|sign in> &lt;"
	w.ends("20260302-100001-000-aaaaaaaa", "docs", ledger.Done, nil, at, ledger.Tally{},
		[]any{map[string]any{"provider": "a&b", "state": "run", "alerts": []string{said}}})
	at = turn(w, at.Add(2*time.Minute), time.Minute, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] a&amp;b (docs): &lt;!channel&gt; &lt;https://evil.example/?a=1&amp;b=2|sign in&gt; &amp;lt;"}, s.told())
	assert.Equal(t, []string{"[ALERT] a&b (docs): " + said}, rec.texts())
	w.alarm.Enqueue("report: <"+said+">", at)
	turn(w, at, time.Minute, 20*time.Second)
	assert.Equal(t, []string{"report: &lt;&lt;!channel&gt; &lt;https://evil.example/?a=1&amp;b=2|sign in&gt; &amp;lt;&gt;"}, s.told())
}

// TestSilence keeps alerts from being sent, of the page and of the command line's
// object alike, and sends those that still fire at its end.
func TestSilence(t *testing.T) {
	s := newSlack(t)
	w := newWorld(t, "done", func(set *Settings) { set.Webhook = s.URL })
	now := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	now = at(turn(w, now, time.Minute, 20*time.Second), w)
	n := 0
	end := func(state ledger.State) {
		t.Helper()
		n++
		w.ends(fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", n), "seed", state, nil, now, failing(1), nil)
		now = at(turn(w, now.Add(time.Minute), 5*time.Minute, 20*time.Second), w)
	}
	got := w.do("POST", "/api/v1/alerts/silences", `{"job":"seed","rule":"run_failed","for":"1h","note":"the disk is changed"}`)
	require.Equal(t, http.StatusOK, got.code, got.body)
	_, err := alert.AddSilence(t.Context(), w.store, alert.Silence{Job: "news", By: "command"}, time.Hour, now)
	require.NoError(t, err)
	end(ledger.Failed)
	end(ledger.Done)
	end(ledger.Failed)
	assert.Empty(t, s.told())
	list := w.do("GET", "/api/v1/alerts", "").json(t)
	assert.Equal(t, true, list["firing"].([]any)[0].(map[string]any)["silenced"])
	assert.Len(t, list["silences"], 2)
	page := w.do("GET", "/alerts", "").body
	assert.Contains(t, page, "the disk is changed")
	assert.Contains(t, page, "silenced")
	require.NoError(t, dropLease(t, w.store)) // a server that starts again knows what was not told
	w = worldAt(t, w.dir, "done", func(set *Settings) { set.Webhook = s.URL })
	now = at(turn(w, now, 2*time.Hour, 20*time.Second), w)
	assert.Equal(t, []string{"[ALERT] seed failed: its log may say why"}, s.told())
	end(ledger.Done)
	assert.Equal(t, []string{"[OVER] seed: a run is done again"}, s.told())
	assert.Equal(t, []string{"alerts_silence job seed, alert run_failed: for 1h: the disk is changed"}, w.asked())

	// Ended before its time, on the page.
	got = w.form("/alerts/silences", "job=&for=10h&note=")
	require.Equal(t, http.StatusSeeOther, got.code, got.body)
	end(ledger.Failed)
	assert.Empty(t, s.told())
	id := w.do("GET", "/api/v1/alerts", "").json(t)["silences"].([]any)[0].(map[string]any)["id"].(string)
	require.Equal(t, http.StatusOK, w.do("DELETE", "/api/v1/alerts/silences/"+id, "").code)
	turn(w, now, time.Minute, 20*time.Second)
	assert.Len(t, s.told(), 1)
	assert.Equal(t, http.StatusNotFound, w.do("DELETE", "/api/v1/alerts/silences/"+id, "").code)
	for body, says := range map[string]string{`{"for":"1s"}`: "for: write a time", `{"for":"1000h"}`: "for: write a time", `{"for":"1h","job":"sow"}`: "job: use seed", `{"for":"1h","rule":"run failed"}`: `rule: there is no alert \"run failed\"; use one of failure_rate`, `{"for":"1h","x":1}`: "the body is not"} {
		got := w.do("POST", "/api/v1/alerts/silences", body)
		assert.Equal(t, http.StatusBadRequest, got.code, body)
		assert.Contains(t, got.body, says)
	}
	require.NoError(t, alert.SweepSilences(t.Context(), w.store, now.Add(24*time.Hour)))
	for o := range w.store.List(t.Context(), "alerts/silences/") {
		t.Errorf("%s is left", o.Key)
	}
}

// TestSettings has settings that are refused before the server starts.
func TestSettings(t *testing.T) {
	good := alarm.Email{Server: "mail.example:587", From: "a@example.org", To: []string{"b@example.org"}}
	for _, c := range []struct {
		change func(*Settings)
		says   string
	}{
		{func(s *Settings) { s.Webhook = "ftp://x" }, known.WebhookVariable + " is not an http or https URL"},
		{func(s *Settings) { s.AlertURL = "https://" }, known.AlertURLVariable + " is not an http or https URL"},
		{func(s *Settings) { s.AlertURL = "https://x.example" }, known.AlertSecretVariable + " is needed"},
		{func(s *Settings) { s.AlertURL, s.AlertSecret = "https://x.example", "short" }, "at least 16 bytes"},
		{func(s *Settings) { s.AlertURL, s.AlertSecret = "https://x.example", "whsec_!" }, "is not base64"},
		{func(s *Settings) { s.AlertSecret = alertSecret }, "is set, but not " + known.AlertURLVariable},
		{func(s *Settings) { s.SMTPPassword = "x" }, "has no email"},
		{func(s *Settings) { s.Config.Email, s.SMTPPassword = good, "x" }, "belong together"},
		{func(s *Settings) { s.Token, s.ReadToken = token, "short" }, known.ReadTokenVariable + " is shorter than 16"},
		{func(s *Settings) { s.Token = "short" }, known.TokenVariable + " is shorter than 16"},
		{func(s *Settings) { s.ReadToken = readToken }, "without it everybody may act"},
		{func(s *Settings) { s.Token, s.ReadToken = token, token }, "are the same"},
	} {
		set := Settings{Jobs: testJobs()}
		c.change(&set)
		_, err := New(set)
		assert.ErrorContains(t, err, c.says)
	}
}

// TestSecretFiles reads secrets from the environment and from files.
func TestSecretFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("from the file\n"), 0o600))
	read := func() string {
		t.Helper()
		text, err := secret.Read(known.SMTPPasswordVariable)
		require.NoError(t, err)
		return text
	}
	assert.Empty(t, read())
	t.Setenv(known.SMTPPasswordVariable, "from the environment")
	assert.Equal(t, "from the environment", read())
	t.Setenv(known.SMTPPasswordVariable+"_FILE", file)
	_, err := secret.Read(known.SMTPPasswordVariable)
	assert.ErrorContains(t, err, "are both set")
	t.Setenv(known.SMTPPasswordVariable, "")
	assert.Equal(t, "from the file", read())
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = secret.Read(known.SMTPPasswordVariable)
	assert.ErrorContains(t, err, "is empty")
	for _, name := range known.SecretVariables {
		assert.True(t, known.IsSecret(name+"=x") && known.IsSecret(name+"_FILE=x"), name)
	}
	assert.False(t, known.IsSecret("SEED_STORE=x"))
}
