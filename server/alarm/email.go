package alarm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/server/known"
)

// Email says how alerts are sent by e-mail. The password is in the environment.
type Email struct {
	Server   string   `yaml:"server"` // host:port; "" for no e-mail
	From     string   `yaml:"from"`
	To       []string `yaml:"to"`
	Username string   `yaml:"username"`
	TLS      string   `yaml:"tls"` // starttls (when empty), implicit or none
}

// maxRecipients is how many addresses an e-mail can have.
const maxRecipients = 50

// addresses are the bare addresses of the sender and the receivers.
func (e Email) addresses() (from string, to []string, err error) {
	for i, text := range append([]string{e.From}, e.To...) {
		a, err := mail.ParseAddress(text)
		if err != nil {
			return "", nil, fmt.Errorf("%q is not an e-mail address", text)
		}
		if i == 0 {
			from = a.Address
		} else {
			to = append(to, a.Address)
		}
	}
	return from, to, nil
}

// Check refuses wrong settings.
func (e Email) Check() error {
	if e.Server == "" {
		if e.From != "" || len(e.To) > 0 || e.Username != "" || e.TLS != "" {
			return errors.New("server is missing; write host:port, such as smtp.example.org:587")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(e.Server)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("server: %q is not host:port, such as smtp.example.org:587", e.Server)
	case len(e.To) == 0 || len(e.To) > maxRecipients:
		return fmt.Errorf("to: name 1 to %d addresses", maxRecipients)
	case e.TLS != "" && e.TLS != "starttls" && e.TLS != "implicit" && e.TLS != "none":
		return fmt.Errorf("tls: use starttls, implicit or none, not %q", e.TLS)
	case e.TLS == "none" && e.Username != "":
		return errors.New("tls: none would send the password in the clear; use starttls or implicit")
	}
	_, _, err = e.addresses()
	return err
}

// mailer sends messages by e-mail.
type mailer struct {
	Email
	host     string
	from     string
	to       []string
	password string
	security *tls.Config
}

// newMailer returns a channel to a mail server. Username and password belong together.
func newMailer(e Email, password string) (*mailer, error) {
	if (e.Username != "") != (password != "") {
		return nil, fmt.Errorf("email: username and %s belong together; set both or neither", known.SMTPPasswordVariable)
	}
	host, _, err := net.SplitHostPort(e.Server)
	if err != nil {
		return nil, fmt.Errorf("email: server: %w", err)
	}
	m := &mailer{Email: e, host: host, password: password, security: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	m.from, m.to, err = e.addresses()
	return m, err
}

// send sends one message. A second try has the same Message-ID, so that mail programs
// can show one of two.
func (m *mailer) send(ctx context.Context, msg notice, _ time.Time) error {
	if err := m.deliver(ctx, msg); err != nil {
		return fmt.Errorf("sending an e-mail: %w", err)
	}
	return nil
}

func (m *mailer) deliver(ctx context.Context, msg notice) (err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	if m.TLS == "implicit" {
		conn = tls.Client(conn, m.security)
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() {
		if err != nil { // after Quit the connection is closed already
			_ = c.Close()
		}
	}()
	if m.TLS == "" || m.TLS == "starttls" {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errors.New("the mail server does not offer STARTTLS; set tls: implicit, or tls: none if the way to it is safe")
		}
		if err := c.StartTLS(m.security); err != nil {
			return err
		}
	}
	if m.Username != "" {
		if err := c.Auth(smtp.PlainAuth("", m.Username, m.password, m.host)); err != nil {
			return err
		}
	}
	if err := c.Mail(m.from); err != nil {
		return err
	}
	for _, to := range m.to {
		if err := c.Rcpt(to); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	text, err := m.text(msg)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if _, err := w.Write(text); err != nil {
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the server has taken the message
	return nil
}

// maxSubject is how many characters of a message are its subject.
const maxSubject = 120

// text is the message as RFC 5322 wants it.
func (m *mailer) text(msg notice) ([]byte, error) {
	subject, _, _ := strings.Cut(msg.Text, "\n")
	if r := []rune(subject); len(r) > maxSubject {
		subject = string(r[:maxSubject]) + "…"
	}
	_, domain, _ := strings.Cut(m.from, "@")
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", m.from}, {"To", strings.Join(m.to, ", ")}, {"Subject", mime.QEncoding.Encode("utf-8", subject)},
		{"Date", msg.At.UTC().Format(time.RFC1123Z)}, {"Message-ID", "<" + msg.ID + "@" + domain + ">"}, {"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	q := quotedprintable.NewWriter(&b)
	_, err := q.Write([]byte(strings.ReplaceAll(strings.TrimSpace(msg.Text+"\n"+msg.more()), "\n", "\r\n") + "\r\n"))
	err = errors.Join(err, q.Close())
	return b.Bytes(), err
}
