package seed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// dead are domains that do not resolve, for a file of their own.
func (j *job) dead(key string, n int) (names []string) {
	j.t.Helper()
	var urls []string
	for i := range n {
		names = append(names, fmt.Sprintf("kind-no-such-host-%d.com", i))
		urls = append(urls, "https://"+names[i])
	}
	j.put(key, rawFile(urls...))
	return names
}

func (j *job) isDone(total int64, raw string, names []string) {
	j.t.Helper()
	assert.True(j.t, total == 0 && j.cause == nil && j.exists(raw+".success"),
		"outage %d, cause %v, file done %v: want the sites' own failures recorded", total, j.cause, j.exists(raw+".success"))
	for _, n := range names {
		assert.True(j.t, j.done(raw, n), "%s is not done", n)
	}
}

// Too few visits say nothing about our own network.
func TestFewDeadDomainsAreNoOutage(t *testing.T) {
	for _, n := range []int{1, 19} {
		j := newJob(t, webtest.Options{})
		names := j.dead(raw, n)
		j.isDone(j.run().Counts["outage"], raw, names)
	}
}

// A run that was stopped before its last domains, which are dead, ends when it is resumed.
func TestDeadRestIsNoOutage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, names := j.hosts(60)
	j.run()
	must(t, j.store.Delete(t.Context(), raw+".success"))
	dead := j.dead(day+"raw_0002.json", 30)
	j.isDone(j.run().Counts["outage"], day+"raw_0002.json", dead)
	assert.True(t, j.exists(raw+".success") && j.marks() == len(names)+len(dead), "%d marks, want %d", j.marks(), len(names)+len(dead))
}

// Where nothing but dead domains is left, a host that answered an earlier run
// shows that the network works.
func TestProbeOfAnEarlierRun(t *testing.T) {
	j := newJob(t, webtest.Options{})
	_, names := j.hosts(5)
	j.run()
	j.web.ResetLog()
	other := "datasets/country=kr/category=news/date=2026-01-29/raw_0001.json"
	dead := j.dead(other, 40)
	j.isDone(j.run().Counts["outage"], other, dead)
	probes := 0
	for _, n := range names {
		got := j.asked(n)
		probes += len(got)
		assert.True(t, len(got) <= 1 && (len(got) != 1 || got[0] == "/robots.txt"), "%s was asked for %q, want robots.txt once at most", n, got)
	}
	assert.NotEqual(t, 0, probes, "nobody was asked whether the network works")
}

// A whole window of dead domains does not stop the run while other domains answer.
func TestProbeBeforeTheRunIsStopped(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.hosts(3)
	j.run()
	other := "datasets/country=kr/category=news/date=2026-01-29/raw_0001.json"
	dead := j.dead(other, 450)
	j.isDone(j.run().Counts["outage"], other, dead)
}

// A host that answered in place of its domain is the one that is probed.
func TestProbeOfAnotherHost(t *testing.T) {
	j := newJob(t, refusing)
	j.web.Handle("docs.site.com", pages(map[string]string{"/robots.txt": "User-agent: *\n"}))
	raw, urls := day+"raw_0001.json", []string{"https://docs.site.com/a"}
	for i := range 20 {
		urls = append(urls, fmt.Sprintf("https://refused-%d.com", i))
	}
	j.put(raw, rawFile(urls...))
	if total := j.run(); total.Counts["outage"] != 0 || j.marks() != 21 || !j.exists(raw+".success") {
		t.Errorf("%v, %d marks, want those of 21 domains and no outage", total.Counts, j.marks())
	}
}

// The network goes down in a resumed run. Hosts that are done already do not hide the
// outage, because they do not answer either.
func TestOutageAfterAFinishedPart(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, names := j.hosts(60)
	j.run()
	must(t, j.store.Delete(t.Context(), raw+".success"))
	d := newDoor(t, j.web.Addr(), 1)
	must(t, d.ln.Close())
	j.cfg.Lane.Web.ConnectTo = d.at
	other := day + "raw_0002.json"
	var urls []string
	for i := range 30 {
		urls = append(urls, fmt.Sprintf("https://kind-urlset-%d.com", i))
	}
	j.put(other, rawFile(urls...))
	total := j.run()
	assert.NotEqualValues(t, 0, total.Counts["outage"], "the launcher gets no word of the outage: %v", total.Counts)
	c := total.Counts
	assert.True(t, c["domains_collected"] == 0 && c["metadata_written"] == 0, "what is not marked is counted: %v", c)
	n := j.marks()
	assert.True(t, n == len(names) && !j.exists(other+".success"), "%d marks, want the %d of the first run", n, len(names))
}

// No certificate can be verified (an inspecting proxy whose authority is not
// installed here): that is our own machine, whatever the number of domains.
func TestCertificatesOutage(t *testing.T) {
	for _, n := range []int{20, 400} {
		j := newJob(t, webtest.Options{Seed: 1})
		other := webtest.New(webtest.Options{Seed: 2})
		must(t, other.Start())
		t.Cleanup(func() { must(t, other.Close()) })
		j.cfg.Lane.Web.RootCAs = other.CAPEM()
		raw, _ := j.hosts(n)
		total := j.run()
		assert.True(t, n >= 200 || total.Counts["outage_tls"] != 0, "%d domains: the launcher gets no word of the outage: %v", n, total.Counts)
		assert.True(t, n <= 200 || (j.cause != nil && strings.Contains(j.cause.Error(), "SSL_CERT_FILE")),
			"%d domains: cause %v, want one that says what to do about certificates", n, j.cause)
		assert.EqualValues(t, 0, total.Counts["domains_collected"], "%d domains: what is not marked is counted: %v", n, total.Counts)
		assert.True(t, j.marks() == 0 && !j.exists(raw+".success"), "%d domains: %d are marked", n, j.marks())
		tried := total.HTTP.Failures["tls"] / 2
		assert.True(t, n <= 200 || tried <= 300, "%d domains were tried, want little more than the window", tried) // each with www.
	}
}

// Sites that speak no TLS and answer by http show that the network works.
func TestPlainHTTPIsNoOutage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	var urls []string
	for i := range 25 {
		urls = append(urls, fmt.Sprintf("https://kind-tls-refused-%d.com", i))
	}
	j.put(raw, rawFile(urls...))
	total := j.run()
	assert.Equal(t, []int64{0, 0, 25}, []int64{total.Counts["outage"], total.Counts["outage_tls"], total.Counts["domains_collected"]}, total.Counts)
	assert.Equal(t, 25, j.marks())
}

// Where no sitemap candidate answered the status is 404; error and
// last_status tell a host that does not answer from one without a sitemap.
func TestNobodyAnswered(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Collect.StrictHosts = true
	names := map[string]int{"kind-no-such-host-1.com": 0, "kind-tls-wrong-name-1.com": 0, "kind-reset-1.com": 0, "kind-no-sitemap-1.com": 404}
	var urls []string
	for n := range names {
		urls = append(urls, "https://"+n)
	}
	j.crawl(urls...)
	for n, status := range names {
		r := j.metadata(raw, n).Robots
		assert.Equal(t, (r.ErrorText != ""), (r.Error != ""), "%s: robots.txt: %q says %q", n, r.Error, r.ErrorText)
		if m := j.metadata(raw, n).Sitemap; m.StatusCode != 404 || m.LastStatus != status || (m.Error != "") != (status == 0) || m.URL != "https://"+n+"/sitemap.xml" {
			t.Errorf("%s: %+v, want last_status %d", n, m, status)
		}
	}
}

// The schema knows every word that an error field can have.
func TestErrorWords(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.crawl("https://kind-urlset-1.com")
	m := j.metadata(raw, "kind-urlset-1.com")
	for _, k := range append(web.Kinds(), metadata.CrawlDelay, metadata.RetryAfter, metadata.Disallowed, web.Kind(metadata.StatusOutside(999))) {
		m.Robots.Error, m.Sitemap.Error = string(k), string(k)
		assert.NoError(t, metadata.Validate(m), k)
	}
	if m.Robots.Error = "no word of ours"; metadata.Validate(m) == nil {
		t.Error("any word passes")
	}
}
