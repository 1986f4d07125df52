package answer_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// No page of the shared cases and of the repository's test data is called a wall: all of them are content.
func TestCorpus(t *testing.T) {
	n := 0
	for _, root := range []string{cases.Path(t, ""), filepath.Join("..", "..", "..")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == ".git" || path == filepath.Join("testdata")) {
				if d != nil && d.IsDir() && err == nil {
					return fs.SkipDir
				}
				return err
			}
			name := strings.TrimSuffix(path, ".gz")
			kind := map[string]string{".html": "text/html", ".htm": "text/html", ".md": "text/markdown"}[filepath.Ext(name)]
			if d.IsDir() || kind == "" || root != cases.Path(t, "") && !strings.Contains(path, "testdata") {
				return nil
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if name != path {
				z, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					return err
				}
				if body, err = io.ReadAll(z); err != nil {
					return err
				}
			}
			n++
			v := answer.Classify(answer.Response{Status: 200, Header: map[string][]string{"Content-Type": {kind}}, URL: "https://example.com/a", Body: body})
			assert.True(t, v.Kind == answer.Page || v.Kind == answer.Text, "%s is called %+v", path, v)
			return nil
		})
		require.NoError(t, err)
	}
	assert.True(t, n >= 300, "%d pages were read, want at least 300", n)
}
