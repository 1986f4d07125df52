package reference

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// noPromise ends the comment of each package that docs/library.md does not name.
const noPromise = "No promise: see docs/library.md."

// library returns the packages of docs/library.md, each with the names that are promised:
// nil for all.
func library(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/library.md")
	require.NoError(t, err)
	promised := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+/[\\w/]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		promised[row[1]] = nil
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[2], -1) {
			promised[row[1]] = append(promised[row[1]], name[1])
		}
	}
	require.LessOrEqual(t, len(promised), 8)
	require.GreaterOrEqual(t, len(promised), 5)
	return promised
}

// parsePackage parses the files of a folder.
func parsePackage(t *testing.T, set *token.FileSet, folder string) (files, tests []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("../../" + folder + "/*.go")
	require.NoError(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, file)
		} else {
			files = append(files, file)
		}
	}
	return files, tests
}

// TestLibrary compares the exported declarations of the public packages with
// testdata/library.txt: a change there is a change for other people's programs.
func TestLibrary(t *testing.T) {
	var got strings.Builder
	promised := library(t)
	for _, folder := range slices.Sorted(maps.Keys(promised)) {
		set := token.NewFileSet()
		files, tests := parsePackage(t, set, folder)
		p, err := doc.NewFromFiles(set, files, folder)
		require.NoError(t, err)
		require.NotEmpty(t, p.Doc, folder)
		require.True(t, slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool { return e.Name == "" && e.Output != "" }), "%s has no Example with its output", folder)
		got.WriteString("package " + folder + "\n")
		found := map[string]bool{}
		add := func(d ast.Decl, names ...string) {
			for _, name := range names {
				found[name] = true
			}
			if of := promised[folder]; of == nil || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(of, n) }) {
				got.WriteString(declaration(t, set, d))
			}
		}
		for _, v := range slices.Concat(p.Consts, p.Vars) {
			add(v.Decl, v.Names...)
		}
		for _, f := range p.Funcs {
			add(f.Decl, f.Name)
		}
		for _, typ := range p.Types {
			add(typ.Decl, typ.Name)
			for _, v := range slices.Concat(typ.Consts, typ.Vars) {
				add(v.Decl, append(v.Names, typ.Name)...)
			}
			for _, f := range typ.Funcs {
				add(f.Decl, f.Name)
			}
			for _, f := range typ.Methods {
				add(f.Decl, typ.Name)
			}
		}
		for _, name := range promised[folder] {
			require.True(t, found[name], "docs/library.md promises %s of %s, which has no such name", name, folder)
		}
	}
	const golden = "testdata/library.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "what other programs import has changed: say so in CHANGELOG.md, and run `make golden`")
}

// declaration prints a declaration without comments and bodies.
func declaration(t *testing.T, set *token.FileSet, d ast.Decl) string {
	t.Helper()
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	var b bytes.Buffer
	require.NoError(t, (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 1}).Fprint(&b, set, d))
	lines := regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(b.String(), "; ")
	return strings.NewReplacer("{; ", "{ ", "(; ", "( ", "; }", " }", "; )", " )").Replace(strings.Join(strings.Fields(lines), " ")) + "\n"
}

// Every package says whether it is public.
func TestNoPromise(t *testing.T) {
	promised := library(t)
	for _, part := range append(parts, "deploy", "testdata") {
		require.NoError(t, filepath.WalkDir("../../"+part, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			folder := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			files, _ := parsePackage(t, token.NewFileSet(), folder)
			_, public := promised[folder]
			if len(files) == 0 || files[0].Name.Name == "main" {
				return nil
			}
			says := slices.ContainsFunc(files, func(f *ast.File) bool {
				return strings.HasSuffix(strings.TrimSpace(strings.Join(strings.Fields(f.Doc.Text()), " ")), noPromise)
			})
			if says == public {
				t.Errorf("the package comment of %s must end with %q, unless docs/library.md names the package", folder, noPromise)
			}
			return nil
		}))
	}
}
