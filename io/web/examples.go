package web

import (
	"maps"
	"net/url"
	"slices"
	"sync"
)

// maxExamples is how many URLs a Client keeps of each kind of failure and of each
// status from 400 on.
const maxExamples = 3

// maxTried is after how many failures of a kind no more examples are looked for: most
// of the first ones may be of one URL.
const maxTried = 100

// maxExample is how many bytes are kept of one.
const maxExample = 300

// examples are the URLs of the first requests that failed, by kind or status.
type examples struct {
	mu   sync.Mutex
	urls map[string][]string
}

func (e *examples) add(kind, at string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at = at[:min(len(at), maxExample)]
	if len(e.urls[kind]) == maxExamples || slices.Contains(e.urls[kind], at) {
		return
	}
	if e.urls == nil {
		e.urls = map[string][]string{}
	}
	e.urls[kind] = append(slices.Clip(e.urls[kind]), at)
}

func (e *examples) all() map[string][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.urls)
}

// anonymous is a URL without user and password.
func anonymous(u *url.URL) string {
	plain := *u
	plain.User = nil
	return plain.String()
}
