package face

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	// countsAge is how long counts are shown: those of a large database take a second.
	countsAge = time.Minute
	maxCounts = 200 // that are kept
	// maxDownload is how many items a file has at most, and maxDownloading how long they are searched for: the server ends a longer
	// answer, but not a search that finds nothing.
	maxDownload    = 100_000
	maxDownloading = 2 * time.Minute
)

// counts are what a search finds, counted. nil: nothing is counted, or nothing was found yet.
func (f *Face) counts(ctx context.Context, k kind, q explore.Query) (*explore.Counts, error) {
	if k.Count == nil {
		return nil, nil
	}
	e, key := f.explorer, k.Name+"?"+queryOf(q).Encode()
	e.mu.Lock()
	c, ok := e.counts[key]
	e.mu.Unlock()
	if ok && f.Now().Sub(c.kept) < countsAge {
		return &c.Counts, nil
	}
	c.kept = f.Now()
	err := e.look(ctx, k, func(ctx context.Context, src explore.Source) (err error) {
		c.Counts, err = k.Count(ctx, src, q)
		return err
	})
	if errors.Is(err, explore.ErrNothingYet) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Note == "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.counts) >= maxCounts {
			clear(e.counts)
		}
		e.counts[key] = c
	}
	return &c.Counts, nil
}

// keptCounts are counts and when they were read.
type keptCounts struct {
	explore.Counts
	kept time.Time
}

// link is a choice on a page.
type link struct {
	Text, URL string
	N         int64
	Now       bool // it is chosen
}

// with is the address of the list with other values.
func (k kindForm) with(values ...string) string {
	q := queryOf(k.Query)
	q.Del(explore.After)
	for i := 0; i < len(values); i += 2 {
		if !k.has(values[i]) && values[i] != explore.MeasureField {
			continue
		}
		if q.Set(values[i], values[i+1]); values[i+1] == "" {
			q.Del(values[i])
		}
	}
	if len(q) == 0 {
		return "/explore/" + k.Name
	}
	return "/explore/" + k.Name + "?" + q.Encode()
}

// has reports whether a search has the field.
func (k kindForm) has(name string) bool {
	return slices.ContainsFunc(k.Fields, func(f explore.Field) bool { return f.Name == name })
}

// File is the address of the list as a file, without the measure of a picture that no search takes.
func (k kindForm) File(format string) string {
	q := queryOf(k.Query)
	q.Del(explore.After)
	if !k.has(explore.MeasureField) {
		q.Del(explore.MeasureField)
	}
	q.Set("format", format)
	return "/explore/" + k.Name + "/file?" + q.Encode()
}

// Facet are the choices of a field.
func (k kindForm) Facet(f explore.Facet) (all []link) {
	chosen := k.Query[f.Field]
	if chosen != "" {
		all = append(all, link{Text: "any", URL: k.with(f.Field, "")})
	}
	for _, v := range f.Values {
		if v.Value != "" {
			all = append(all, link{v.Value, k.with(f.Field, v.Value), v.Count, v.Value == chosen})
		}
	}
	return all
}

// Label is the label of a field.
func (k kindForm) Label(field string) string {
	if i := slices.IndexFunc(k.Fields, func(f explore.Field) bool { return f.Name == field }); i >= 0 {
		return k.Fields[i].Label
	}
	return strings.ToUpper(field[:1]) + field[1:]
}

// picture is a picture by one of its measures.
type picture struct {
	*explore.Picture
	form    kindForm
	Measure explore.Measure
	most    int64
	now     time.Time
}

// Picture is that of the list; nil: there is none.
func (p explorePage) Picture() *picture {
	if p.Counts == nil || p.Counts.Picture == nil || len(p.Counts.Picture.Rows) == 0 || p.Kind.Query[explore.After] != "" {
		return nil
	}
	v := &picture{Picture: p.Counts.Picture, form: *p.Kind, now: p.now}
	v.Measure = v.Of(p.Kind.Query[explore.MeasureField])
	for _, r := range v.Rows {
		v.most = max(v.most, slices.Max(append(r.Figures[v.Measure.Name], 0)))
	}
	return v
}

// Ways are the measures.
func (p *picture) Ways() (all []link) {
	for _, m := range p.Measures {
		all = append(all, link{Text: m.Title, URL: p.form.with(explore.MeasureField, m.Name), Now: m == p.Measure})
	}
	return all
}

// figure is a figure of a picture.
type figure struct {
	N          int64
	Shade, URL string
}

// Figures are those of a row.
func (p *picture) Figures(l explore.Line) (all []figure) {
	for i, n := range l.Figures[p.Measure.Name] {
		list := p.form.with(p.Row, l.Name, p.Column, p.Columns[i], explore.MeasureField, p.form.Query[explore.MeasureField])
		all = append(all, figure{n, shade(n, p.most), list})
	}
	return all
}

// Sum is the sum of a row.
func (p *picture) Sum(l explore.Line) (n int64) {
	for _, v := range l.Figures[p.Measure.Name] {
		n += v
	}
	return n
}

// URL is the list of a row.
func (p *picture) URL(l explore.Line) string { return p.form.with(p.Row, l.Name) }

// Draw draws a row as columns.
func (p *picture) Draw(l explore.Line) template.HTML {
	values := l.Figures[p.Measure.Name]
	label := fmt.Sprintf("%s: %s %s from %s to %s, at most %s in one %s", shown(l.Name), ledger.FormatCount(p.Sum(l)),
		strings.ToLower(p.Measure.Title), shown(p.Columns[0]), shown(p.Columns[len(p.Columns)-1]),
		ledger.FormatCount(slices.Max(append(values, 0))), p.Column)
	return columnPlot(label, values, p.most)
}

// Age is how old the newest item of a row is.
func (p *picture) Age(l explore.Line) string {
	if l.Newest == nil {
		return "–"
	}
	return ago(p.now.Sub(*l.Newest)) + " ago"
}

// allOf yields all items of a search, page by page.
func (f *Face) allOf(ctx context.Context, k kind, q explore.Query) iter.Seq2[explore.Record, error] {
	return func(yield func(explore.Record, error) bool) {
		ends := f.Now().Add(maxDownloading)
		for n := 0; n < maxDownload; {
			if f.Now().After(ends) {
				yield(nil, known.Answer(http.StatusServiceUnavailable, fmt.Sprintf("the search takes over %v; choose more narrowly", maxDownloading)))
				return
			}
			list, err := f.search(ctx, k, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range list.Items {
				if n++; n > maxDownload || !yield(item.Record, nil) {
					return
				}
			}
			if q[explore.After] = list.Next; list.Next == "" {
				return
			}
		}
	}
}

// download answers with the list of a search as a file.
func (f *Face) download(k kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Query()
		format := rows.Format(given.Get("format"))
		given.Del("format")
		q, err := readQuery(given, k.Fields, true)
		types := map[rows.Format]string{rows.CSV: "text/csv; charset=utf-8", rows.JSONL: "application/jsonl"}
		if err == nil && types[format] == "" {
			err = known.Refuse("format: use csv or jsonl")
		}
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		next, stop := iter.Pull2(f.allOf(r.Context(), k, q))
		defer stop()
		record, err, more := next()
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", types[format])
		w.Header().Set("Content-Disposition", `attachment; filename="`+k.Name+"."+string(format)+`"`)
		out := rows.NewRecords(format, w)
		for ; more && err == nil; record, err, more = next() {
			if err = out.Write(record); err != nil {
				break
			}
		}
		if err = errors.Join(err, out.Close()); err != nil {
			f.Log.Warn("download_broken", "path", r.URL.Path, "error", ledger.Redact(err.Error()))
			panic(http.ErrAbortHandler) // the reader sees that the file is not whole
		}
	}
}

// Priced reports whether some of the items have a series.
func (k kind) Priced(items []explore.Item) bool {
	return slices.ContainsFunc(items, func(i explore.Item) bool { return i.Series != nil })
}
