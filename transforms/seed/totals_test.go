package seed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/webtest"
)

// The totals of a raw_metadata.json are compared with its partition: the records once all of its files are read.
func TestRawMetadata(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		before     bool // one of the two files is done
		fields     map[string][2]float64
		unreadable bool
	}{
		{name: "they agree", says: `{"total_records": 3, "files": ["raw_0001.json", "raw_0002.json"]}`},
		{name: "records", says: `{"record_count": 7}`, fields: map[string][2]float64{"records": {7, 3}}},
		{name: "files", says: `{"meta": {"total_files": 3, "total_records": 3}}`, fields: map[string][2]float64{"files": {3, 2}}},
		{name: "both", says: `{"files": [], "totals": {"records": 2}}`, fields: map[string][2]float64{"files": {0, 2}, "records": {2, 3}}},
		{name: "a file is done", says: `{"records": 9, "files": 1}`, before: true, fields: map[string][2]float64{"files": {1, 2}}},
		{name: "no totals", says: `{"country": "SG", "records": "many"}`},
		{name: "no JSON", says: `{"records": `, unreadable: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			j.put(day+"raw_0001.json", rawFile("https://urlset-1.com", "mailto:a"))
			j.put(day+"raw_0002.json", rawFile("https://urlset-1.com"))
			j.put("datasets/country=kr/category=news/date=2026-01-28/raw_0001.json", rawFile("https://urlset-1.com"))
			if tt.before {
				j.put(day+"raw_0002.json.success", "")
			}
			j.put(day+"raw_metadata.json", tt.says)
			total := j.run()
			events := j.events("raw_metadata_disagrees")
			for _, e := range events {
				want, ok := tt.fields[e["field"].(string)]
				assert.True(t, ok && e["meta"] == want[0] && e["found"] == want[1] && e["file_path"] == day+"raw_metadata.json",
					"event %v, want %v", e, tt.fields)
			}
			if n := total.Counts["raw_metadata_disagrees"]; len(events) != len(tt.fields) || n != int64(len(tt.fields)) {
				t.Errorf("%d events, count %d, want %d", len(events), n, len(tt.fields))
			}
			assert.Equal(t, tt.unreadable, len(j.events("raw_metadata_unreadable")) == 1, "unreadable")
			assert.True(t, total.Counts["files_completed"] != 0 && j.done(day+"raw_0001.json", "urlset-1.com"), "the run did not continue")
		})
	}
}
