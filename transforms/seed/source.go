package seed

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
)

// sameID begins the text of a record whose domain_id is the one that counts: most are.
const sameID = "="

// sourceText is what a record says besides its domain, in the form in which it travels: members
// of a JSON object.
func sourceText(r rawfile.Record, d domain.Domain) string {
	text, same := r.Says, ""
	add := func(name, value string) {
		b, _ := json.Marshal(value) // a string always encodes
		text = strings.TrimSuffix(`"`+name+`":`+string(b)+","+text, ",")
	}
	switch r.DomainID {
	case "":
	case d.ID:
		same = sameID
	default:
		add("domain_id", r.DomainID[:min(len(r.DomainID), rawfile.MaxSays)])
	}
	if d.Host != "" && d.Host != d.Registrable && d.Host != "www."+d.Registrable {
		add("host", d.Host)
	}
	return same + text
}

// source is what a sourceText says.
type source struct {
	metadata.Source
	Host string `json:"host"` // of the URL, where it is neither the domain nor its www.
}

// sourceOf returns the source that a sourceText describes, for a domain with that id.
func sourceOf(text, id string) source {
	var s source
	text, same := strings.CutPrefix(text, sameID)
	if json.Unmarshal([]byte("{"+text+"}"), &s) != nil { // of this program, so it is JSON
		s = source{}
	}
	if same {
		s.DomainID = id
	}
	return s
}

// deadLast puts the hosts last that all of their records call dead.
func (t *hostTable) deadLast() {
	dead := func(h host) bool {
		return !slices.ContainsFunc(h.records, func(r hostRecord) bool { return !strings.Contains(r.source, rawfile.SaysDead) })
	}
	var last []host
	t.hosts = slices.DeleteFunc(t.hosts, func(h host) bool {
		if !dead(h) {
			return false
		}
		last = append(last, h)
		return true
	})
	t.hosts = append(t.hosts, last...)
}
