// Package domain derives the identity of a URL's domain: the registrable domain, the
// kind of authority that owns it, and the domain_id, which is the key of a domain in the
// whole project.
//
// The package is pure: no network, no clock, no logging. It returns its corrections
// as notes, for the caller to log. No promise: see docs/library.md.
package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// The reasons why a domain could not be derived. They are wrapped with the refused
// text; compare with errors.Is. A second attempt returns the same error.
var (
	ErrNoHost      = errors.New("no host in the URL")
	ErrBadHost     = errors.New("not a valid host name")
	ErrIP          = errors.New("an IP address has no domain")
	ErrSingleLabel = errors.New("a single label is not a domain")
	ErrUnlisted    = errors.New("top-level name is not on the public suffix list")
	errCountry     = errors.New("country is not two letters")
)

// Domain is the identity of one URL's domain. Its JSON form has domain_hash as well.
type Domain struct {
	InputURL    string `json:"input_url"`          // as written in the record
	Hostname    string `json:"hostname"`           // lower case, ASCII, without www.
	Host        string `json:"-"`                  // of the URL, also with www.; "": it is not in the registrable domain
	Registrable string `json:"registrable_domain"` // by the public suffix list
	Authority   string `json:"authority"`          // gov, edu, org, com or other
	Country     string `json:"country"`            // upper case, the cc of the ID
	ID          string `json:"domain_id"`          // authority:cc:registrable_domain
}

// MarshalJSON adds domain_hash. It is computed only here, because most domains are
// duplicates and never written.
func (d Domain) MarshalJSON() ([]byte, error) {
	type plain Domain
	return json.Marshal(struct {
		plain
		Hash string `json:"domain_hash"`
	}{plain(d), hash(d.ID)})
}

// Note names a correction that FromRecord made.
type Note string

const (
	// noteInvalidID: the record's domain_id was invalid and was replaced by a derived one.
	noteInvalidID Note = "domain_id_invalid"
	// noteDomainDisagrees: normalized_domain was not the host of the domain_id and was replaced by a derived one.
	noteDomainDisagrees Note = "normalized_domain_disagrees"
	// noteURLDisagrees: raw_url is outside the domain of the record's valid domain_id, which counts.
	noteURLDisagrees Note = "raw_url_disagrees"
	// noteURLUnusable: raw_url has no usable host; the record's valid domain_id is used in its place.
	noteURLUnusable Note = "raw_url_unusable"
)

// FromURL derives the identity of rawURL's domain. country is the partition's
// two-letter code in any case; it becomes the cc of the ID. The errors are the
// sentinels of this package.
func FromURL(rawURL, country string) (Domain, error) {
	cc, err := foldCountry(country)
	if err != nil {
		return Domain{}, err
	}
	host, err := hostOf(rawURL)
	if err != nil {
		return Domain{}, err
	}
	return derive(rawURL, host, cc)
}

// FromRecord derives the identity of a raw record. A valid domain_id is kept with
// its own cc, one of an older system is written as a valid one, and a normalized_domain that disagrees with it is replaced by a
// derived one. Without a valid domain_id the domain is derived from rawURL and the
// partition's country. Notes say what was corrected; nil: nothing. It fails only
// when no domain can be derived, with the sentinels of this package.
func FromRecord(rawURL, normalizedDomain, domainID, country string) (Domain, []Note, error) {
	host, hostErr := hostOf(rawURL)
	if errors.Is(hostErr, errEmptyURL) { // raw_url is the only required field
		return Domain{}, nil, hostErr
	}
	var notes []Note
	if domainID != "" {
		authority, cc, registrable, suffix, ok := splitID(domainID)
		if !ok {
			domainID = ofOlderID(domainID, country)
			authority, cc, registrable, suffix, ok = splitID(domainID)
		}
		if ok {
			d := Domain{
				InputURL:    rawURL,
				Hostname:    registrable,
				Registrable: registrable,
				Authority:   authority,
				Country:     upperCountry(cc),
				ID:          domainID,
			}
			if normalizedDomain != "" && normalizedDomain != registrable {
				notes = append(notes, noteDomainDisagrees)
			}
			switch {
			case hostErr != nil:
				notes = append(notes, noteURLUnusable)
			case host == registrable, within(host, registrable):
				d.Hostname, d.Host = withoutWWW(host, registrable, suffix), host
			default:
				notes = append(notes, noteURLDisagrees)
				d.Hostname = withoutWWW(host, registrable, suffix)
			}
			return d, notes, nil
		}
		notes = append(notes, noteInvalidID)
	}
	if hostErr != nil {
		return Domain{}, notes, hostErr
	}
	cc, err := foldCountry(country)
	if err != nil {
		return Domain{}, notes, err
	}
	d, err := derive(rawURL, host, cc)
	if err != nil {
		return Domain{}, notes, err
	}
	if normalizedDomain != "" && normalizedDomain != d.Registrable {
		notes = append(notes, noteDomainDisagrees)
	}
	return d, notes, nil
}

func derive(rawURL, host, cc string) (Domain, error) {
	registrable, suffix, err := registrableOf(host)
	if err != nil {
		return Domain{}, err
	}
	authority := authorityOf(suffix)
	return Domain{
		InputURL:    rawURL,
		Hostname:    withoutWWW(host, registrable, suffix),
		Host:        host,
		Registrable: registrable,
		Authority:   authority,
		Country:     upperCountry(cc),
		ID:          authority + ":" + cc + ":" + registrable,
	}, nil
}

// Registrable returns the registrable domain of a bare host name by the public
// suffix list, ICANN and private sections. The host may be in any case, an IDN,
// or end in a dot. A public suffix of two or more labels (gov.sg) counts as registrable
// itself; ErrUnlisted, ErrSingleLabel, ErrIP and ErrBadHost refuse the rest.
func Registrable(host string) (string, error) {
	folded, err := foldHost(host)
	if err != nil {
		return "", err
	}
	registrable, _, err := registrableOf(folded)
	return registrable, err
}

// hash returns the domain_hash of a domain_id: SHA-256 in lower-case hexadecimal.
func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// splitID splits a domain_id into its parts, with the public suffix of host. It is valid when the
// authority is one of gov, edu, org, com, other, cc is two lower-case letters and host is a
// registrable domain in its canonical form.
func splitID(id string) (authority, cc, host, suffix string, ok bool) {
	authority, rest, found := strings.Cut(id, ":")
	if !found {
		return
	}
	switch authority {
	case "gov", "edu", "org", "com", "other":
	default:
		return
	}
	if len(rest) < 4 || rest[2] != ':' || !lowerLetter(rest[0]) || !lowerLetter(rest[1]) {
		return
	}
	cc, host = rest[:2], rest[3:]
	if !canonical(host) { // the common case does not need the IDN tables
		folded, err := foldHost(host)
		if err != nil || folded != host {
			return
		}
	}
	registrable, suffix, err := registrableOf(host)
	return authority, cc, host, suffix, err == nil && registrable == host
}

// ofOlderID returns the domain_id for one of an older system, which has the authorities ngo, intl and media, intl in place of a
// country, and IDN hosts in Unicode; "" for any other text. The authority is then that of the suffix, the country the partition's.
func ofOlderID(id, country string) string {
	authority, rest, _ := strings.Cut(id, ":")
	cc, host, _ := strings.Cut(rest, ":")
	folded, err := foldHost(host)
	if err != nil || folded != host && !strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return ""
	}
	_, suffix, err := registrableOf(folded)
	if err != nil {
		return ""
	}
	switch authority {
	case "ngo", "intl", "media":
		authority = authorityOf(suffix)
	}
	if cc == "intl" {
		cc = strings.ToLower(country)
	}
	return authority + ":" + cc + ":" + folded
}

func lowerLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// upperPairs has AA, AB … ZZ, so that upper case needs no allocation.
var upperPairs = func() string {
	var b strings.Builder
	for i := 'A'; i <= 'Z'; i++ {
		for j := 'A'; j <= 'Z'; j++ {
			b.WriteRune(i)
			b.WriteRune(j)
		}
	}
	return b.String()
}()

func upperCountry(cc string) string {
	at := 2 * (26*int(cc[0]-'a') + int(cc[1]-'a'))
	return upperPairs[at : at+2]
}

func foldCountry(country string) (string, error) {
	cc := strings.ToLower(country)
	if len(cc) != 2 || !lowerLetter(cc[0]) || !lowerLetter(cc[1]) {
		return "", fmt.Errorf("country %.20q: %w", country, errCountry)
	}
	return cc, nil
}
