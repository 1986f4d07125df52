package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Snapshot is a saved page of a publisher and what its provider read from it:
// NAME.html with its bytes unchanged, and NAME.json.
type Snapshot struct {
	URL         string  `json:"url"`
	ContentType string  `json:"content_type,omitempty"` // the HTTP header
	Article     Article `json:"article"`
}

// Take reads a page as the engine would.
func Take(p Provider, page []byte, contentType, rawURL string) (Snapshot, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %q is no address of a page", rawURL)
	}
	if !p.IsArticleURL(u) {
		return Snapshot{}, fmt.Errorf("taking a snapshot: for %s %s is no article: correct its URL policy, or give the article's own address", p.ID(), rawURL)
	}
	a, err := p.ParseArticle(page, contentType, u)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading %s: %w", rawURL, err)
	}
	return Snapshot{URL: rawURL, ContentType: contentType, Article: a}, nil
}

// Write writes a snapshot to a directory, and creates the directory. name is without extension.
func (s Snapshot) Write(dir, name string, page []byte) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	for file, content := range map[string][]byte{name + ".html": page, name + ".json": b} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return fmt.Errorf("writing a snapshot: %w", err)
		}
	}
	return nil
}

func (s Snapshot) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encoding a snapshot: %w", err)
	}
	return b.Bytes(), nil
}

// Difference is a field whose value differs from the snapshot's.
type Difference struct{ Field, Want, Got string }

// Verify reads every snapshot of a directory again and returns, by name, the
// fields that differ. With update it writes the new values to the snapshots.
func Verify(p Provider, dir string, update bool) (map[string][]Difference, error) {
	names, err := fs.Glob(os.DirFS(dir), "*.json")
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New(dir + ": it has no snapshots; make one by `pipeline init snapshot`")
	}
	all := map[string][]Difference{}
	for _, name := range names {
		name = strings.TrimSuffix(name, ".json")
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			return nil, fmt.Errorf("reading a snapshot: %w", err)
		}
		var want Snapshot
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&want); err != nil {
			return nil, fmt.Errorf("reading snapshot %s: %w", name, err)
		}
		page, err := os.ReadFile(filepath.Join(dir, name+".html"))
		if err != nil {
			return nil, fmt.Errorf("reading a snapshot: %w", err)
		}
		got, err := Take(p, page, want.ContentType, want.URL)
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", name, err)
		}
		if update {
			if err := got.Write(dir, name, page); err != nil {
				return nil, err
			}
			continue
		}
		if d := Compare(want.Article, got.Article); len(d) > 0 {
			all[name] = d
		}
	}
	return all, nil
}

// Compare returns the fields in which two articles differ; for the body, the first line that differs.
func Compare(want, got Article) []Difference {
	var out []Difference
	var fields func(w, g reflect.Value)
	fields = func(w, g reflect.Value) {
		for i := range w.NumField() {
			f := w.Type().Field(i)
			if f.Anonymous {
				fields(w.Field(i), g.Field(i))
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			// Times are compared as texts: the time zone is part of what was read.
			a, b := text(w.Field(i).Interface()), text(g.Field(i).Interface())
			if a == b {
				continue
			}
			if name == "body" {
				out = append(out, lines(a, b)...)
				continue
			}
			out = append(out, Difference{name, a, b})
		}
	}
	fields(reflect.ValueOf(want), reflect.ValueOf(got))
	return out
}

// text returns a value as in its JSON, a string without quotes.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// lines returns the first line in which two bodies differ, with their lengths.
func lines(want, got string) []Difference {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y || i >= len(a) || i >= len(b) {
			return []Difference{{fmt.Sprintf("body, line %d of %d (now %d)", i+1, len(a), len(b)), x, y}}
		}
	}
	return nil
}

// String returns the difference as text.
func (d Difference) String() string {
	return fmt.Sprintf("%s\n    - %s\n    + %s", d.Field, d.Want, d.Got)
}
