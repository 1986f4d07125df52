package seed

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
)

// sameID begins the text of a record whose domain_id is the one that counts: most are.
const sameID = "="

// sourceText is what a record says besides its domain, in the form in which it travels: members
// of a JSON object.
func sourceText(r rawfile.Record, id string) string {
	switch r.DomainID {
	case "":
		return r.Says
	case id:
		return sameID + r.Says
	}
	b, _ := json.Marshal(r.DomainID[:min(len(r.DomainID), rawfile.MaxSays)]) // a string always encodes
	text := `"domain_id":` + string(b)
	if r.Says != "" {
		text += "," + r.Says
	}
	return text
}

// sourceOf returns the source that a sourceText describes, for a domain with that id.
func sourceOf(text, id string) *metadata.Source {
	s := new(metadata.Source)
	text, same := strings.CutPrefix(text, sameID)
	if json.Unmarshal([]byte("{"+text+"}"), s) != nil { // of this program, so it is JSON
		s = new(metadata.Source)
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
