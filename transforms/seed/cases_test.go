package seed_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/io/web/webtest"
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

// The failing inputs that strangers found.
func TestSharedCases(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, m metadata.Domain){
		"relative-sitemap": func(t *testing.T, m metadata.Domain) {
			if m.Sitemap.URLCount == nil || *m.Sitemap.URLCount != 1 || m.Sitemap.URL != "https://rel.com/maps/all.xml" {
				t.Errorf("sitemap %+v, want one URL in the relative one", m.Sitemap)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../../shared/cases/round3/seed", name+".json"))
			must(t, err)
			var c struct {
				Hosts map[string]map[string]scripted
			}
			must(t, json.Unmarshal(text, &c))
			j := newJob(t, refusing)
			j.script(c.Hosts)
			raw := day + "raw_0001.json"
			j.put(raw, string(text))
			j.run()
			for domain := range c.Hosts {
				check(t, j.metadata(raw, strings.TrimPrefix(domain, "www.")))
			}
		})
	}
}
