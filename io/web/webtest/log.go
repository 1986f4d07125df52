package webtest

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// LoggedRequest is one request as the simulated internet saw it. A TLS handshake that the kind refuses, leaves hanging or
// answers with another name's certificate is logged too, with an empty Method and Path.
type LoggedRequest struct {
	Start     time.Time // headers read
	End       time.Time // just before the last bytes of the response are sent, so a client's next request starts after it
	Scheme    string
	Host      string // lower case, without port
	Path      string // with the query
	Method    string
	UserAgent string
	Status    int   // 0: never answered
	Bytes     int64 // body bytes as written, before any client decoding
}

// Requests returns the finished requests in the order of their end, the oldest first: at most the last Options.LogLimit.
func (w *Web) Requests() []LoggedRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log[max(0, len(w.log)-w.logLimit()):])
}

// ResetLog forgets the requests and handshakes so far and sets MaxInFlight back to 0.
func (w *Web) ResetLog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log, w.maxInFlight = nil, w.inFlight
	w.handshakes, w.resumed = 0, 0
}

// Handshakes are the TLS handshakes that were completed, and how many of them resumed an earlier session.
func (w *Web) Handshakes() (all, resumed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handshakes, w.resumed
}

func (w *Web) countHandshake(s tls.ConnectionState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handshakes++
	if s.DidResume {
		w.resumed++
	}
	return nil
}

// MaxInFlight is the largest number of requests that were served at the same time.
func (w *Web) MaxInFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxInFlight
}

func (w *Web) logLimit() int {
	switch n := w.options.LogLimit; {
	case n < 0:
		return 0
	case n == 0:
		return defaultLogLimit
	default:
		return n
	}
}

func (w *Web) append(e LoggedRequest, counted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if counted {
		w.inFlight--
	}
	if limit := w.logLimit(); limit > 0 {
		// Cutting at twice the limit costs one copy for each limit's number of requests.
		if len(w.log) >= 2*limit {
			w.log = append(w.log[:0], w.log[len(w.log)-limit:]...)
		}
		w.log = append(w.log, e)
	}
}

// exchange is a ResponseWriter that logs its request once.
type exchange struct {
	http.ResponseWriter
	web     *Web
	entry   LoggedRequest
	length  int64 // the declared Content-Length, -1 when there is none
	aborted bool  // the response was omitted or cut off on purpose
	done    bool
}

func (w *Web) begin(rw http.ResponseWriter, r *http.Request) *exchange {
	w.mu.Lock()
	w.inFlight++
	w.maxInFlight = max(w.maxInFlight, w.inFlight)
	w.mu.Unlock()
	return &exchange{ResponseWriter: rw, web: w, length: -1, entry: LoggedRequest{Start: time.Now(), Scheme: scheme(r),
		Host: hostName(r.Host), Path: r.URL.RequestURI(), Method: r.Method, UserAgent: r.UserAgent()}}
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Flush is for handlers that stream.
func (x *exchange) Flush() {
	if x.entry.Status == 0 {
		x.entry.Status = http.StatusOK
	}
	if f, ok := x.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (x *exchange) WriteHeader(status int) {
	if x.entry.Status == 0 && status >= 200 {
		x.entry.Status = status
		if n, err := strconv.ParseInt(x.Header().Get("Content-Length"), 10, 64); err == nil {
			x.length = n
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.entry.Status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.entry.Bytes += int64(len(p))
	if x.entry.Bytes == x.length {
		x.finish() // the client may act on these bytes before this goroutine runs again
	}
	n, err := x.ResponseWriter.Write(p)
	if !x.done {
		x.entry.Bytes -= int64(len(p) - n)
	}
	return n, err
}

func (x *exchange) finish() {
	if x.done {
		return
	}
	x.done = true
	if x.entry.Status == 0 && !x.aborted {
		x.entry.Status = http.StatusOK
	}
	x.entry.End = time.Now()
	x.web.append(x.entry, true)
}
