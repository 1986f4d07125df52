//go:build e2e

package e2etest

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The calls that S3 bills apart, see https://aws.amazon.com/s3/pricing/.
const (
	billedPut  = "PUT, POST, LIST" // also each part of a large object
	billedGet  = "GET, HEAD"
	billedNone = "DELETE"
)

// meteredStore is a proxy before an S3 server. It counts the calls that reach it over
// the wire by how they are billed. Of each root folder it refuses calls above a rate,
// as Amazon's S3 does of each prefix.
type meteredStore struct {
	puts, gets float64 // a second and root folder
	proxy      http.Handler

	mu      sync.Mutex
	calls   map[string]int64
	refused int64
	left    map[string]*allowance // of a root folder's puts or gets
}

// Amazon promises so many calls a second and prefix:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
const s3Puts, s3Gets = 3500, 5500

// allowance is how many calls may be made now: at most those of a second.
type allowance struct {
	calls float64
	at    time.Time
}

// newMetered returns a metered store, and the address at which it listens is the caller's matter.
func newMetered(target *url.URL, puts, gets float64) *meteredStore {
	return &meteredStore{puts: puts, gets: gets, proxy: signedProxy(target), calls: map[string]int64{}, left: map[string]*allowance{}}
}

// signedProxy forwards requests to an S3 server as they were signed.
func signedProxy(target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}, // another header would break the signature
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the host is signed
		},
	}
}

func (m *meteredStore) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if m.refuses(r) {
		rw.Header().Set("Content-Type", "application/xml")
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = rw.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)) // a client that has gone needs no answer
		return
	}
	m.proxy.ServeHTTP(rw, r)
}

// refuses counts a call, and reports whether it is above the rate. What is refused is
// not billed.
func (m *meteredStore) refuses(r *http.Request) bool {
	key := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3) // bucket, the store's own prefix, key
	prefix := r.URL.Query().Get("prefix")
	list := r.Method == http.MethodGet && (len(key) < 2 || key[1] == "")
	if list {
		_, prefix, _ = strings.Cut(prefix, "/")
	} else if len(key) == 3 {
		prefix = key[2]
	}
	root, _, _ := strings.Cut(prefix, "/")
	class, limited, rate := billedGet, "get ", m.gets
	switch r.Method {
	case http.MethodPut, http.MethodPost:
		class, limited, rate = billedPut, "put ", m.puts
	case http.MethodDelete:
		class, limited, rate = billedNone, "put ", m.puts
	default:
		if list {
			class = billedPut
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	a := m.left[limited+root]
	if a == nil {
		a = &allowance{rate, now}
		m.left[limited+root] = a
	}
	a.calls, a.at = min(rate, a.calls+rate*now.Sub(a.at).Seconds()), now
	if a.calls < 1 {
		m.refused++
		return true
	}
	a.calls--
	m.calls[class]++
	return false
}

// taken returns the counts since the last call.
func (m *meteredStore) taken() (calls map[string]int64, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, refused = m.calls, m.refused
	m.calls, m.refused = map[string]int64{}, 0
	return calls, refused
}
