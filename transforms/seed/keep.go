package seed

import (
	"bytes"
	"context"
	"fmt"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// evidenceTypes are the evidence files of a domain and their content types.
var evidenceTypes = map[string]string{
	"robots.txt":    "text/plain",
	"sitemap.xml":   "application/xml",
	"homepage.html": "text/html",
}

// validate is a variable only for the tests.
var validate = metadata.Validate

// document returns the findings as the metadata of one partition.
func (f findings) document(cfg Config, q request) (m metadata.Domain, doc []byte, err error) {
	index := q.index
	m = f.metadata
	m.DomainID, m.Country, m.Category = q.id, upper(q.in.Country), q.in.Category
	from := sourceOf(q.source, q.id).Source
	from.RawFilePath, from.RecordIndex, m.Source = cfg.Lane.Roots.Key(q.file), &index, &from
	if err := validate(m); err != nil {
		return m, nil, &invalidError{err}
	}
	if doc, err = metadata.Marshal(m); err != nil {
		return m, nil, &invalidError{err}
	}
	return m, doc, nil
}

// store writes the findings to one partition: the evidence, and then the metadata that
// describes it. The caller writes the mark, last.
func (f findings) store(ctx context.Context, w *lane.Worker, cfg Config, q request, name string, doc []byte, fresh bool) error {
	dir := q.in.DomainDir(name) + "/"
	var items []store.Item
	for file, contentType := range evidenceTypes {
		if file == "homepage.html" && !cfg.Collect.Homepage {
			continue
		}
		if got, ok := f.evidence[file]; ok {
			items = append(items, store.Item{Key: dir + file, Body: got.body, Options: store.PutOptions{ContentType: contentType}})
		} else if !fresh { // an earlier try that was killed may have left it
			if err := store.Remove(ctx, w.Store, dir+file); err != nil {
				return fmt.Errorf("removing old evidence %s: %w", dir+file, err)
			}
		}
	}
	evidence := len(items)
	items = append(items, store.Item{Key: metadataKey(q.in, name), Body: doc, Options: metadataOptions(q.in, q.id, name)})
	errs := store.PutAll(ctx, w.Store, items)
	for i, err := range errs[:evidence] {
		if err != nil {
			w.Log.Warn("evidence_file_save_failed", "domain_id", q.id, "key", items[i].Key, "error", ledger.Redact(err.Error()))
		}
	}
	return errs[evidence]
}

// metadataOptions are those with which a domain's metadata is written.
func metadataOptions(p hive.Partition, id, name string) store.PutOptions {
	return store.PutOptions{ContentType: "application/json", Metadata: map[string]string{
		"domain_id": id, "registrable_domain": name, "country": p.Country, "category": p.Category, "date": p.Date,
	}}
}

func upper(cc string) string { return string(bytes.ToUpper([]byte(cc))) }
