package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// record is one line of a raw file, with the fields of the research service.
type record struct {
	RawURL           string   `json:"raw_url"`
	NormalizedDomain string   `json:"normalized_domain,omitempty"`
	DomainID         string   `json:"domain_id,omitempty"`
	SourceType       string   `json:"source_type,omitempty"`
	DiscoveryMethod  string   `json:"discovery_method,omitempty"`
	Confidence       float64  `json:"confidence,omitempty"`
	ContentHints     []string `json:"content_hints,omitempty"`
	LivenessStatus   string   `json:"liveness_status,omitempty"`
}

// meta is the head of a raw file, with the fields of the research service.
type meta struct {
	DatasetID       string   `json:"dataset_id"`
	Country         string   `json:"country"`
	Category        string   `json:"category"`
	DiscoveredAt    string   `json:"discovered_at,omitempty"`
	ResearchMethods []string `json:"research_methods,omitempty"`
	Queries         []string `json:"queries,omitempty"`
	Engine          *engine  `json:"engine,omitempty"`
	RecordCount     int      `json:"record_count"`
}

type engine struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// shape says which fields a file's ordinary records have.
type shape int

const (
	brief shape = iota // raw_url, normalized_domain and domain_id
	full               // every optional field too
	bare               // raw_url alone
)

var paths = map[string][]string{
	"news":      {"/news", "/newsroom", "/press-releases", "/latest", "/"},
	"policy":    {"/policy", "/publications", "/about/policies", "/consultations", "/"},
	"education": {"/education", "/admissions", "/research", "/students", "/"},
}

// urlOf is a URL of the n-th host of a file; its path fits the category.
func urlOf(host, category string, n int) string {
	p := paths[category]
	return "https://" + host + p[n%len(p)]
}

// newRecord makes the record of rawURL in the given shape. Values vary only with n,
// the place in the file, so that two runs write the same bytes.
func newRecord(rawURL, country, category string, s shape, n int) record {
	r := record{RawURL: rawURL}
	if s == bare {
		return r
	}
	who, err := derive(rawURL, country)
	if err != nil {
		panic(fmt.Sprintf("ordinary record %s has no domain: %v", rawURL, err)) // a mistake in hosts.go
	}
	r.NormalizedDomain, r.DomainID = who.domain, who.id
	if s == brief {
		return r
	}
	r.SourceType, _, _ = strings.Cut(who.id, ":")
	r.DiscoveryMethod = []string{"google_search", "crtsh", "manual"}[n%3]
	r.Confidence = float64(60+n*7%40) / 100
	r.ContentHints = []string{category}
	if n%4 == 0 {
		r.ContentHints = append(r.ContentHints, "press")
	}
	r.LivenessStatus = []string{"alive", "alive", "alive", "unstable", "blocked", "dead"}[n%6]
	return r
}

// encode writes v without escaping & and <, as the research service does.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only plain structs come here
	}
	return bytes.TrimSpace(b.Bytes())
}
