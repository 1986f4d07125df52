package alarm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
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

// TestEmail sends messages by SMTP with STARTTLS and a password, and with TLS from the
// beginning. Nothing is sent without TLS.
func TestEmail(t *testing.T) {
	for _, mode := range []string{"", "implicit"} {
		s := newMailServer(t, mode == "implicit")
		m, err := newMailer(Email{Server: s.addr, From: "Seed <seed@example.org>", To: []string{"a@example.org", "b@example.org"},
			Username: "seed", TLS: mode}, "hunter2hunter2")
		require.NoError(t, err)
		m.security.RootCAs = s.roots
		alert := Notice{ID: "AN2ID", At: time.Now(), Text: "[ALERT] seed, run failed: – " + strings.Repeat("long ", 50)}
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
	assert.ErrorContains(t, m.send(t.Context(), Notice{ID: "x", Text: "hello"}, time.Now()), "does not offer STARTTLS")
	m.TLS = "none"
	require.NoError(t, m.send(t.Context(), Notice{ID: "x", Text: "hello\n.\nend"}, time.Now()))
	assert.Contains(t, s.texts[0], "hello\n.\nend")
}
