package botauth

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Where documents about the crawler are on the page's host.
const (
	directoryPath = "/.well-known/http-message-signatures-directory"
	cardPath      = "/.well-known/signature-agent-card"
	addressesPath = "/.well-known/crawler-addresses.json"
)

// proofLifetime is how long the signatures of a directory are valid: longer than lists of directories take to be renewed.
const proofLifetime = 7 * 24 * time.Hour

// Document is something that the operator of a crawler publishes.
type Document struct {
	Header http.Header
	Body   []byte
}

func document(kind string, v any) (Document, error) {
	b, err := json.Marshal(v)
	return Document{http.Header{"Content-Type": {kind}, "Cache-Control": {"public, max-age=3600"}}, b}, err
}

// Directory is the key directory: a JWK Set with all keys, signed by each of them for the page's host and no other, whatever
// host a request names.
func (b Bot) Directory(now time.Time) (Document, error) {
	keys, _, err := b.Signing().keys()
	if err == nil && keys == nil {
		err = errors.New("there is no key: name its file in bot: key")
	}
	if err != nil {
		return Document{}, err
	}
	type jwk struct {
		Kty string `json:"kty"`
		Crv string `json:"crv"`
		Kid string `json:"kid"`
		X   string `json:"x"`
		Use string `json:"use"`
	}
	set := make([]jwk, len(keys))
	for i, k := range keys {
		set[i] = jwk{"OKP", "Ed25519", k.ID, x(k.public()), "sig"}
	}
	d, err := document("application/http-message-signatures-directory+json", map[string]any{"keys": set})
	if err != nil {
		return d, err
	}
	at, err := url.Parse(b.Page)
	if err != nil {
		return d, fmt.Errorf("page: %w", err)
	}
	return d, keys.prove(d, authority(&http.Request{URL: at}), now)
}

// prove adds to a directory one signature of each key, for a host.
func (all keys) prove(d Document, host string, now time.Time) error {
	value, err := answerValue(d.Header, d.Body, host)
	if err != nil {
		return err
	}
	for i, k := range all {
		covered := httpsfv.InnerList{Params: httpsfv.NewParams(), Items: []httpsfv.Item{component("@authority", "req", true), component("content-digest")}}
		covered.Params.Add("created", now.Unix())
		covered.Params.Add("expires", now.Add(proofLifetime).Unix())
		covered.Params.Add("keyid", k.ID)
		covered.Params.Add("tag", "http-message-signatures-directory")
		if err := k.sign(d.Header, fmt.Sprintf("binding%d", i), covered, value); err != nil {
			return err
		}
	}
	return nil
}

// answerValue adds the digest of an answer's body to its headers, and returns what the covered components of an answer from a host are.
func answerValue(h http.Header, body []byte, host string) (valueOf, error) {
	sum := sha256.Sum256(body)
	digest, err := httpsfv.Marshal(httpsfv.NewItem(sum[:]))
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	h.Set("Content-Digest", "sha-256="+digest)
	return func(c httpsfv.Item) (string, bool) {
		if c.Value == "@authority" {
			return host, true
		}
		return h.Get("Content-Digest"), true
	}, nil
}

// card is the signature agent's card (draft-meunier-webbotauth-registry-04).
func (b Bot) card(time.Time) (Document, error) {
	var agents, tokens []string
	for _, a := range b.agents() {
		agents, tokens = append(agents, b.UserAgent(a.Own)), append(tokens, a.Token())
	}
	contact := b.Contact
	if m := b.Mail(); m != "" {
		contact = "mailto:" + m
	}
	about := map[string]any{"expected-user-agent": oneOrAll(agents), "rfc9309-product-token": oneOrAll(tokens), "rfc9309-compliance": true,
		"trigger": "crawler", "rate-control": "Crawl-delay in robots.txt; Retry-After", "known-urls": []string{"/robots.txt"}}
	if len(b.Addresses) > 0 {
		about["ips_uri"] = b.at(addressesPath)
	}
	card := map[string]any{"client_id": b.at(cardPath), "client_name": strings.TrimSpace(b.Operator), "client_uri": b.Page, "contacts": []string{contact},
		"web_bot_auth": about}
	if b.Signs() {
		card["jwks_uri"] = b.at(directoryPath)
	}
	return document("application/json", card)
}

func oneOrAll(all []string) any {
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// addressList is the networks that requests come from (draft-illyes-webbotauth-jafar-00).
func (b Bot) addressList(now time.Time) (Document, error) {
	prefixes := []map[string]string{}
	for _, a := range b.Addresses {
		p, err := network(a)
		if err != nil {
			return Document{}, fmt.Errorf("addresses: %w", err)
		}
		family := "ipv6Prefix"
		if p.Addr().Is4() {
			family = "ipv4Prefix"
		}
		prefixes = append(prefixes, map[string]string{family: p.Masked().String()})
	}
	return document("application/json", map[string]any{"creationTime": now.UTC().Format(time.RFC3339), "prefixes": prefixes})
}
