package seed_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// scripted is a page of a case.
type scripted struct {
	Status  int
	Headers map[string]string
	Body    string
}

// script gives the simulated web the hosts of a case. "*" is every other path; other hosts
// refuse connections.
func (j *job) script(hosts map[string]map[string]scripted) {
	for host, paths := range hosts {
		j.web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, ok := paths[r.URL.Path]
			if !ok {
				page, ok = paths["*"]
			}
			if !ok {
				http.NotFound(w, r)
				return
			}
			for name, value := range page.Headers {
				w.Header().Set(name, value)
			}
			if page.Status != 0 {
				w.WriteHeader(page.Status)
			}
			_, _ = io.WriteString(w, page.Body) // a client that is gone shows on its own side
		}))
	}
}

// refusing is a web in which hosts without a handler refuse connections.
var refusing = webtest.Options{Mix: map[webtest.Kind]int{webtest.KindRefused: 1}}

// What a record says is kept, and hosts that it calls dead are visited last.
func TestSource(t *testing.T) {
	j := newJob(t, refusing)
	site := pages(map[string]string{})
	for _, host := range []string{"first.com", "second.com", "who.int"} {
		j.web.Handle(host, site)
	}
	j.cfg.Lane.Web.Concurrency = 1
	j.put(raw, `{"records":[
		{"raw_url":"https://first.com/","liveness_status":"dead","confidence":2,"content_hints":["a",1]},
		{"raw_url":"https://www.who.int/","domain_id":"ngo:intl:who.int","confidence":0.5,"content_hints":["news", "h\u00e9"],"discovery_method":"crtsh"},
		{"raw_url":"https://second.com/","domain_id":"com:sg:second.com","liveness_status":"alive","content_hints":null}]}`)
	j.run()
	half := 0.5
	for host, want := range map[string]metadata.Source{
		"first.com":  {LivenessStatus: "dead"},
		"who.int":    {DomainID: "ngo:intl:who.int", Confidence: &half, ContentHints: []string{"news", "hé"}, DiscoveryMethod: "crtsh"},
		"second.com": {DomainID: "com:sg:second.com", LivenessStatus: "alive"},
	} {
		got := j.metadata(raw, host).Source
		want.RawFilePath, want.RecordIndex = raw, got.RecordIndex
		assert.Equal(t, want, *got, "%s: source", host)
	}
	var order []string
	for _, r := range j.web.Requests() {
		if r.Path == "/robots.txt" {
			order = append(order, r.Host)
		}
	}
	assert.Equal(t, []string{"who.int", "second.com", "first.com"}, order, "visited")
}

// The failing inputs that strangers found.
func TestSharedCases(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, m metadata.Domain){
		"relative-sitemap": func(t *testing.T, m metadata.Domain) {
			assert.True(t, m.Sitemap.URLCount != nil && *m.Sitemap.URLCount == 1 && m.Sitemap.URL == "https://rel.com/maps/all.xml",
				"sitemap %+v, want one URL in the relative one", m.Sitemap)
		},
		"id-intl": func(t *testing.T, m metadata.Domain) {
			assert.Equal(t, "ngo:intl:who.int", m.Source.DomainID, "source %+v, want the given id", m.Source)
		},
		"www-only": func(t *testing.T, m metadata.Domain) {
			if !m.Robots.Exists || m.Robots.Kind != "robots" || m.HostUsed != "www.wwwonly.com" || m.Robots.FinalURL != "https://www.wwwonly.com/robots.txt" {
				t.Errorf("host_used %q, robots %+v, want those of www.", m.HostUsed, m.Robots)
			}
			if m.Sitemap.URLCount == nil || *m.Sitemap.URLCount != 1 || m.Sitemap.URL != "https://www.wwwonly.com/sitemap.xml" || !m.Sitemap.Parsed {
				t.Errorf("sitemap %+v, want that of www.", m.Sitemap)
			}
		},
		"soft404-sitemap": func(t *testing.T, m metadata.Domain) {
			if s := m.Sitemap; !s.Exists || s.StatusCode != 200 || s.Parsed || s.Kind != "challenge" || s.ContentType != "text/html" || s.LastStatus != 200 {
				t.Errorf("sitemap %+v, want a challenge in HTML", s)
			}
			r := m.Robots
			assert.True(t, r.Exists && r.Kind == "challenge" && r.ContentType == "text/html", "robots %+v, want a challenge in HTML", r)
		},
		"blocked-sitemap": func(t *testing.T, m metadata.Domain) {
			if s := m.Sitemap; s.Exists || s.StatusCode != 404 || s.LastStatus != 403 || s.Error != "http_403" || s.Kind != "challenge" {
				t.Errorf("sitemap %+v, want 404 for 403", s)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(cases.Path(t, "round3/seed/"+name+".json"))
			must(t, err)
			var c struct {
				Hosts map[string]map[string]scripted
			}
			must(t, json.Unmarshal(text, &c))
			if c.Hosts == nil {
				c.Hosts = map[string]map[string]scripted{"who.int": {}}
			}
			j := newJob(t, refusing)
			j.script(c.Hosts)
			j.put(raw, string(text))
			j.run()
			for domain := range c.Hosts {
				check(t, j.metadata(raw, strings.TrimPrefix(domain, "www.")))
			}
		})
	}
}
