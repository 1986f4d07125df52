package alarm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example in the text of the Standard Webhooks specification gives the same signature.
func TestSign(t *testing.T) {
	key, err := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	assert.Equal(t, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

// mailServer is a mail server for one test.
type mailServer struct {
	addr  string
	roots *x509.CertPool
	cert  tls.Certificate

	mu     sync.Mutex
	said   []string // the commands of clients
	texts  []string // the messages taken
	refuse string   // the answer to RCPT, if not empty
	plain  bool     // it does not offer STARTTLS
}

func newMailServer(t *testing.T, implicit bool) *mailServer {
	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	s := &mailServer{cert: web.TLS.Certificates[0], roots: x509.NewCertPool()}
	s.roots.AddCert(web.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	var served sync.WaitGroup
	t.Cleanup(func() { assert.NoError(t, l.Close()); served.Wait() })
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if implicit {
				conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}})
			}
			served.Go(func() { s.serve(conn, implicit) })
		}
	})
	return s
}

// serve has the conversation of RFC 5321 with one client.
func (s *mailServer) serve(conn net.Conn, secure bool) {
	defer func() { _ = conn.Close() }()
	c := textproto.NewConn(conn)
	say := func(line string) { _ = c.PrintfLine("%s", line) }
	say("220 mail.example ESMTP")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		s.mu.Lock()
		s.said = append(s.said, line)
		refuse, plain := s.refuse, s.plain
		s.mu.Unlock()
		switch {
		case verb == "EHLO":
			say("250-mail.example")
			if !secure && !plain {
				say("250-STARTTLS")
			}
			say("250 AUTH PLAIN")
		case verb == "STARTTLS":
			say("220 go ahead")
			upgraded := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}})
			if upgraded.Handshake() != nil {
				return
			}
			conn, c, secure = upgraded, textproto.NewConn(upgraded), true
		case verb == "AUTH":
			say(map[bool]string{true: "235 ok", false: "530 STARTTLS first"}[secure])
		case verb == "RCPT" && refuse != "":
			say(refuse)
		case verb == "DATA":
			say("354 end with a dot")
			text, err := c.ReadDotBytes()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.texts = append(s.texts, string(text))
			s.mu.Unlock()
			say("250 taken")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// TestForms has one alert and its link in each channel's form.
func TestForms(t *testing.T) {
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		bodies = append(bodies, string(b))
	}))
	defer s.Close()
	at := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	b := Breach{Job: "seed", Rule: "run_failed", Schedule: "nightly", Since: at, RunID: "20260302-030000-000-aaaaaaaa", Text: "--country=ZZ: two lower-case letters (exit status 2)."}
	m := notice{ID: "ID", At: at, Type: "alert.raised", Data: &b, Text: "[ALERT] " + b.Sentence(), RunID: b.RunID, URL: "https://seed.example" + b.Page()}
	p, err := newPost("X", s.URL)
	require.NoError(t, err)
	require.NoError(t, p.slack(t.Context(), m, at))
	require.NoError(t, p.signed(t.Context(), m, at))
	const sentence, link = "[ALERT] schedule nightly (seed) failed: country=ZZ: two lower-case letters", "https://seed.example/runs/20260302-030000-000-aaaaaaaa"
	assert.JSONEq(t, `{"text":"`+sentence+`\n`+link+`"}`, bodies[0])
	assert.JSONEq(t, `{"type":"alert.raised","timestamp":"2026-03-02T03:00:00Z","text":"`+sentence+`","url":"`+link+`","data":{"job":"seed","rule":"run_failed",
		"schedule":"nightly","since":"2026-03-02T03:00:00Z","run_id":"20260302-030000-000-aaaaaaaa","text":"--country=ZZ: two lower-case letters (exit status 2)."}}`, bodies[1])
	mail, err := (&mailer{from: "seed@example.org", to: []string{"ops@example.org"}}).text(m)
	require.NoError(t, err)
	assert.Equal(t, []string{"From: seed@example.org", "To: ops@example.org", "Subject: " + sentence, "Date: Mon, 02 Mar 2026 03:00:00 +0000",
		"Message-ID: <ID@example.org>", "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
		"Content-Transfer-Encoding: quoted-printable", "", strings.Replace(sentence, "country=", "country=3D", 1), link, ""}, strings.Split(strings.ReplaceAll(string(mail), "=\r\n", ""), "\r\n"))
}

// TestSentences has what an alert of each rule says.
func TestSentences(t *testing.T) {
	for want, b := range map[string]Breach{
		"schedule nightly (seed) was interrupted: stopped by a signal": {Job: "seed", Rule: "run_failed", Schedule: "nightly", Text: "interrupted: stopped by a signal."},
		"seed did not begin: flag provided but not defined: -x":        {Job: "seed", Rule: "run_failed", Text: "the run did not begin: flag provided but not defined: -x (exit status 2)"},
		"docs for max pages 3, provider a and b: more than it":         {Job: "docs", Rule: "duration", Selection: "max-pages=3&provider=a&provider=b", Text: "more than it"},
		"mk (news) was blocked: it answers 403":                        {Job: "news", Rule: "provider", Provider: "mk", Text: "it was blocked: it answers 403"},
		"mk (news): no article for three runs":                         {Job: "news", Rule: "quality", Provider: "mk", Text: "mk: no article for three runs."},
		"stripe (docs) answers after 5.2 s on average (limit 5 s)":     {Job: "docs", Rule: "mean_response", Provider: "stripe", Text: "it answers after 5.2 s on average (limit 5 s)"},
		"docs for provider a, b, c, d, e, f, g, h, i, j and 2 more: x": {Job: "docs", Rule: "duration", Selection: "provider=a&provider=b&provider=c&provider=d&provider=e&provider=f&provider=g&provider=h&provider=i&provider=j&provider=k&provider=l", Text: "x"},
	} {
		assert.Equal(t, want, b.Sentence())
	}
	assert.Equal(t, "it was held: ask them", siteText(true, "held", "it is held: ask them"))
}

// TestEmail sends messages by SMTP with STARTTLS and a password, and with TLS from the
// beginning. Nothing is sent without TLS.
func TestEmail(t *testing.T) {
	for _, mode := range []string{"", "implicit"} {
		s := newMailServer(t, mode == "implicit")
		m, err := newMailer(Email{Server: s.addr, From: "Seed <seed@example.org>", To: []string{"a@example.org", "b@example.org"},
			Username: "seed", TLS: mode}, "hunter2hunter2")
		require.NoError(t, err)
		m.security.RootCAs = s.roots
		alert := notice{ID: "AN2ID", At: time.Now(), Text: "[ALERT] seed, run failed: – " + strings.Repeat("long ", 50)}
		s.refuse = "450 try later"
		err = m.send(t.Context(), alert, time.Now())
		require.ErrorContains(t, err, `450 "try later"`)
		assert.NotContains(t, err.Error(), "hunter2")
		require.Empty(t, s.texts)
		s.mu.Lock()
		s.refuse = ""
		s.mu.Unlock()
		require.NoError(t, m.send(t.Context(), alert, time.Now()))
		s.mu.Lock()
		require.Len(t, s.texts, 1)
		got, err := mail.ReadMessage(strings.NewReader(s.texts[0]))
		require.NoError(t, err)
		assert.Equal(t, "seed@example.org", got.Header.Get("From"))
		assert.Equal(t, "a@example.org, b@example.org", got.Header.Get("To"))
		assert.Equal(t, "<AN2ID@example.org>", got.Header.Get("Message-ID"))
		assert.Contains(t, got.Header.Get("Subject"), "=?utf-8?q?[ALERT]")
		assert.Equal(t, "quoted-printable", got.Header.Get("Content-Transfer-Encoding"))
		assert.Contains(t, s.said, "AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00seed\x00hunter2hunter2")))
		assert.Equal(t, mode == "", slices.Contains(s.said, "STARTTLS"))
		s.mu.Unlock()
	}

	s := newMailServer(t, false)
	s.plain = true
	m, err := newMailer(Email{Server: s.addr, From: "seed@example.org", To: []string{"a@example.org"}}, "")
	require.NoError(t, err)
	assert.ErrorContains(t, m.send(t.Context(), notice{ID: "x", Text: "hello"}, time.Now()), "does not offer STARTTLS")
	m.TLS = "none"
	require.NoError(t, m.send(t.Context(), notice{ID: "x", Text: "hello\n.\nend"}, time.Now()))
	assert.Contains(t, s.texts[0], "hello\n.\nend")
}
