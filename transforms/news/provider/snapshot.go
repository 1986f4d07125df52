package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	b, err := s.JSON()
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

// JSON returns the snapshot as its file has it.
func (s Snapshot) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encoding a snapshot: %w", err)
	}
	return b.Bytes(), nil
}
