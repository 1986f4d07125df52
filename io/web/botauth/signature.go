package botauth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// component is an identifier of RFC 9421, section 2. with are its parameters, as name and value.
func component(name string, with ...any) httpsfv.Item {
	c := httpsfv.NewItem(name)
	for i := 0; i+1 < len(with); i += 2 {
		c.Params.Add(with[i].(string), with[i+1])
	}
	return c
}

// valueOf returns what a component of a message is; false if it has none.
type valueOf func(httpsfv.Item) (string, bool)

// base returns the signature base (RFC 9421, section 2.5) of covered components and parameters, and the value of @signature-params.
func base(covered httpsfv.InnerList, value valueOf) (text, params string, err error) {
	var b strings.Builder
	for _, c := range covered.Items {
		id, err := httpsfv.Marshal(c)
		if err != nil {
			return "", "", fmt.Errorf("signing: %w", err)
		}
		v, ok := value(c)
		if !ok {
			return "", "", fmt.Errorf("signing: the message has no %s", id)
		}
		b.WriteString(id + ": " + v + "\n")
	}
	params, err = httpsfv.Marshal(covered)
	if err != nil {
		return "", "", fmt.Errorf("signing: %w", err)
	}
	return b.String() + `"@signature-params": ` + params, params, nil
}

// sign adds a signature to headers, next to those that are there.
func (k Key) sign(h http.Header, label string, covered httpsfv.InnerList, value valueOf) error {
	text, params, err := base(covered, value)
	if err != nil {
		return err
	}
	made, err := httpsfv.Marshal(httpsfv.NewItem(ed25519.Sign(k.private, []byte(text))))
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	h.Add("Signature-Input", label+"="+params)
	h.Add("Signature", label+"="+made)
	return nil
}

// requestValue returns what a component of a request is (RFC 9421, sections 2.1 and 2.2).
func requestValue(r *http.Request) valueOf {
	return func(c httpsfv.Item) (string, bool) {
		name, _ := c.Value.(string)
		if _, keyed := c.Params.Get("key"); keyed {
			v, err := member(r.Header, name, c)
			return v, err == nil
		}
		if len(c.Params.Names()) > 0 {
			return "", false
		}
		path, query := r.URL.EscapedPath(), "?"+r.URL.RawQuery
		if path == "" {
			path = "/"
		}
		target := path
		if r.URL.RawQuery != "" || r.URL.ForceQuery {
			target += query
		}
		switch name {
		case "@method":
			return r.Method, true
		case "@authority":
			return authority(r), true
		case "@scheme":
			return r.URL.Scheme, true
		case "@path":
			return path, true
		case "@query":
			return query, printable(query)
		case "@target-uri":
			return r.URL.Scheme + "://" + authority(r) + target, printable(target)
		case "@request-target":
			return target, printable(target)
		}
		var values []string
		for _, v := range r.Header.Values(name) {
			values = append(values, strings.TrimSpace(v))
		}
		v := strings.Join(values, ", ")
		return v, len(values) > 0 && printable(v)
	}
}

// authority is the host that a request is for, in lower case and without its scheme's own port.
func authority(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if host == "" {
		host = strings.ToLower(r.URL.Host)
	}
	return strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[r.URL.Scheme])
}

// member is the value of a dictionary field's member.
func member(h http.Header, field string, c httpsfv.Item) (string, error) {
	key, _ := c.Params.Get("key")
	name, ok := key.(string)
	if !ok || len(c.Params.Names()) > 1 {
		return "", errors.New("no key")
	}
	all, err := httpsfv.UnmarshalDictionary(h.Values(field))
	if err != nil {
		return "", err
	}
	m, ok := all.Get(name)
	if !ok {
		return "", errors.New("no such member")
	}
	return httpsfv.Marshal(m)
}

// printable reports whether a signature base may contain a value.
func printable(v string) bool {
	return strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
