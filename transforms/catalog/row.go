package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// maxRow is the maximum number of bytes that the journal stores of a row.
const maxRow = 64 << 10

// rowValues is what a row of the list says about its product.
type rowValues struct {
	Key    string                     `json:"key,omitempty"`
	Fields map[string]json.RawMessage `json:"fields"`
	Lacks  map[string]string          `json:"lacks,omitempty"` // fields without a value, and why as in lack
}

// readRow reads the fields of a row.
func (r *reader) readRow(row *page, base *url.URL) (rowValues, error) {
	out := rowValues{Fields: map[string]json.RawMessage{}}
	size := 0
	for _, f := range r.fields {
		if f.From != fromRow {
			continue
		}
		v, err := f.read(row, base)
		var b []byte
		if err == nil && v != nil {
			b, err = json.Marshal(v)
		}
		if size += len(b); err == nil && size > maxRow {
			err = fmt.Errorf("the fields of its row have more than %d bytes", maxRow)
		}
		if err != nil || v == nil {
			if out.Lacks == nil {
				out.Lacks = map[string]string{}
			}
			out.Lacks[f.name] = ""
			if err != nil {
				out.Lacks[f.name] = err.Error()
			}
			continue
		}
		out.Fields[f.name] = b
		if f.name == r.site.Key {
			out.Key = keyText(v)
		}
	}
	if len(out.Key) > maxKey {
		return out, fmt.Errorf("%w: it is longer than %d bytes", errNoKey, maxKey)
	}
	return out, nil
}

// keyOfRow returns the key of what the journal has of a row, "" if there is none.
func keyOfRow(text string) string {
	var row rowValues
	if json.Unmarshal([]byte(text), &row) != nil {
		return ""
	}
	return row.Key
}

// addRow adds what the journal has of a product's row to the product. A row that is not
// known, because the page is fetched again for a dead letter, says nothing about its fields.
func (p *ProductDetail) addRow(r *reader, text string) error {
	if !r.inRows {
		return nil
	}
	var row rowValues
	if text != "" {
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return fmt.Errorf("reading its row of the list: %w", err)
		}
	}
	for _, f := range r.fields {
		if f.From != fromRow {
			continue
		}
		if v, ok := row.Fields[f.name]; ok {
			p.Fields[f.name] = v
			continue
		}
		p.lacks = append(p.lacks, lack{field: f.name, why: row.Lacks[f.name], unseen: text == ""})
	}
	if row.Key != "" {
		p.Key = row.Key
	}
	return nil
}

// readRows reads the rows of a list page.
func (r *reader) readRows(p *page, base *url.URL, out *listPage) error {
	out.rows = map[string]string{}
	keys := map[string]string{} // by link
	for _, row := range r.rows.pages(p) {
		out.count++
		var read rowValues
		if r.inRows {
			var err error
			if read, err = r.readRow(row, base); err != nil && !errors.Is(err, errNoKey) {
				return err
			}
		}
		link, ok := r.rowLink(row, base, read.Key)
		switch {
		case r.site.Detail.Format == formatNone && read.Key == "":
			out.keyless++
			continue
		case !ok:
			out.foreign++
			continue
		}
		if r.site.Detail.Format == formatNone {
			if of, had := keys[link]; had && of != read.Key {
				link = withKey(link, read.Key)
			}
			keys[link] = read.Key
		}
		if out.seen(link) {
			continue
		}
		out.products = append(out.products, link)
		if r.inRows {
			b, err := json.Marshal(read)
			if err != nil {
				return fmt.Errorf("encoding a row: %w", err)
			}
			out.rows[link] = string(b)
		}
	}
	return nil
}

// rowLink returns the address of a row's product.
func (r *reader) rowLink(row *page, base *url.URL, key string) (string, bool) {
	if r.product != nil {
		if s, ok := r.product.first(row); ok {
			return r.link(base, s.text)
		}
		if r.site.Detail.Format != formatNone {
			return "", false
		}
	}
	u := *r.base // the same address for the same product, whichever page of the list has it
	u.Fragment = key
	s := u.String()
	return s, untrusted.Key(s) == nil
}

// withKey returns the address of a product whose row has the link of another product.
func withKey(link, key string) string {
	link, _, _ = strings.Cut(link, "#")
	return link + "#" + (&url.URL{Fragment: key}).EscapedFragment()
}

// link returns the address of a product, of which the list has a link or, for detail.url,
// a part.
func (r *reader) link(base *url.URL, s string) (string, bool) {
	s = strings.TrimSpace(s)
	if template := r.site.Detail.URL; template != "" {
		before, after, _ := strings.Cut(template, "{link}")
		if strings.Contains(before, "?") {
			s = url.QueryEscape(s)
		} else {
			s = url.PathEscape(s)
		}
		return r.follow(base, before+s+after)
	}
	if r.site.Detail.Format == formatNone { // it is not fetched, so it may be of any host
		u, err := base.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", false
		}
		u.User = nil
		return u.String(), untrusted.Key(u.String()) == nil
	}
	at, ok := r.follow(base, s)
	return r.plain(at), ok
}
