package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// WriteFolder writes the stored pages of providers into a directory as Markdown, one file
// a page, and says on out how many of each provider. Files of other pages stay. Of a
// provider for which whole is false, each file has the first 200 characters and a link to
// the original. It returns the number of pages.
func WriteFolder(ctx context.Context, d *db.DB, s store.Store, dir string, ids []string, whole func(id string) bool, out io.Writer) (all int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	written := map[string]bool{} // names in lower case
	for _, id := range ids {
		pages, cut := 0, 0
		for p, err := range Texts(ctx, d, s, id, whole(id)) {
			if err == nil {
				err = writePage(root, p, written)
			}
			if err != nil {
				return all, fmt.Errorf("writing the pages of %s into %s: %w", id, dir, err)
			}
			pages++
			if !p.Whole {
				cut++
			}
		}
		if pages == 0 {
			continue
		}
		all += pages
		says := ""
		switch {
		case !whole(id):
			says = ", the first 200 characters of each with a link: its policy does not say tos: allowed"
		case cut > 0:
			says = fmt.Sprintf(", %d of them only the first 200 characters: their text is no longer in the hand-off, --handoff-again=%s fetches it again", cut, id)
		}
		if _, err := fmt.Fprintf(out, "%s: %d pages in %s%s\n", id, pages, dir, says); err != nil {
			return all, err
		}
	}
	return all, nil
}

// writePage writes one page, with what is known of it as YAML at its beginning.
func writePage(root *os.Root, p PageText, written map[string]bool) error {
	name, err := pageFile(p.URL)
	if err != nil {
		return err
	}
	if written[strings.ToLower(name)] { // another provider has the page too
		name = hashed(strings.TrimSuffix(name, ".md"), p.Provider+"\n"+p.URL) + ".md"
	}
	written[strings.ToLower(name)] = true
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, f := range [][2]string{{"title", p.Title}, {"url", p.URL}, {"provider", p.Provider}, {"fetched_at", p.Fetched.Format(time.RFC3339)}} {
		v, err := json.Marshal(f[1]) // a string of JSON is one of YAML
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s: %s\n", f[0], v)
	}
	fmt.Fprintf(&b, "whole: %t\n---\n\n%s\n", p.Whole, p.Text)
	if !p.Whole {
		fmt.Fprintf(&b, "\n[The original](<%s>)\n", p.URL)
	}
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return root.WriteFile(name, b.Bytes(), 0o644)
}

// plainName matches a part of a path that may be the name of a file or folder as it is.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_%~-][A-Za-z0-9_.%~-]{0,99}$`)

// named matches a part that, as the name of a file or folder, is not the name of this page
// alone on every system: it ends in a dot, means a device, or looks like one of ours.
var named = regexp.MustCompile(`(?i)\.$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)|\.md$|-[0-9a-f]{8}$`)

// escapes are the letters of a name whose case means nothing.
var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// maxFile is the maximum length of a page's file below the directory in bytes.
const maxFile = 240

func hashed(name, of string) string {
	sum := sha256.Sum256([]byte(of))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// pageFile is a page's file: the host, and the path of its URL. A name that cannot be one
// of a file, or could be another page's, also where case means nothing, gets a part of a hash.
func pageFile(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	host := strings.NewReplacer(":", "_", "[", "", "]", "").Replace(u.Host)
	at := u.EscapedPath()
	way := strings.TrimSuffix(strings.TrimPrefix(at, "/"), "/")
	parts := append([]string{host}, strings.Split(way, "/")...)
	plain := u.RawQuery == "" && way != "index" && (way != "" || len(at) < 2) && !strings.ContainsAny(u.Host, "_[")
	for i, part := range parts {
		if part == "" {
			plain, part = plain && way == "", "index"
		}
		own := escapes.ReplaceAllString(part, "")
		if !plainName.MatchString(part) || named.MatchString(part) || own != strings.ToLower(own) {
			plain = false
			part = strings.Map(func(r rune) rune {
				if plainName.MatchString(string(r)) {
					return r
				}
				return '-'
			}, part[:min(len(part), 80)])
			if named.MatchString(part) {
				part = "_" + strings.ReplaceAll(part, ".", "-")
			}
		}
		parts[i] = part
	}
	if name := path.Join(parts...); plain && len(name) < maxFile {
		return name + ".md", nil
	} else if len(name) >= maxFile {
		parts = []string{parts[0], parts[len(parts)-1]}
	}
	return hashed(path.Join(parts...), address) + ".md", nil
}
