package samplebucket

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// identity is the part of a domain's identity that the expected numbers need.
type identity struct {
	id     string // authority:cc:registrable
	domain string // registrable domain, ASCII
}

// The rules for a domain's identity (package domain) are written a second time here
// on purpose: numbers computed by the code that they check would prove nothing.

var (
	idPattern = regexp.MustCompile(`^(gov|edu|org|com|other):[a-z]{2}:([a-z0-9.-]+)$`)

	errNoDomain = errors.New("no domain can be derived")
)

// derive returns the identity of rawURL when seen from country.
func derive(rawURL, country string) (identity, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return identity{}, err
	}
	domain, err := registrable(u.Hostname())
	if err != nil {
		return identity{}, err
	}
	return identity{id: authority(domain) + ":" + country + ":" + domain, domain: domain}, nil
}

// parseID returns the identity that a well-formed domain_id states.
func parseID(id string) (identity, error) {
	m := idPattern.FindStringSubmatch(id)
	if m == nil {
		return identity{}, errNoDomain
	}
	if domain, err := registrable(m[2]); err != nil || domain != m[2] {
		return identity{}, errNoDomain
	}
	return identity{id: id, domain: m[2]}, nil
}

// registrable returns the registrable domain of host; a public suffix of two
// or more labels stands for itself.
func registrable(host string) (string, error) {
	if _, err := netip.ParseAddr(host); err == nil {
		return "", errNoDomain
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil {
		return "", err
	}
	if !strings.Contains(host, ".") {
		return "", errNoDomain
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	if !icann && !strings.Contains(suffix, ".") {
		return "", errNoDomain // the list's default rule: the top-level domain is not listed
	}
	if suffix == host {
		return host, nil
	}
	return publicsuffix.EffectiveTLDPlusOne(host)
}

// authority knows the suffixes of the sample's countries only.
func authority(domain string) string {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	if suffix == domain {
		suffix = "." + suffix
	}
	for label := range strings.SplitSeq(suffix, ".") {
		switch label {
		case "gov", "go":
			return "gov"
		case "edu", "ac":
			return "edu"
		case "org", "or":
			return "org"
		case "com", "co":
			return "com"
		}
	}
	return "other"
}
