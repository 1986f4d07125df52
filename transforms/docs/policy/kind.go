package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// Kind is how policies of providers are read, shown and changed. load reads those of a directory, "" for the shipped ones.
func Kind(load func(dir string, now time.Time) ([]Policy, error)) policyfile.Kind[Policy] {
	return policyfile.Kind[Policy]{
		Words: policyfile.Words{Job: "docs", One: "provider", Many: "providers", Key: "provider_id", Flag: "policies", Schema: "Policy",
			Blank:   "provider_id:\nname:\nseed_urls:\n  - https://\nallowed_path_patterns:\n  - /**\ntos: unknown\n",
			Needs:   []string{"provider_id", "seed_urls", "allowed_path_patterns"},
			Example: `{"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/guide/**"]}`,
			Try:     []string{"docs", "--policies={dir}", "--explain={page}"}},
		Type: reflect.TypeFor[Policy](),
		Read: func(text string, now time.Time) (Policy, error) { return Parse("policy", []byte(text), now) },
		ID:   func(p Policy) string { return p.ProviderID },
		Files: func(option func(name string) string, now time.Time) ([]Policy, bool, error) {
			dir := option("policies")
			files, err := load(dir, now)
			return files, dir != "", err
		},
		Show: show,
	}
}

func show(p Policy, now time.Time) (s policyfile.Shown, err error) {
	s = policyfile.Shown{Name: p.Name, State: "crawled"}
	switch {
	case p.Terms == Prohibited:
		s.State, s.Why = "prohibited", "its terms of service prohibit it"
	case p.Channel == Context7:
		s.State, s.Why = "context7", "crawled unless Context7 has it, or with --fallback"
	}
	for _, u := range p.SeedURLs {
		s.Addresses = append(s.Addresses, policyfile.Address{Field: "seed_urls", URL: u})
	}
	terms := string(p.Terms)
	if p.TermsDate != "" {
		terms += ", read on " + p.TermsDate
	}
	if old := p.TermsOld(now); old != "" {
		terms += "; " + old
	}
	s.Facts = [][2]string{{"Terms", terms}}
	if p.TermsURL != "" {
		s.Addresses = append(s.Addresses, policyfile.Address{Field: "tos_url", URL: p.TermsURL})
	}
	s.Fields, err = p.JSON()
	return s, err
}

// JSON writes a policy as JSON, with the names of a file and without fields that have no
// value.
func (p Policy) JSON() ([]byte, error) { return object(reflect.ValueOf(p)) }

// object writes a struct whose fields have names of YAML. The YAML library's own JSON has
// escapes that JSON does not know.
func object(v reflect.Value) ([]byte, error) {
	out := []byte{'{'}
	for f, field := range v.Fields() {
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			continue
		}
		var b []byte
		var err error
		if field.Kind() == reflect.Struct {
			b, err = object(field)
		} else {
			b, err = json.Marshal(field.Interface())
		}
		if err != nil {
			return nil, fmt.Errorf("writing %s of a policy: %w", f.Name, err)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, f.Tag.Get("yaml")), ':'), b...)
	}
	return append(out, '}'), nil
}
