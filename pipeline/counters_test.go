package pipeline

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Counters are Beam's metrics too, whose names are part of the program: what
// varies with the data goes into a ledger.Warning, or into a table of names.
func TestCounterNames(t *testing.T) {
	found := 0
	for _, root := range []string{"../transforms", "../io/ledger"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text := token.NewFileSet()
			file, err := parser.ParseFile(text, path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, name := range counterNames(file) {
				found++
				switch name.(type) {
				case *ast.BinaryExpr, *ast.CallExpr:
					t.Errorf("%s: the name of a counter is put together here; give it a name of its own, or count a ledger.Warning", text.Position(name.Pos()))
				}
			}
			return nil
		}))
	}
	require.Greater(t, found, 30, "the test knows how the program counts")

	made, err := parser.ParseFile(token.NewFileSet(), "", `package p; func f() { t.Count("never_"+site, 1); t.Counts["a."+b]++; beam.NewCounter(space, fmt.Sprint(n)) }`, 0)
	require.NoError(t, err)
	require.Len(t, counterNames(made), 4)
}

// counterNames are the names that a file counts under.
func counterNames(file *ast.File) (names []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch f, _ := n.Fun.(*ast.SelectorExpr); {
			case f == nil:
			case f.Sel.Name == "Count" && len(n.Args) == 2:
				names = append(names, n.Args[0])
			case f.Sel.Name == "NewCounter" || f.Sel.Name == "NewGauge" || f.Sel.Name == "NewDistribution":
				names = append(names, n.Args...)
			}
		case *ast.IndexExpr:
			if f, ok := n.X.(*ast.SelectorExpr); ok && f.Sel.Name == "Counts" {
				names = append(names, n.Index)
			}
		}
		return true
	})
	return names
}

// A stage of a job shows counts that the program really counts.
func TestStagesAreCounted(t *testing.T) {
	named := map[string]bool{ledger.LaneHosts: true, ledger.LaneHostsDone: true}
	require.NoError(t, filepath.WalkDir("../transforms", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				named[strings.Trim(l.Value, `"`)] = true
			}
			return true
		})
		return nil
	}))
	for _, j := range All() {
		require.GreaterOrEqual(t, len(j.Stages), 4, j.Name)
		for _, s := range j.Stages {
			require.NotEmpty(t, s.Counts, "%s %s", j.Name, s.Name)
			for _, name := range slices.Concat(s.Counts, s.Apart) {
				require.True(t, named[name], "job %s, stage %s: nothing counts %s", j.Name, s.Name, name)
			}
		}
	}
}
