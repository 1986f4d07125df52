// Package botauth lets a crawler prove who it is: it signs requests as Web Bot Auth demands
// (draft-ietf-webbotauth-httpsig-protocol-01, of HTTP Message Signatures, RFC 9421) with Ed25519, and makes the key
// directory, the agent's card and the address list that its operator publishes. No promise: see docs/library.md.
package botauth

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/newsfork/seed-engine/io/secret"
)

// Always and Challenged are the values of Config.Mode.
const (
	Always     = "always"     // every request is signed
	Challenged = "challenged" // requests to a host are signed once it has asked for it
)

const (
	tag = "web-bot-auth"
	// label names the signature and its member of Signature-Agent, if the server does not choose a label.
	label = "sig1"
	// lifetime is how long a signature is valid. Each try of a request has a signature of its own.
	lifetime = 2 * time.Minute
	// readAgain is how often the key file is read again, so that a long run takes a new key.
	readAgain = time.Minute
	// maxAsked is how many hosts are remembered for what they asked for.
	maxAsked  = 10_000
	maxDemand = 2 << 10 // bytes of Accept-Signature
)

// Config says how requests are signed. It travels to workers: it names the key's file and does not contain the key.
type Config struct {
	Directory string `json:",omitempty"` // the URL of the key directory, sent as Signature-Agent; "": nothing is signed
	KeyFile   string `json:",omitempty"` // on the worker; SEED_BOT_KEY in its environment replaces it
	Mode      string `json:",omitempty"` // Always, Challenged, or "": Always if there is a key
}

// Signer signs requests. It is safe for concurrent use.
type Signer struct {
	cfg   Config
	file  string // that the keys come from, "" for the environment
	agent string // the directory as a structured field
	now   func() time.Time

	mu    sync.Mutex
	keys  keys
	read  time.Time // when the file was read
	asked map[string]*demand
}

// demand is what a host asked for by Accept-Signature.
type demand struct {
	text    string // of the field
	label   string
	covered []httpsfv.Item
	keyID   string
	nonce   string // for one request
	refused bool   // it asked again although it got what it asked for
}

// Open returns the signer of this process, nil if nothing is to be signed. Its errors say which key cannot be read.
func Open(cfg Config) (*Signer, error) {
	if cfg.Directory == "" {
		if os.Getenv(KeyVariable) != "" || os.Getenv(KeyVariable+secret.FileSuffix) != "" {
			return nil, fmt.Errorf("%s is set, but no page: name the page about the crawler in bot: page, whose host has the key directory", KeyVariable)
		}
		return nil, nil
	}
	keys, file, err := cfg.keys()
	if err != nil || keys == nil {
		return nil, err
	}
	agent, err := httpsfv.Marshal(httpsfv.NewItem(cfg.Directory))
	if err != nil {
		return nil, fmt.Errorf("the key directory's address: %w", err)
	}
	return &Signer{cfg: cfg, file: file, agent: agent, now: time.Now, keys: keys, read: time.Now(), asked: map[string]*demand{}}, nil
}

// Sign signs a request that is about to be sent. Its headers must be its own. The signature covers the authority, the
// method, the path and the query, so it is valid for no other host and no other page.
func (s *Signer) Sign(r *http.Request) error {
	s.mu.Lock()
	w, key := s.take(authority(r))
	s.mu.Unlock()
	if w == nil {
		return nil
	}
	now := s.now()
	covered := httpsfv.InnerList{Params: httpsfv.NewParams(), Items: []httpsfv.Item{component("@authority"), component("@method"), component("@path")}}
	value := requestValue(r)
	for _, c := range append([]httpsfv.Item{component("@query")}, w.covered...) {
		if _, ok := value(c); ok && !slices.ContainsFunc(covered.Items, func(o httpsfv.Item) bool { return o.Value == c.Value }) {
			covered.Items = append(covered.Items, c)
		}
	}
	covered.Items = append(covered.Items, component("signature-agent", "key", w.label))
	nonce := w.nonce
	if nonce == "" {
		nonce = rand.Text()
	}
	p := covered.Params
	p.Add("created", now.Unix())
	p.Add("keyid", key.ID)
	p.Add("alg", "ed25519")
	p.Add("expires", now.Add(lifetime).Unix())
	p.Add("nonce", nonce)
	p.Add("tag", tag)
	for _, name := range []string{"Signature", "Signature-Input"} {
		r.Header.Del(name)
	}
	r.Header.Set("Signature-Agent", w.label+"="+s.agent)
	return key.sign(r.Header, w.label, covered, value)
}

// take returns what a request to a host must meet, nil if it is not signed, and the key for it.
func (s *Signer) take(host string) (*demand, Key) {
	if now := s.now(); s.file != "" && now.Sub(s.read) >= readAgain {
		s.read = now
		if keys, err := readKeys(s.file); err != nil {
			log.Printf("signing continues with the former key: %v", err)
		} else {
			s.keys = keys
		}
	}
	key, w := s.keys[len(s.keys)-1], s.asked[host]
	if w == nil {
		if s.cfg.Mode == Challenged {
			return nil, key
		}
		return &demand{label: label}, key
	}
	if i := slices.IndexFunc(s.keys, func(k Key) bool { return k.ID == w.keyID }); i >= 0 {
		key = s.keys[i]
	}
	once := *w
	w.nonce = ""
	return &once, key
}

// Asked reports whether a request must be sent again, because its answer asks for a signature that it did not have
// (RFC 9421, section 5.1). again says that the request was sent again for this reason before. A host that asks for the same
// once more refuses the crawler: none of its answers leads to a second request from then on.
func (s *Signer) Asked(r *http.Request, status int, header http.Header, again bool) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return false
	}
	text := strings.Join(header.Values("Accept-Signature"), ", ")
	if text == "" || len(text) > maxDemand {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	host := authority(r)
	before := s.asked[host]
	if before != nil && (before.refused || again) {
		before.refused = true
		return false
	}
	w := s.demand(r, text)
	if w == nil || before != nil && before.text == text && w.nonce == "" {
		return false
	}
	if len(s.asked) >= maxAsked {
		clear(s.asked)
	}
	s.asked[host] = w
	return true
}

// demand reads the first request for a signature that can be met, nil for none.
func (s *Signer) demand(r *http.Request, text string) *demand {
	all, err := httpsfv.UnmarshalDictionary([]string{text})
	if err != nil {
		return nil
	}
	value := requestValue(r)
	for _, name := range all.Names() {
		m, _ := all.Get(name)
		list, ok := m.(httpsfv.InnerList)
		if !ok {
			continue
		}
		w := &demand{text: text, label: name}
		ok = meets(list.Params, "tag", tag) && meets(list.Params, "alg", "ed25519")
		if id, given := list.Params.Get("keyid"); given {
			w.keyID, _ = id.(string)
			ok = ok && slices.ContainsFunc(s.keys, func(k Key) bool { return k.ID == w.keyID })
		}
		if nonce, given := list.Params.Get("nonce"); given && nonce != true {
			w.nonce, _ = nonce.(string)
			ok = ok && w.nonce != ""
		}
		for _, c := range list.Items {
			if c.Value == "signature-agent" {
				continue // it is covered in any case
			}
			_, has := value(c)
			ok, w.covered = ok && has, append(w.covered, c)
		}
		if ok {
			return w
		}
	}
	return nil
}

// meets reports whether a requested parameter is absent, open or as it will be.
func meets(p *httpsfv.Params, name, ours string) bool {
	v, given := p.Get(name)
	return !given || v == true || v == ours
}
