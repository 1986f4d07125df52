package catalog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
)

// A saver puts up to maxSaveBatch products into one transaction, and waits up to saveLinger for them. A killed run fetches again what was
// not saved.
const (
	maxSaveBatch = 128
	saveLinger   = 100 * time.Millisecond
)

// dbSaver writes products to the database: SaveProduct → nothing.
func (v *visit) dbSaver() *stage {
	return &stage{name: "DbSaver", fails: "failed_db_saver", input: KindSaveProduct, size: v.cfg.Savers, batch: maxSaveBatch, linger: saveLinger, enough: v.layout.enough, commit: v.commitProducts,
		work: func(context.Context, Task) ([]Task, error) { return nil, nil }}
}

// enough reports whether products must be saved now, so that a crawl stops early if its pages are not what the file says: no more are
// gathered than were saved before, and no more than minBreak that lack a field.
func (l *layout) enough(results []result) bool {
	if len(results) >= l.savedPages() {
		return true
	}
	lack := 0
	for i := range results {
		if len(results[i].task.(SaveProduct).ProductDetail.lacks) > 0 {
			lack++
		}
	}
	return lack >= minBreak
}

// commitProducts writes a saver's products and ends their tasks in one transaction, so
// that no product is saved twice and none is lost.
func (v *visit) commitProducts(ctx context.Context, results []result) error {
	products := make([]product, 0, len(results))
	at := map[string]int{} // by the address of the page
	for i := range results {
		t := results[i].task.(SaveProduct)
		p, err := v.reader.asProduct(t.ProductDetail, t.entry)
		if err != nil {
			results[i].err = &failure{kind: "save_failed", final: true, err: err}
			continue
		}
		at[p.from.URL] = i
		products = append(products, p)
	}
	if len(products) == 0 {
		return nil
	}
	done, err := v.save(ctx, products, func(p product, err error) { results[at[p.from.URL]].err = err })
	var broken *failure
	switch {
	case errors.As(err, &broken):
		return v.stopSite(broken)
	case err != nil:
		return fmt.Errorf("saving %d products: %w", len(products), err)
	}
	v.state.Stats.saved(done)
	v.warn(collided, "", len(done.collided))
	for _, p := range products {
		if results[at[p.from.URL]].err != nil {
			continue
		}
		if err := v.unreadable(ctx, p); err != nil {
			return err
		}
	}
	if err := v.layout.keys(done.saved, len(done.collided)); err != nil {
		return v.stopSite(err)
	}
	return nil
}

// save writes products, and calls failed for each product whose key another page has.
func (v *visit) save(ctx context.Context, products []product, failed func(product, error)) (outcome, error) {
	var seen map[string]aspect
	done, err := v.journal.save(ctx, products, v.clock(), v.cfg.Lane.RunID, func(products []product, before map[string]storedProduct) (err error) {
		seen, err = v.layout.judge(v.reader.observations(products, before))
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	v.layout.commit(seen)
	for _, c := range done.collided {
		failed(c.product, &failure{kind: "key_collision", final: true, err: fmt.Errorf("it has the key %q, which %s has in this crawl with other values: is %s the right key field?", c.key, c.other, v.reader.site.Key)})
	}
	return done, nil
}

// observations returns which of the site's fields the pages have.
func (r *reader) observations(products []product, before map[string]storedProduct) (all []observation) {
	for _, p := range products {
		if p.from.Asked != "" {
			continue // it may be a page that says that the product is sold no more
		}
		for _, f := range r.fields {
			s := observation{aspect: f.name, has: true, expected: f.required, url: p.url}
			for _, l := range p.lacks {
				if l.field == f.name && l.unseen {
					s.aspect = ""
				} else if l.field == f.name {
					_, had := before[p.key].fields[f.name]
					s.has, s.why = false, l.String()+", "+f.looksFor()
					s.drop = had && !f.Volatile
					s.expected = f.required || l.why != ""
				}
			}
			if s.aspect != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

// unreadable writes a dead letter for a product that was saved without a value that its
// page has, and resolves it when the product has all its values.
func (v *visit) unreadable(ctx context.Context, p product) error {
	d := v.deadLetterOf(p.from)
	for _, l := range p.lacks {
		if l.why != "" {
			d.Stage, d.Kind, d.Error = "ProductDetailParser", "unreadable_field", l.String()
			v.log.Warn("field_unreadable", "field", l.field, "url", p.url, "error", ledger.Redact(l.why))
			v.warn(unreadable, l.field, 1)
			return v.w.DeadLetter(ctx, d)
		}
	}
	v.resolve(ctx, p.from)
	return nil
}

// product is a product as its page shows it, ready to be saved.
type product struct {
	key, url string
	fields   map[string]json.RawMessage
	lacks    []lack
	volatile map[string]bool // fields whose value is removed when the page no longer has it
	from     entry
}

func (r *reader) asProduct(p ProductDetail, from entry) (product, error) {
	out := product{key: p.Key, url: p.URL, fields: make(map[string]json.RawMessage, len(p.Fields)), lacks: p.lacks, from: from}
	for _, f := range r.fields {
		if f.Volatile {
			if out.volatile == nil {
				out.volatile = map[string]bool{}
			}
			out.volatile[f.name] = true
		}
	}
	for name, v := range p.Fields {
		b, err := json.Marshal(v)
		if err != nil {
			return product{}, fmt.Errorf("encoding the product's field %s: %w", name, err)
		}
		out.fields[name] = b
	}
	return out, nil
}

// storedProduct is a product in the database.
type storedProduct struct {
	key, url, hash              string
	detail                      string // JSON of fields
	fields                      map[string]json.RawMessage
	state                       string
	kept                        map[string]int64 // fields that the page no longer has, and since when
	first, last, changed, crawl int64
}

// lost reports whether the page lacks a value that the page of the other version shows.
func (s storedProduct) lost(other storedProduct) bool {
	for name := range s.kept {
		if _, kept := other.kept[name]; !kept {
			return true
		}
	}
	return false
}

// change is a change of a value.
type change struct {
	key, field  string
	at          int64
	was, became *string // JSON; nil: none
}

// merge returns what is stored of a product after its page was read: the values of the
// page, and the old values of fields that the page lacks.
func (p product) merge(old storedProduct, had bool, now, crawl int64) (row storedProduct, changes []change, state string) {
	row = storedProduct{key: p.key, url: p.url, fields: maps.Clone(p.fields), kept: map[string]int64{}, first: now, last: now, changed: now, crawl: crawl}
	for _, l := range p.lacks {
		v, was := old.fields[l.field]
		if !was || p.volatile[l.field] && l.why == "" && !l.unseen {
			continue
		}
		row.fields[l.field] = v
		if at := old.kept[l.field]; at > 0 || !l.unseen {
			row.kept[l.field] = cmp.Or(at, now)
		}
	}
	row.detail = encode(row.fields)
	sum := sha256.Sum256([]byte(row.detail)) // of the fields only: a new address does not change the product
	row.hash = hex.EncodeToString(sum[:])
	if !had {
		return row, nil, stateNew
	}
	row.first, row.last, row.changed = old.first, max(now, old.last), old.changed
	if row.hash == old.hash {
		return row, nil, stateUnchanged
	}
	row.changed = max(now, old.changed+1) // each change has a different time, even if the clock does not advance
	row.last = max(row.last, row.changed)
	names := slices.AppendSeq(slices.Collect(maps.Keys(old.fields)), maps.Keys(row.fields))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, became := old.fields[name], row.fields[name]
		if !bytes.Equal(was, became) {
			changes = append(changes, change{key: p.key, field: name, at: row.changed, was: text(was), became: text(became)})
		}
	}
	return row, changes, stateChanged
}

func quoted(s string) *string { return new(strconv.Quote(s)) }

func text(v json.RawMessage) *string {
	if v == nil {
		return nil
	}
	return new(string(v))
}

// encode returns the JSON of fields, as json.Marshal would. Their names are plain and
// their values are JSON of json.Marshal already, which would check each byte again.
func encode(fields map[string]json.RawMessage) string {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, name), ':')
		b = append(b, fields[name]...)
	}
	return string(append(b, '}'))
}

// outcome counts the results of saving products.
type outcome struct {
	saved, added, changed, unchanged int
	back                             int // of unchanged and changed: products that were gone
	again                            int // pages of products that were already saved from another page
	collided                         []collision
}

// collision is a product that was not saved, because another page of this crawl has the
// same key and other values.
type collision struct {
	product
	other string // address of the other page
}

// save writes products and ends their tasks. Before anything is written, judge, if set, gets the
// products that do not collide and their stored versions; its error cancels everything.
func (j *rows) save(ctx context.Context, products []product, now time.Time, runID string, judge func([]product, map[string]storedProduct) error) (o outcome, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		o = outcome{}
		before, err := j.stored(ctx, tx, products)
		if err != nil {
			return err
		}
		var from []entry
		var shown []product
		write := map[string]pendingWrite{}
		for _, p := range products {
			old, had := before[p.key]
			mine, written := write[p.key]
			if written {
				old = mine.storedProduct
			}
			row, changed, state := p.merge(before[p.key], had, db.Micros(now), j.number)
			back := had && before[p.key].state == stateGone
			if (had || written) && old.crawl == j.number && old.url != p.url {
				if old.hash != row.hash || row.lost(old) {
					o.collided = append(o.collided, collision{p, old.url})
					continue
				}
				o.again++
			} else {
				if !written {
					o.saved++
				}
				write[p.key] = pendingWrite{row, state, changed, back}
			}
			from, shown = append(from, p.from), append(shown, p)
		}
		if judge != nil {
			if err := judge(shown, before); err != nil {
				return err
			}
		}
		changes := o.count(write)
		if err := j.upsert(ctx, tx, write); err != nil {
			return err
		}
		if err := j.displace(ctx, tx, shown); err != nil {
			return err
		}
		if err := j.remember(ctx, tx, changes, runID); err != nil {
			return err
		}
		return j.set(ctx, tx, from, done)
	})
	return o, err
}

// count counts the products to write, and returns their changes.
func (o *outcome) count(write map[string]pendingWrite) (changes []change) {
	for key, w := range write {
		changes = append(changes, w.changes...)
		if w.back {
			changes = append(changes, change{key: key, field: stateField, at: w.last, was: quoted(stateGone), became: quoted(stateBack)})
			o.back++
		}
		switch w.state {
		case stateNew:
			o.added++
		case stateChanged:
			o.changed++
		default:
			o.unchanged++
		}
	}
	return changes
}

// pendingWrite is a product to write.
type pendingWrite struct {
	storedProduct
	state   string
	changes []change
	back    bool // it was gone
}

// shown returns the state that the product's row has.
func (w pendingWrite) shown() string {
	if w.back {
		return stateBack
	}
	return w.state
}

// stored reads the stored versions of products, by key.
func (j *rows) stored(ctx context.Context, tx *sql.Tx, products []product) (map[string]storedProduct, error) {
	keys := make([]string, len(products))
	for i, p := range products {
		keys[i] = p.key
	}
	out := make(map[string]storedProduct, len(products))
	for s, err := range db.Select(ctx, tx, func(r *sql.Rows) (s storedProduct, err error) {
		var kept string
		if err = r.Scan(&s.key, &s.url, &s.hash, &s.first, &s.last, &s.changed, &s.crawl, &s.state, &s.detail, &kept); err == nil {
			err = errors.Join(json.Unmarshal([]byte(s.detail), &s.fields), json.Unmarshal([]byte(kept), &s.kept))
		}
		if err != nil {
			err = fmt.Errorf("reading product %s: %w", s.key, err)
		}
		return s, err
	}, `SELECT product_key, url, content_hash, first_seen, last_seen, changed_at, seen_in, state, detail, kept FROM catalog_products
		WHERE site = $1 AND product_key `+j.db.AnyOf(2), j.site, j.db.List(keys)) {
		if err != nil {
			return nil, err
		}
		out[s.key] = s
	}
	return out, nil
}

// upsert writes products. It sorts them by key: two writers then lock rows in the same
// order, and cannot deadlock.
func (j *rows) upsert(ctx context.Context, tx *sql.Tx, write map[string]pendingWrite) error {
	all := make([][]any, 0, len(write))
	for _, key := range slices.Sorted(maps.Keys(write)) {
		w := write[key]
		kept, err := json.Marshal(w.kept)
		if err != nil {
			return fmt.Errorf("encoding the product: %w", err)
		}
		all = append(all, []any{j.site, key, w.url, w.detail, w.hash, w.first, w.last, w.changed, w.crawl, w.shown(), string(kept), int64(0), int64(0)})
	}
	return j.db.InsertRows(ctx, tx, "catalog_products", []string{"site", "product_key", "url", "detail", "content_hash", "first_seen", "last_seen", "changed_at", "seen_in", "state", "kept", "gone_at", "missing_in"}, all,
		`ON CONFLICT (site, product_key) DO UPDATE SET url = excluded.url, detail = excluded.detail, content_hash = excluded.content_hash,
		last_seen = excluded.last_seen, changed_at = excluded.changed_at, seen_in = excluded.seen_in, state = excluded.state, kept = excluded.kept, gone_at = excluded.gone_at, missing_in = 0`)
}

// remember writes the changes of products.
func (j *rows) remember(ctx context.Context, tx *sql.Tx, changes []change, runID string) error {
	all := make([][]any, len(changes))
	for i, c := range changes {
		all[i] = []any{j.site, runID, c.key, c.at, c.field, c.was, c.became}
	}
	return j.db.InsertRows(ctx, tx, "catalog_changes", []string{"site", "run_id", "product_key", "changed_at", "field", "was", "became"}, all, "")
}
