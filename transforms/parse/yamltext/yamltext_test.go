package yamltext_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml/ast"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

type shelf struct {
	Name  string   `yaml:"name"`
	Books []string `yaml:"books"`
	Sizes struct {
		Height int `yaml:"height"`
	} `yaml:"sizes"`
}

func TestStrict(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"whole":        {"name: a\nbooks: [x]\nsizes: {height: 2}\n", ""},
		"empty":        {"", ""},
		"comment only": {"# nothing\n", ""},
		"byte order":   {"\ufeffname: a\n", ""},
		"one document": {"# one\n---\nname: a\n---\n# nothing\n...\n", ""},
		"two":          {"name: a\n---\nname: b\n", "line 3: a second document begins here; write one in a file"},
		"unknown key":  {"name: a\nbook: x\n", `line 2: unknown field "book"`},
		"key twice":    {"name: a\nname: b\n", `line 2: mapping key "name" already defined at [1:1]`},
		"no YAML":      {"name: [", "line 1: sequence end token ']' not found"},
		"wrong type":   {"sizes: {height: tall}", "line 1: cannot unmarshal string into Go struct field shelf.Sizes of type int"},
		"stray tag":    {"books: !00\n000000", yamltext.ErrMalformed.Error() + " (runtime error: invalid memory address or nil pointer dereference)"},
	} {
		var s shelf
		err := yamltext.Strict([]byte(tt.text), &s)
		if tt.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, tt.says, name)
	}
	s := shelf{Name: "kept"}
	for _, nothing := range []string{"", "\n", "# nothing\n"} {
		require.NoError(t, yamltext.Strict([]byte(nothing), &s))
		require.Equal(t, "kept", s.Name, "%q", nothing)
	}
}

func TestNodesStayAsWritten(t *testing.T) {
	var v map[string]ast.Node
	require.NoError(t, yamltext.Decode([]byte("\ufeffcategory: 007\n"), &v))
	require.Equal(t, "007", v["category"].GetToken().Value)
	require.EqualError(t, yamltext.Decode([]byte("a: 1\n---\nb: 2\n"), &v), "line 3: a second document begins here; write one in a file")
}

func FuzzStrict(f *testing.F) {
	f.Add([]byte("name: a\nbooks: [x]\nsizes: {height: 2}\n"))
	f.Add([]byte("books: !00\n000000"))
	f.Add([]byte("books: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s shelf
		_ = yamltext.Strict(text, &s) // any answer but a panic
		_, _ = yamltext.Parse(text)
		var v map[string]ast.Node
		_ = yamltext.Decode(text, &v)
	})
}

func TestFiles(t *testing.T) {
	names, err := yamltext.Files(fstest.MapFS{"b.yml": {}, "a.yaml": {}, "c.yaml": {}, "d.yaml.bak": {}, "x/e.yaml": {}, "f.yaml/g": {}, "README.md": {}})
	require.NoError(t, err)
	require.Equal(t, []string{"a.yaml", "b.yml", "c.yaml"}, names)
	_, err = yamltext.Files(os.DirFS(t.TempDir() + "/absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
