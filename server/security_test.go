package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

// Limits of server/people.
const (
	maxBody, maxConcurrent, maxAnonymous = 64 << 10, 64, 8
	sessionAge, sessionIdle              = 7 * 24 * time.Hour, 24 * time.Hour
	sessionCookie                        = "seed_session"
)

const token = "a-token-of-32-random-characters!"

func beyond(s *Settings) {
	s.Config.Listen, s.Token = "0.0.0.0:8787", token
}

func TestListen(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8787": "", "localhost:1": "", "[::1]:8787": "",
		":8787": known.TokenVariable, "0.0.0.0:8787": known.TokenVariable, "10.0.0.1:80": known.TokenVariable, "example.org:80": known.TokenVariable, "[::]:80": known.TokenVariable,
		"8787": "write host:port", "127.0.0.1:http": "write host:port",
	} {
		_, err := New(Settings{Config: Config{Listen: listen}})
		if want == "" {
			assert.NoError(t, err, listen)
			continue
		}
		assert.ErrorContains(t, err, want, listen)
	}
}

func TestToken(t *testing.T) {
	w := newWorld(t, "done", beyond)
	for _, c := range []struct {
		path, auth string
		code       int
	}{
		{"/api/v1/runs", "", 401}, {"/api/v1/runs", "Bearer wrong", 401}, {"/api/v1/runs", "Bearer ", 401}, {"/api/v1/runs", "Basic " + token, 401},
		{"/api/v1/runs", "Bearer " + token, 200}, {"/", "", 401}, {"/", "Bearer " + token, 200}, {"/metrics", "", 401}, {"/openapi.json", "", 401}, {"/events", "", 401},
		{"/healthz", "", 200}, {"/login", "", 200},
	} {
		a := w.do("GET", c.path, "", "Authorization", c.auth)
		assert.Equal(t, c.code, a.code, "%s with %q", c.path, c.auth)
		if c.code == 401 {
			assert.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
		}
	}
	assert.Equal(t, 401, w.do("POST", "/api/v1/seeds/orchestrate", "{}").code)
	assert.Empty(t, w.board.Runs())
	assert.Equal(t, "/login", w.do("GET", "/", "", "Accept", "text/html").header.Get("Location"))
	assert.Equal(t, 200, w.do("GET", "/api/v1/runs", "", "Authorization", "Bearer "+token, "Host", "crawler.example").code, "with a token every name is served")
}

func TestSignIn(t *testing.T) {
	w := newWorld(t, "done", beyond)
	form := "Content-Type"
	bad := w.do("POST", "/login", "token=wrong", form, "application/x-www-form-urlencoded")
	assert.Equal(t, 401, bad.code)
	assert.Empty(t, bad.header.Get("Set-Cookie"))
	good := w.do("POST", "/login", "token="+token, form, "application/x-www-form-urlencoded", "X-Forwarded-Proto", "https")
	cookie := good.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Secure"} {
		assert.Contains(t, cookie, want)
	}
	assert.NotContains(t, cookie, token)
	value, _, _ := strings.Cut(cookie, ";")
	assert.Equal(t, 200, w.do("GET", "/", "", "Cookie", value).code)
	assert.Equal(t, 401, w.do("GET", "/", "", "Cookie", value+"0").code)
}

func TestRebinding(t *testing.T) {
	w := newWorld(t, "done")
	for host, code := range map[string]int{"127.0.0.1:8787": 200, "localhost:8787": 200, "[::1]:8787": 200, "evil.example": 421, "evil.example:8787": 421, "10.0.0.1:8787": 421} {
		assert.Equal(t, code, w.do("GET", "/api/v1/runs", "", "Host", host).code, host)
	}
}

func TestCrossSite(t *testing.T) {
	w := newWorld(t, "done")
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{"/runs", "/api/v1/seeds/orchestrate", "/runs/x/cancel", "/login"} {
			assert.Equal(t, 403, w.do("POST", path, "job=seed", append(form, from...)...).code, "%s %v", path, from)
		}
	}
	assert.Empty(t, w.board.Runs())
	a := w.do("POST", "/runs", "job=seed&country=sg", append(form, "Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8787")...)
	assert.Equal(t, http.StatusSeeOther, a.code)
	assert.Contains(t, a.header.Get("Location"), "/runs/")
}

func TestHeaders(t *testing.T) {
	w := newWorld(t, "done")
	for _, path := range []string{"/", "/nothing", "/api/v1/runs", "/style.css", "/healthz"} {
		h := w.do("GET", path, "", "Accept", "text/html").header
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin"} {
			assert.Equal(t, want, h.Get(name), path)
		}
		csp := h.Get("Content-Security-Policy")
		assert.Contains(t, csp, "default-src 'none'", path)
		assert.Contains(t, csp, "frame-ancestors 'none'", path)
		assert.NotContains(t, csp, "unsafe", path)
	}
	for _, name := range []string{"/", "/runs", "/start", "/schedules", "/reports", "/login"} {
		page := w.do("GET", name, "", "Accept", "text/html").body
		assert.NotContains(t, page, "<script>", "no script stands in a page")
		assert.NotContains(t, page, " style=", "no style stands in a page")
		assert.NotRegexp(t, ` on[a-z]+="`, page, "no handler stands in a page")
	}
}

func TestLargeBody(t *testing.T) {
	w := newWorld(t, "done")
	large := `{"country":"` + strings.Repeat("x", maxBody) + `"}`
	for _, path := range []string{"/api/v1/seeds/orchestrate", "/api/v1/runs/x/cancel", "/runs", "/login"} {
		assert.Equal(t, http.StatusRequestEntityTooLarge, w.do("POST", path, large).code, path)
	}
	// A body of unknown length.
	at := serve(t, w)
	r, err := http.NewRequest("POST", at+"/api/v1/seeds/orchestrate", io.MultiReader(strings.NewReader(large)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	assert.Empty(t, w.board.Runs())
}

// serve listens until the test ends, and gives the address.
func serve(t *testing.T, w *world) string {
	t.Helper()
	address, stop := serving(t, w)
	t.Cleanup(stop)
	return "http://" + address
}

// pipes listens without a network, for use in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	end   sync.Once
}

// servePipes serves on pipes in a bubble, with a store in memory.
func servePipes(t *testing.T) (w *world, l *pipes, end func()) {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	w = newWorld(t, "done", func(set *Settings) { set.Store = s })
	l = &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.serve(ctx, l) }()
	return w, l, func() {
		stop()
		require.NoError(t, <-served)
	}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.end.Do(func() { close(l.ended) })
	return nil
}

func (*pipes) Addr() net.Addr { return loopbackAddr }

// send opens a connection and sends text.
func (l *pipes) send(t *testing.T, text string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l.conns <- fromLoopback{there}
	_, err := io.WriteString(here, text)
	require.NoError(t, err)
	return here
}

var loopbackAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8787}

type fromLoopback struct{ net.Conn }

func (fromLoopback) RemoteAddr() net.Addr { return loopbackAddr }
func (fromLoopback) LocalAddr() net.Addr  { return loopbackAddr }

func TestSlowHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, end := servePipes(t)
		defer end()
		begin := time.Now()
		c := l.send(t, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
		rest, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Empty(t, rest)
		assert.Equal(t, headerTimeout, time.Since(begin), "the server ends the connection")
	})
}

// TestSlowClientAtTheEnd stops the server while a client is slow. The server does not
// wait long for it, and still releases the leader's lease.
func TestSlowClientAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l, end := servePipes(t)
		synctest.Wait()
		require.True(t, w.leading.Load())
		c := l.send(t, "POST /api/v1/seeds/orchestrate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
		defer func() { _ = c.Close() }()
		synctest.Wait() // now the request is being handled
		begin := time.Now()
		end()
		require.Equal(t, 5*time.Second, time.Since(begin))
		_, held, err := lease.ActiveHolder(t.Context(), w.store, "server")
		require.NoError(t, err)
		require.False(t, held, "another server can lead at once")
	})
}

func TestLargeHeader(t *testing.T) {
	at := serve(t, newWorld(t, "done"))
	r, err := http.NewRequest("GET", at+"/", nil)
	require.NoError(t, err)
	r.Header.Set("X-Large", strings.Repeat("x", maxHeader))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
}

func TestThousandClients(t *testing.T) {
	w := newWorld(t, "done")
	at := serve(t, w)
	const clients = 1000
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	ready := make(chan struct{})
	codes := make(chan string, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			<-ready
			resp, err := client.Get(at + "/")
			if err != nil {
				codes <- err.Error()
				return
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || !strings.Contains(string(b), "</html>") {
				codes <- fmt.Sprintf("cut off: %v", err)
				return
			}
			codes <- resp.Status
		})
	}
	close(ready)
	wg.Wait()
	close(codes)
	count := map[string]int{}
	for c := range codes {
		count[c]++
	}
	assert.Equal(t, map[string]int{"200 OK": clients}, count)
}

func TestEvents(t *testing.T) {
	w := newWorld(t, "wait")
	at := serve(t, w)
	resp, err := http.Get(at + "/events")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	assert.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return v
			}
		}
		return "the stream ended"
	}
	first := next()
	w.do("POST", "/api/v1/seeds/orchestrate", "")
	assert.NotEqual(t, first, next())
}

// brokenStore fails with an error text that no answer may contain.
type brokenStore struct{ store.Store }

var errInside = errors.New("open /srv/secret/bucket-name/runs/x.json: https://user:pass@s3.example/bucket-name?X-Amz-Signature=abc")

func (brokenStore) Open(context.Context, string) (io.ReadCloser, error) { return nil, errInside }
func (brokenStore) List(context.Context, string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) { yield(store.Object{}, errInside) }
}
func (brokenStore) Put(context.Context, string, io.Reader, store.PutOptions) error { return errInside }
func (brokenStore) PutIfAbsent(context.Context, string, io.Reader, store.PutOptions) error {
	return errInside
}
func (brokenStore) Head(context.Context, string) (store.Object, error) {
	return store.Object{}, errInside
}

func TestErrorsTellNothing(t *testing.T) {
	w := newWorld(t, "done", func(s *Settings) { s.Store = brokenStore{s.Store} })
	w.board.Started(ledger.Run{RunID: "here", Job: "seed", StartedAt: time.Now()})
	for _, c := range [][2]string{
		{"POST", "/api/v1/seeds/orchestrate"}, {"GET", "/api/v1/runs/x"}, {"POST", "/api/v1/runs/here/cancel"}, {"POST", "/api/v1/runs/x/cancel"},
		{"GET", "/api/v1/runs/here/dead-letters"}, {"POST", "/api/v1/runs/x/dead-letters/replay"}, {"GET", "/runs/x"}, {"GET", "/runs/here"}, {"POST", "/runs/here/cancel"},
	} {
		for _, accept := range []string{"application/json", "text/html"} {
			a := w.do(c[0], c[1], "", "Accept", accept)
			for _, secret := range []string{"/srv", "bucket-name", "user:pass", "Signature", "goroutine", ".go:", w.dir} {
				assert.NotContains(t, a.body, secret, c)
			}
		}
	}
	assert.Equal(t, 500, w.do("GET", "/api/v1/runs/x", "").code)
	assert.Equal(t, 503, w.do("GET", "/readyz", "").code)
	assert.NotContains(t, w.log.String(), "user:pass", "not even the log has the password")

	w.handler = w.guard.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(errInside) }))
	a := w.do("GET", "/", "")
	assert.Equal(t, 500, a.code)
	assert.NotContains(t, a.body, "secret")
}

// TestNoProgram has no pipeline program: the answer is a server error, not "no such
// run".
func TestNoProgram(t *testing.T) {
	w := newWorld(t, "done", func(s *Settings) { s.Program = []string{t.TempDir() + "/none"} })
	a := w.do("POST", "/api/v1/seeds/orchestrate", "{}")
	assert.Equal(t, http.StatusInternalServerError, a.code, a.body)
	assert.Contains(t, a.body, known.ErrInternal.Message)
	assert.Contains(t, w.log.String(), "starting a run's process")
	assert.Equal(t, http.StatusNotFound, w.do("GET", "/api/v1/runs/none", "").code)
	id, err := w.runner.Active(t.Context(), "seed")
	assert.NoError(t, err)
	assert.Empty(t, id, "the next try is not kept from starting")
}

// slowly sends a request whose body never ends.
func slowly(t *testing.T, address, head string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, head+"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken=")
	require.NoError(t, err)
	return c
}

// serving lets a server listen until stop is called.
func serving(t *testing.T, w *world) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background()) // t.Context ends before what t.Cleanup calls
	served := make(chan error, 1)
	go func() { served <- w.serve(ctx, l) }()
	return l.Addr().String(), func() { cancel(); require.NoError(t, <-served) }
}

// TestSlowBodies sends more slow bodies to the login form than there are slots. Other
// requests are answered meanwhile, and the slow ones get status 408.
func TestSlowBodies(t *testing.T) {
	w := newWorld(t, "done", beyond)
	address, stop := serving(t, w)
	var slow []net.Conn
	for range maxConcurrent + maxAnonymous + 1 {
		slow = append(slow, slowly(t, address, "POST /login HTTP/1.1\r\nHost: x"))
	}
	for range maxConcurrent {
		slow = append(slow, slowly(t, address, "POST /api/v1/seeds/orchestrate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token))
	}
	client := &http.Client{Timeout: strangersBody - time.Second}
	for _, path := range []string{"/healthz", "/style.css", "/login", "/api/v1/runs", "/"} {
		req, err := http.NewRequest("GET", "http://"+address+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		require.NoError(t, err, path)
		assert.Equal(t, http.StatusOK, resp.StatusCode, path)
		require.NoError(t, resp.Body.Close())
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.PostForm("http://"+address+"/login", url.Values{"token": {token}})
	require.NoError(t, err, "signing in, while others only begin to")
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusSeeOther, resp.StatusCode)
	for _, c := range slow {
		require.NoError(t, c.Close())
	}
	client.CloseIdleConnections()
	stop()

	strict := newWorld(t, "done", beyond)
	strict.guard.StrangersBody = time.Millisecond
	address, stop = serving(t, strict)
	answer, err := http.ReadResponse(bufio.NewReader(slowly(t, address, "POST /login HTTP/1.1\r\nHost: x")), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
	stranger := slowly(t, address, "POST /api/v1/seeds/orchestrate HTTP/1.1\r\nHost: x")
	require.NoError(t, stranger.SetReadDeadline(time.Now().Add(strangersBody)))
	answer, err = http.ReadResponse(bufio.NewReader(stranger), nil)
	require.NoError(t, err, "a client without a token is not waited for")
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	stop()
	assert.NotContains(t, strict.log.String(), "level=ERROR")
	assert.NotContains(t, w.log.String(), "request_failed", "a client's fault is no error of the server")
	assert.NotContains(t, w.log.String(), "level=ERROR")
}

// TestClientFaults sends incomplete bodies, which are not errors in the log.
func TestClientFaults(t *testing.T) {
	w := newWorld(t, "done", beyond)
	for _, c := range []struct {
		err  error
		code int
	}{{io.ErrUnexpectedEOF, 400}, {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, 408}, {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, 400}} {
		for _, path := range []string{"/login", "/runs", "/api/v1/seeds/orchestrate"} {
			r := httptest.NewRequest("POST", path, iotest.ErrReader(c.err))
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec := httptest.NewRecorder()
			w.handler.ServeHTTP(rec, r)
			assert.Equal(t, c.code, rec.Code, "%s: %v", path, c.err)
			assert.Equal(t, "close", rec.Header().Get("Connection"))
		}
	}
	assert.Equal(t, 400, w.form("/login", "token=%zz").code)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	rec := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(gone, "GET", "/api/v1/runs/20260302-100000-000-aaaaaaaa/log", nil)
	w.face.Fail(rec, r, gone.Err())
	assert.NotContains(t, w.log.String(), "level=ERROR")
}

// TestWrongTokens are answered slowly, use no slots, and are counted.
func TestWrongTokens(t *testing.T) {
	w := newWorld(t, "done", beyond)
	w.guard.WrongDelay = wrongTokenDelay
	synctest.Test(t, func(t *testing.T) {
		w.now = time.Now
		ask := func(auth string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", "http://x/api/v1/runs", nil)
			r.Header.Set("Authorization", "Bearer "+auth)
			rec := httptest.NewRecorder()
			w.handler.ServeHTTP(rec, r)
			return rec
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 * maxConcurrent {
			wg.Go(func() { assert.Equal(t, 401, ask("wrong").Code) })
		}
		synctest.Wait()
		assert.Equal(t, 200, ask(token).Code, "the right one waits for nobody")
		assert.Zero(t, time.Since(begin))
		wg.Wait()
		assert.Equal(t, wrongTokenDelay, time.Since(begin))
		assert.Equal(t, 1, strings.Count(w.log.String(), "wrong_token"), "told of once a minute")
		r := httptest.NewRequest("POST", "http://x/login", strings.NewReader("token=wrong"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
		assert.Equal(t, 2*wrongTokenDelay, time.Since(begin))
	})
	text := w.do("GET", "/metrics", "", "Authorization", "Bearer "+token).body
	assert.Contains(t, text, `seed_engine_wrong_tokens_total{way="header"} 640`)
	assert.Contains(t, text, `seed_engine_wrong_tokens_total{way="form"} 1`)
}

// TestSessionsEnd signs browsers out, on every server of the store.
func TestSessionsEnd(t *testing.T) {
	w := newWorld(t, "done", beyond)
	now := time.Now()
	w.now = func() time.Time { return now }
	other := worldAt(t, w.dir, "done", beyond)
	other.now = w.now
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	signIn := func() string {
		value, _, _ := strings.Cut(w.do("POST", "/login", "token="+token, form...).header.Get("Set-Cookie"), ";")
		require.NotEmpty(t, value)
		return value
	}
	code := func(on *world, cookie string) int { return on.do("GET", "/", "", "Cookie", cookie).code }
	a, b := signIn(), signIn()
	require.NotEqual(t, a, b)
	assert.Equal(t, []int{200, 200}, []int{code(w, a), code(other, b)}, "a session holds on each server")
	assert.Contains(t, w.do("GET", "/", "", "Cookie", a).body, "Sign out")
	out := w.do("POST", "/logout", "", append(form, "Cookie", a)...)
	assert.Equal(t, http.StatusSeeOther, out.code)
	assert.Contains(t, out.header.Get("Set-Cookie"), "Max-Age=0")
	assert.Equal(t, []int{401, 200}, []int{code(w, a), code(w, b)})
	assert.Equal(t, 200, code(other, a))
	other.tick(t.Context(), now)
	assert.Equal(t, []int{401, 200}, []int{code(other, a), code(other, b)}, "the other server has read it")
	w.do("POST", "/logout", "everywhere=true", append(form, "Cookie", b)...)
	assert.Equal(t, 401, code(w, b))
	now = now.Add(time.Second)
	c := signIn()
	assert.Equal(t, 200, code(w, c), "and a new one can begin")
	again := worldAt(t, w.dir, "done", beyond)
	again.now = w.now
	again.tick(t.Context(), now)
	assert.Equal(t, []int{401, 401, 200}, []int{code(again, a), code(again, b), code(again, c)}, "also after a restart")
	changed := worldAt(t, w.dir, "done", beyond, func(s *Settings) { s.Token = token + "x" })
	assert.Equal(t, 401, code(changed, c), "a new token ends all")
	now = now.Add(sessionAge)
	assert.Equal(t, 401, code(w, c), "and so does time")
	assert.Equal(t, 401, w.do("POST", "/logout", "", form...).code, "who is not signed in signs nobody out")
}
