package docs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// pageText is a stored page for a person.
type pageText struct {
	Provider, URL, Title string
	Fetched              time.Time
	Text                 string // Markdown, or where it is not whole a line of at most 200 characters
	Whole                bool
}

// texts returns a provider's pages that have content, sorted by key. The whole text is the page that was kept, or what the hand-off still
// has, without links. Unless whole is true, a text is an excerpt; unless links is true, it has no links.
func texts(ctx context.Context, d *db.DB, s store.Store, provider string, whole, links bool) iter.Seq2[pageText, error] {
	return func(yield func(pageText, error) bool) {
		pages, err := storedPages(ctx, d, provider)
		var handed map[string][]store.Object
		if err == nil && whole {
			handed, err = handedOver(ctx, s, provider)
		}
		if err != nil {
			yield(pageText{}, err)
			return
		}
		for _, p := range pages {
			text, err := p.read(ctx, d, s, handed, links)
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// storedPage is a page that has content.
type storedPage struct {
	pageText
	key string
}

func storedPages(ctx context.Context, d *db.DB, provider string) (out []storedPage, err error) {
	for p, err := range db.Select(ctx, d, func(r *sql.Rows) (p storedPage, err error) {
		var at int64
		err = r.Scan(&p.key, &p.URL, &p.Title, &at)
		p.Provider, p.Fetched = provider, db.Time(at)
		return p, err
	}, `SELECT key, address, title, fetched_at FROM docs_pages WHERE provider = $1 AND content_hash <> '' ORDER BY key`, provider) {
		if err != nil {
			return nil, fmt.Errorf("reading the pages of %s: %w", provider, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// handedOver returns the objects of a provider's hand-off, the newest first, by the name
// that a page has in all sessions.
func handedOver(ctx context.Context, s store.Store, provider string) (map[string][]store.Object, error) {
	out := map[string][]store.Object{}
	for o, err := range s.List(ctx, handOffPrefix(provider)) {
		if err != nil {
			return nil, fmt.Errorf("listing the hand-off of %s: %w", provider, err)
		}
		name := o.Key[strings.LastIndexByte(o.Key, '/')+1:]
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), againSuffix)
		out[name] = append(out[name], o)
	}
	for _, objects := range out {
		slices.SortStableFunc(objects, func(a, b store.Object) int {
			return cmp.Or(b.ModTime.Compare(a.ModTime), strings.Compare(b.Key, a.Key))
		})
	}
	return out, nil
}

// read completes a page with its text, with links where they were kept and links is true.
func (p storedPage) read(ctx context.Context, d *db.DB, s store.Store, handed map[string][]store.Object, links bool) (pageText, error) {
	var ids []string
	for c, err := range db.Select(ctx, d, func(r *sql.Rows) (c [2]string, err error) { return c, r.Scan(&c[0], &c[1]) },
		`SELECT id, preview FROM docs_chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal`, p.Provider, p.key) {
		if err != nil {
			return p.pageText, fmt.Errorf("reading the chunks of %s: %w", p.URL, err)
		}
		if ids = append(ids, c[0]); len(ids) == 1 {
			p.Text = shown(c[1])
		}
	}
	if kept := handed[handOffName(p.key)+".md"]; len(kept) > 0 {
		b, err := store.ReadAll(ctx, s, kept[0].Key, maxManifest)
		if err != nil {
			return p.pageText, fmt.Errorf("reading the whole page %s: %w", p.URL, err)
		}
		if p.Text, p.Whole = string(b), true; !links {
			p.Text = content.WithoutLinks(p.Text)
		}
		return p.pageText, nil
	}
	for _, o := range handed[handOffName(p.key)] {
		texts, err := chunksOf(ctx, s, o.Key)
		if err != nil {
			return p.pageText, err
		}
		var whole []string
		for _, id := range ids {
			if text, ok := texts[id]; ok {
				whole = append(whole, text)
			}
		}
		if len(whole) == len(ids) && len(ids) > 0 {
			p.Text, p.Whole = strings.Join(whole, "\n\n"), true
			break
		}
	}
	return p.pageText, nil
}

// chunksOf returns the texts of an object of the hand-off, by the chunk's id.
func chunksOf(ctx context.Context, s store.Store, key string) (texts map[string]string, err error) {
	body, err := s.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the hand-off %s: %w", key, err)
	}
	defer func() { _ = body.Close() }() // only read
	texts = map[string]string{}
	lines := json.NewDecoder(bufio.NewReader(body))
	for {
		var l handOffLine
		err := lines.Decode(&l)
		if err == io.EOF {
			return texts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the hand-off %s: %w", key, err)
		}
		if l.Op == "upsert" {
			texts[l.ID] = l.Text
		}
	}
}

// Ending says what became of the first page of a provider: "" if a page has content.
func Ending(ctx context.Context, d *db.DB, provider string) (kept int64, why string, err error) {
	if err := d.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_pages WHERE provider = $1 AND content_hash <> ''`, provider).Scan(&kept); err != nil {
		return 0, "", fmt.Errorf("counting the pages of %s: %w", provider, err)
	}
	var status, reason string
	err = d.QueryRowContext(ctx, `SELECT status, reason FROM docs_pages WHERE provider = $1 ORDER BY depth, seq LIMIT 1`, provider).Scan(&status, &reason)
	switch {
	case err == nil:
		return kept, status + inBrackets(reason), nil
	case err != sql.ErrNoRows:
		return kept, "", fmt.Errorf("reading the first page of %s: %w", provider, err)
	}
	err = d.QueryRowContext(ctx, `SELECT state, reason FROM docs_runs WHERE provider = $1 ORDER BY started_at DESC LIMIT 1`, provider).Scan(&status, &reason)
	if err == sql.ErrNoRows {
		return kept, "it was not crawled", nil
	}
	if err != nil {
		return kept, "", fmt.Errorf("reading the state of %s: %w", provider, err)
	}
	return kept, status + inBrackets(reason), nil
}

// WriteFolder writes the stored pages of providers into a directory as Markdown, one file a page, and says on out how many. Files of other
// pages stay. Of a provider for which whole is false, each file has the first 200 characters and a link. It returns the number of pages.
func WriteFolder(ctx context.Context, d *db.DB, s store.Store, dir string, ids []string, whole func(id string) bool, links bool, out io.Writer) (all int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	written := map[string]bool{} // names in lower case
	for _, id := range ids {
		pages, cut := 0, 0
		for p, err := range texts(ctx, d, s, id, whole(id), links) {
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
			says = fmt.Sprintf(", %d of them only the first 200 characters: their text was not kept, --handoff-again=%s fetches it again", cut, id)
		}
		if _, err := fmt.Fprintf(out, "%s: %d pages in %s%s\n", id, pages, dir, says); err != nil {
			return all, err
		}
	}
	return all, nil
}

// writePage writes one page, with what is known of it as YAML at its beginning.
func writePage(root *os.Root, p pageText, written map[string]bool) error {
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

// PageChange is a change of a page that a session found.
type PageChange struct {
	Provider string         `json:"provider"`
	Key      string         `json:"key"`
	URL      string         `json:"url"`
	Kind     string         `json:"kind"` // new, updated, deleted
	At       time.Time      `json:"at"`
	Sections []chunk.Change `json:"sections"`
}

// ErrNoSession means that there is no session with that name, or none at all.
var ErrNoSession = errors.New("there is no such session")

// Changes lists the changes that a session found, by provider and page; "" means the latest session. A section is named by its headings.
func Changes(ctx context.Context, d *db.DB, session string) (name string, out []PageChange, err error) {
	err = d.QueryRowContext(ctx, `SELECT id FROM docs_sessions WHERE id = $1 OR $1 = ''
		ORDER BY started_at DESC, id DESC LIMIT 1`, session).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, fmt.Errorf("%w: %q", ErrNoSession, cmp.Or(session, "latest"))
	}
	if err != nil {
		return "", nil, fmt.Errorf("looking for session %q: %w", session, err)
	}
	for p, err := range db.Select(ctx, d, func(r *sql.Rows) (p PageChange, err error) {
		var sections string
		var at int64
		if err := r.Scan(&p.Provider, &p.Key, &p.URL, &p.Kind, &sections, &at); err != nil {
			return p, err
		}
		p.At = db.Time(at)
		return p, json.Unmarshal([]byte(sections), &p.Sections)
	}, `SELECT c.provider, c.key, COALESCE(p.address, c.key), c.kind, c.sections, c.at FROM docs_changes c
		LEFT JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key WHERE c.session = $1 ORDER BY c.provider, c.key`, name) {
		if err != nil {
			return name, nil, fmt.Errorf("reading the changes of %s: %w", name, err)
		}
		out = append(out, p)
	}
	return name, out, nil
}
