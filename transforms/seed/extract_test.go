package seed_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
)

func TestExtractFile(t *testing.T) {
	s := memory(t)
	key := day + "raw_0001.json"
	must(t, s.Put(t.Context(), key, strings.NewReader(`{"records":[
		{"raw_url":"https://www.moe.gov.sg/news"},
		{"raw_url":"not a url"},
		{"raw_url":"https://moe.gov.sg/other"},
		{"raw_url":"https://www.site.com/","domain_id":"other:kr:site.com"},
		{"raw_url":"https://site.com/"},
		{"normalized_domain":"no-url.com"},
		{"raw_url":"https://b.site.com/x","domain_id":"nonsense"},
		7]}`), store.PutOptions{}))
	var got []lane.URLRecord
	x, err := seed.ExtractFile(t.Context(), s, key, slog.New(slog.DiscardHandler), func(m lane.URLRecord) error { got = append(got, m); return nil })
	must(t, err)
	want := []lane.URLRecord{
		{Host: "moe.gov.sg", Label: "gov:sg", Index: 0},
		{Host: "site.com", Label: "other:kr", Index: 3, Source: "="}, // a valid domain_id is kept
		{Host: "site.com", Label: "com:sg", Index: 4},                // another id of the same host
	}
	assert.Equal(t, want, got, "records")
	o, err := s.Head(t.Context(), key)
	must(t, err)
	if x.ETag != o.ETag || x.Records != 8 || x.Bad != 3 || !slices.Equal(x.BadIndices, []int{1, 5, 7}) || x.Domains != 3 || x.FirstBad == nil {
		t.Errorf("%+v", x)
	}
}

func TestExtractFileErrors(t *testing.T) {
	s := memory(t)
	for name, tt := range map[string]struct {
		body string
		want error
	}{
		"raw_0001.json": {`{"records":[{"raw_url":"https://a.com"}`, rawfile.ErrTruncated},
		"raw_0002.json": {`{"records":[{"raw_url" "https://a.com"}]}`, rawfile.ErrBadJSON},
		"raw_0003.json": {`{"meta":{}}`, rawfile.ErrNoRecords},
		"raw_0004.json": {``, rawfile.ErrTruncated},
	} {
		must(t, s.Put(t.Context(), day+name, strings.NewReader(tt.body), store.PutOptions{}))
		_, err := seed.ExtractFile(t.Context(), s, day+name, slog.New(slog.DiscardHandler), func(lane.URLRecord) error { return nil })
		assert.True(t, errors.Is(err, tt.want) && !store.Retryable(err) && strings.Contains(err.Error(), name),
			"%q: %v, want %v, which is final and names the file", tt.body, err, tt.want)
	}
	_, err := seed.ExtractFile(t.Context(), s, day+"raw_0009.json", slog.New(slog.DiscardHandler), nil)
	assert.True(t, errors.Is(err, store.ErrNotExist) && !store.Retryable(err), "a missing file: %v", err)
}

// A file far larger than a buffer is never held: a repeated domain costs nothing.
func TestExtractFileLong(t *testing.T) {
	s := memory(t)
	key := day + "raw_0001.json"
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, `{"meta":{"record_count":50000},"records":[{"raw_url":"https://a.com"}`)
		for n := range 49_999 {
			_, _ = fmt.Fprintf(w, `,{"raw_url":"https://a.com/%d"}`, n)
		}
		_, _ = io.WriteString(w, `]}`)
		_ = w.Close()
	}()
	must(t, s.Put(t.Context(), key, r, store.PutOptions{}))
	n := 0
	x, err := seed.ExtractFile(t.Context(), s, key, slog.New(slog.DiscardHandler), func(lane.URLRecord) error { n++; return nil })
	must(t, err)
	assert.True(t, n == 1 && x.Domains == 1 && x.Records == 50_000, "%d records, %+v", n, x)
}

func TestBadRecords(t *testing.T) {
	j := newJob(t, webtest.Options{})
	total := j.crawl("https://kind-urlset-1.com", "https://10.0.0.1/", "https://localhost/")
	letters := j.deadLetters()
	if len(letters) != 1 || letters[0].Kind != "bad_records" || letters[0].Input.File != raw || !slices.Equal(letters[0].Input.Indices, []int{1, 2}) || letters[0].Retryable || letters[0].Stage != "extract" {
		t.Fatalf("dead letters %+v", letters)
	}
	want := `record 1: host "10.0.0.1": an IP address has no domain; record 2: host "localhost": a single label is not a domain`
	assert.True(t, strings.HasSuffix(letters[0].Error, want), "%q lacks %q", letters[0].Error, want)
	bad := j.events("domain_extraction_failed")
	assert.True(t, len(bad) == 2 && bad[0]["file_path"] == raw && bad[0]["record_index"] == 1.0, "events %v", bad)
	if c := total.Counts; c["records"] != 3 || c["records_bad"] != 2 || c["domains_collected"] != 1 || c["dead_letters"] != 1 || total.DeadLetters["bad_records"] != 1 {
		t.Errorf("total %+v", total)
	}
	// A person must look at the bad records; the file itself is done.
	assert.True(t, j.exists(raw+".success"), "bad records keep their file open")
	// Mended and read again, its dead letter is removed.
	j.put(raw, rawFile("https://kind-urlset-1.com"))
	must(t, j.store.Delete(t.Context(), raw+".success"))
	j.run()
	assert.Empty(t, j.deadLetters(), "a success leaves")
}

func TestBadFile(t *testing.T) {
	j := newJob(t, webtest.Options{})
	bad, good := day+"raw_0001.json", day+"raw_0002.json"
	// kind-urlset-1 is named by both, kind-urlset-2 by the broken file alone.
	whole := rawFile("https://kind-urlset-1.com", "https://kind-urlset-2.com")
	// Long enough for records to be on their way to the lanes before the break.
	urls := []string{"https://kind-urlset-1.com", "https://kind-urlset-2.com"}
	for n := range 2000 {
		urls = append(urls, fmt.Sprintf("https://kind-no-sitemap-%d.com", n))
	}
	long := rawFile(urls...)
	j.put(bad, long[:len(long)-2])
	none := "datasets/country=kr/category=news/date=2026-01-28/raw_0001.json" // breaks off before it names anybody
	j.put(none, `{"records":[`)
	j.put(good, rawFile("https://kind-urlset-3.com", "https://kind-urlset-1.com"))
	total := j.run()
	letters := j.deadLetters()
	letters = slices.DeleteFunc(letters, func(d ledger.DeadLetter) bool { return d.Input.File == none && d.Kind == "bad_file" })
	if len(letters) != 1 || letters[0].Kind != "bad_file" || letters[0].Input.File != bad || letters[0].Retryable || letters[0].Attempts != 1 {
		t.Fatalf("dead letters %+v", letters)
	}
	assert.True(t, !j.exists(bad+".success") && !j.exists(none+".success") && j.exists(good+".success"),
		"the broken file must stay open, the other must be done")
	assert.Empty(t, j.asked("kind-urlset-2.com"), "records before the break are crawled")
	m := j.metadata(good, "kind-urlset-1.com")
	assert.True(t, m.Source.RawFilePath == good && *m.Source.RecordIndex == 1, "source %+v: the broken file must not count", m.Source)
	c := total.Counts
	assert.True(t, c["files_bad"] == 2 && c["files_read"] == 1 && c["domains_unique"] == 2 && c["files_listed"] == 3, "counts %v", c)
	must(t, j.store.Delete(t.Context(), none))
	must(t, j.store.Delete(t.Context(), "dead-letters/seed/"+ledger.DeadLetter{Job: seed.Job, Kind: "bad_file", Input: ledger.Input{File: none}}.ID()+".json"))
	j.run()
	l := j.deadLetters()
	assert.True(t, len(l) == 1 && l[0].Attempts == 2, "a second failure updates the dead letter: %+v", l)
	j.put(bad, whole)
	j.run()
	l = j.deadLetters()
	assert.True(t, len(l) == 0 && j.exists(bad+".success") && j.done(bad, "kind-urlset-2.com"), "a mended file: dead letters %+v", l)
}

func TestMetaDisagrees(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, last := day+"raw_0001.json", day+"raw_0002.json"
	j.put(raw, `{"meta":{"country":"KR","category":"policy","record_count":5},"records":[{"raw_url":"https://kind-urlset-1.com","domain_id":"bad","collected_at":7}]}`)
	j.put(last, `{"records":[{"raw_url":"https://kind-urlset-1.com"}],"meta":{"country":"sg","category":"news","record_count":1}}`)
	j.run()
	m := j.metadata(raw, "kind-urlset-1.com")
	assert.True(t, m.Country == "SG" && m.Category == "news", "the path wins: %+v", m)
	got := j.events("meta_disagrees")
	assert.True(t, len(got) == 2 && got[0]["file_path"] == raw, "meta_disagrees %v", got)
	got = j.events("record_count_mismatch")
	assert.True(t, len(got) == 1 && got[0]["meta"] == 5.0 && got[0]["records"] == 1.0, "record_count_mismatch %v", got)
	assert.Len(t, j.events("domain_identity_derived"), 1, "domain_identity_derived")
	assert.True(t, j.exists(raw+".success") && j.exists(last+".success"), "neither is fatal")
}

func TestDedupeAcrossFiles(t *testing.T) {
	j := newJob(t, webtest.Options{})
	name := "kind-urlset-1.com"
	one, two, kr := day+"raw_0001.json", day+"raw_0002.json", "datasets/country=kr/category=news/date=2026-01-28/raw_0001.json"
	j.put(two, `{"records":[{"raw_url":"https://kind-urlset-1.com","domain_id":"edu:sg:kind-urlset-1.com"}]}`)
	j.put(one, `{"records":[{"raw_url":"https://kind-urlset-2.com"},{"raw_url":"https://kind-urlset-1.com","domain_id":"org:sg:kind-urlset-1.com"},{"raw_url":"https://kind-urlset-1.com"}]}`)
	j.put(kr, rawFile("https://www.kind-urlset-1.com"))
	total := j.run()
	assert.Equal(t, []string{"/robots.txt", "/sitemap.xml"}, j.asked(name), "asked for")
	if m := j.metadata(one, name); m.DomainID != "org:sg:"+name || m.Source.RawFilePath != one || *m.Source.RecordIndex != 1 || m.Country != "SG" {
		t.Errorf("sg: %+v, %+v", m, m.Source)
	}
	if m := j.metadata(kr, name); m.DomainID != "com:kr:"+name || m.Source.RawFilePath != kr || *m.Source.RecordIndex != 0 || m.Country != "KR" {
		t.Errorf("kr: %+v, %+v", m, m.Source)
	}
	for _, f := range []string{one, two, kr} {
		assert.True(t, j.exists(f+".success"), "%s is open", f)
	}
	// By domain_id: org, edu and com of sg, com of kr; and the other host.
	c := total.Counts
	assert.True(t, c["domains_unique"] == 5 && c["domains_collected"] == 5 && c["records"] == 5, "counts %v", c)

	// A partition that came later brings the domain once more, for itself alone.
	j.web.ResetLog()
	later := "datasets/country=sg/category=news/date=2026-01-29/raw_0001.json"
	before := j.metadata(one, name).CollectedAt
	j.put(later, rawFile("https://"+name))
	must(t, j.store.Delete(t.Context(), one+".success"))
	total = j.run()
	if got := j.asked(name); len(got) != 2 || !j.done(later, name) || j.metadata(one, name).CollectedAt != before {
		t.Errorf("asked for %q; collected_at %s, was %s", got, j.metadata(one, name).CollectedAt, before)
	}
	assert.Empty(t, j.asked("kind-urlset-2.com"), "a domain that every partition has is fetched again")
	c = total.Counts
	assert.True(t, c["domains_already_done"] != 0 && c["files_skipped"] == 2 && len(j.events("domain_already_processed")) != 0, "counts %v", c)
}

// URL records that are kept do not keep the records of the file in memory.
func TestURLRecordsAreSmall(t *testing.T) {
	const records = 10_000
	var file strings.Builder
	file.WriteString(`{"records":[`)
	for i := range records {
		if i > 0 {
			file.WriteString(",")
		}
		fmt.Fprintf(&file, `{"raw_url":"https://site-%d.com/%s","domain_id":"com:sg:site-%[1]d.com"}`, i, strings.Repeat("x", 1000))
	}
	file.WriteString("]}")
	s := memory(t)
	key := day + "raw_0001.json"
	must(t, s.Put(t.Context(), key, strings.NewReader(file.String()), store.PutOptions{}))
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	kept := make([]lane.URLRecord, 0, records)
	before := used()
	_, err := seed.ExtractFile(t.Context(), s, key, slog.New(slog.DiscardHandler), func(m lane.URLRecord) error { kept = append(kept, m); return nil })
	must(t, err)
	assert.LessOrEqual(t, int(used())-int(before), 100*records, "%d URL records keep", records)
	for i, m := range kept {
		require.Equal(t, (lane.URLRecord{Host: fmt.Sprintf("site-%d.com", i), Label: "com:sg", Source: "=", Index: i}), m, "record %d", i)
	}
}
