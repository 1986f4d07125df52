package policy

import (
	"encoding/json"
	"fmt"
	"time"
)

// Edit is how a server shows and changes policies, as an option.Policies.
// Load reads the policies of a directory, "" for the shipped ones.
type Edit struct {
	Load func(dir string) ([]Policy, error)
}

// shown is a provider as Edit shows it.
type shown struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Origin   origin          `json:"origin"`
	Off      string          `json:"off"`
	State    string          `json:"state"` // one word, if nothing is against it
	Why      string          `json:"why"`   // more about State
	SeedURLs []string        `json:"seed_urls"`
	Terms    Terms           `json:"terms"`
	ReadOn   string          `json:"read_on"`
	TermsURL string          `json:"terms_url"`
	TermsOld string          `json:"terms_old"`
	Policy   json.RawMessage `json:"policy"`
}

func show(p Provider, now time.Time) (shown, error) {
	s := shown{ID: p.ProviderID, Name: p.Name, Origin: p.Origin, Off: p.Off, State: "crawled", SeedURLs: p.SeedURLs, Terms: p.Terms,
		ReadOn: p.TermsDate, TermsURL: p.TermsURL, TermsOld: p.TermsOld(now)}
	switch {
	case p.Terms == Prohibited:
		s.State, s.Why = "prohibited", "its terms of service prohibit it"
	case p.Channel == Context7:
		s.State, s.Why = "context7", "crawled unless Context7 has it, or with --fallback"
	}
	var err error
	s.Policy, err = p.JSON()
	return s, err
}

// Kept implements option.Policies.
func (Edit) Kept() string { return Kept() }

// Fields implements option.Policies.
func (Edit) Fields() []string { return Fields() }

// Text implements option.Policies.
func (Edit) Text(fields []byte) (string, error) { return YAML(fields) }

// Read implements option.Policies.
func (Edit) Read(text string, now time.Time) ([]byte, error) {
	p, err := Parse("policy", []byte(text), now)
	if err != nil {
		return nil, err
	}
	s, err := show(Provider{Policy: p}, now)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Providers implements option.Policies.
func (e Edit) Providers(dir string, kept map[string]json.RawMessage, now time.Time) ([]byte, error) {
	files, err := e.Load(dir)
	if err != nil {
		return nil, err
	}
	changes := map[string]Change{}
	for id, body := range kept {
		var c Change
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, fmt.Errorf("reading what is kept of provider %s: %w", id, err)
		}
		changes[id] = c
	}
	all := []shown{}
	for _, p := range Providers(files, changes, dir != "", now) {
		s, err := show(p, now)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return json.Marshal(all)
}
