package reference

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jobOf is the job that a package belongs to; "all" for one that they share.
func jobOf(folder string) string {
	parts := strings.Split(folder, "/")
	if parts[0] == "transforms" && len(parts) > 1 && parts[1] != "lane" && parts[1] != "parse" {
		return parts[1]
	}
	return "all"
}

// constants are the texts of the constants of packages, by name. Names of packages are
// left out: the constants that this test asks for have names of their own.
func constants(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range program(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				return false
			}
			if v, ok := n.(*ast.ValueSpec); ok {
				for i := range min(len(v.Names), len(v.Values)) {
					if text, ok := literal(v.Values[i]); ok {
						all[v.Names[i].Name] = text
					}
				}
			}
			return true
		})
	}
	return all
}

// found collects names by where they are used.
type found struct {
	texts map[string]string
	by    map[string]map[string]bool
}

// add adds what an expression says, if that is known before the program runs.
func (f found) add(e ast.Expr, where string) {
	text, ok := literal(e)
	switch e := e.(type) {
	case *ast.Ident:
		text, ok = f.texts[e.Name]
	case *ast.SelectorExpr:
		text, ok = f.texts[e.Sel.Name]
	}
	if !ok || text == "" {
		return
	}
	if f.by[text] == nil {
		f.by[text] = map[string]bool{}
	}
	f.by[text][where] = true
}

func (f found) rows() (rows [][]string) {
	for _, name := range slices.Sorted(maps.Keys(f.by)) {
		if f.by[name]["all"] && len(f.by[name]) > 1 {
			delete(f.by[name], "all")
		}
		rows = append(rows, []string{code(name), join(f.by[name])})
	}
	return rows
}

// isCounts reports whether an expression is a type of counts by name.
func isCounts(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.MapType:
		k, _ := e.Key.(*ast.Ident)
		v, _ := e.Value.(*ast.Ident)
		return k != nil && v != nil && k.Name == "string" && v.Name == "int64"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Counts"
	}
	return false
}

// TestCounters keeps the page of the names under which a run counts.
func TestCounters(t *testing.T) {
	f := found{constants(t), map[string]map[string]bool{}}
	for _, s := range program(t) {
		job := jobOf(s.folder)
		if job == "all" && s.folder != "transforms/lane" && s.folder != "transforms/lane/images" && s.folder != "transforms/parse/rights" && s.folder != "io/ledger" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name != "Counts" || n.Recv != nil {
					return true
				}
				ast.Inspect(n.Body, func(n ast.Node) bool {
					if list, ok := n.(*ast.CompositeLit); ok {
						for _, e := range list.Elts {
							f.add(e, job)
						}
					}
					return true
				})
			case *ast.CallExpr:
				if called(n) == "Count" && len(n.Args) == 2 {
					f.add(n.Args[0], job)
				}
			case *ast.CompositeLit:
				if !isCounts(n.Type) {
					return true
				}
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						f.add(pair.Key, job)
					}
				}
			case *ast.IndexExpr:
				switch x := n.X.(type) {
				case *ast.SelectorExpr:
					if x.Sel.Name == "Counts" {
						f.add(n.Index, job)
					}
				case *ast.Ident:
					if _, ok := literal(n.Index); ok && (x.Name == "counts" || x.Name == "m") && job != "all" {
						f.add(n.Index, job)
					}
				}
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "fails" {
					f.add(n.Value, job)
				}
			case *ast.ValueSpec:
				if n.Names[0].Name == "unreachableBy" {
					for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
						f.add(e.(*ast.KeyValueExpr).Value, job)
					}
				}
			}
			return true
		})
	}
	require.Greater(t, len(f.by), 60)
	table{page: "counters.md", name: "counters", rows: f.rows(), byHand: true}.check(t)
}

// TestDeadLetterKinds keeps the page of the kinds of dead letters.
func TestDeadLetterKinds(t *testing.T) {
	f := found{constants(t), map[string]map[string]bool{}}
	for _, s := range program(t) {
		job := jobOf(s.folder)
		if job == "all" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				kinds, of := map[string]string{"DeadLetter": "Kind", "failure": "kind", "lost": "kind"}, ""
				switch x := n.Type.(type) {
				case *ast.Ident:
					of = x.Name
				case *ast.SelectorExpr:
					of = x.Sel.Name
				}
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						if k, ok := pair.Key.(*ast.Ident); ok && k.Name == kinds[of] {
							f.add(pair.Value, job)
						}
					}
				}
			case *ast.CallExpr:
				if at := map[string]int{"fileDeadLetter": 2, "deadLetter": 1}[called(n)]; at > 0 && len(n.Args) > at {
					f.add(n.Args[at], job)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if x, ok := to.(*ast.SelectorExpr); ok && i < len(n.Rhs) {
						of, _ := x.X.(*ast.Ident)
						if of != nil && (x.Sel.Name == "Kind" && slices.Contains([]string{"d", "letter", "dead", "rejected"}, of.Name) || x.Sel.Name == "kind" && of.Name == "why" || x.Sel.Name == "failure" && of.Name == "ch") {
							f.add(n.Rhs[i], job)
						}
					}
				}
			}
			return true
		})
	}
	require.Greater(t, len(f.by), 20)
	table{page: "dead-letters.md", name: "kinds", rows: f.rows(), byHand: true}.check(t)
}

// TestFailureKinds keeps the table of why a request has no answer.
func TestFailureKinds(t *testing.T) {
	var rows [][]string
	kind := regexp.MustCompile(`^Kind[A-Z]`)
	for _, file := range sources(t, "../../io/web") {
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && kind.MatchString(v.Names[0].Name) {
				text, isText := literal(v.Values[0])
				require.True(t, isText)
				require.NotEmpty(t, v.Comment.Text(), "%s has no comment", text)
				rows = append(rows, []string{code(text), strings.TrimSpace(v.Comment.Text())})
			}
			return true
		})
	}
	require.Greater(t, len(rows), 7)
	table{page: "dead-letters.md", name: "failures", rows: rows}.check(t)
}
